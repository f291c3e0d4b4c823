// Messages of protobuf-c, and what of them is carried along unread.
#include <string.h>

#include "onnx/read.h"

// ---- unpacking --------------------------------------------------------------------------------

static void* pb_alloc(void* failed, size_t size) {
  void* p = assay_malloc(size);
  if (!p) *(bool*)failed = true;
  return p;
}

static void pb_free(void* failed, void* p) {
  (void)failed;
  assay_free(p);
}

assay_status_t onnx_unpack(const ProtobufCMessageDescriptor* kind, const uint8_t* data, size_t size,
                           ProtobufCMessage** out) {
  uint8_t* slim = NULL;
  size_t slim_size = 0;
  ASSAY_TRY(assay_wire_slim(kind, data, size, &slim, &slim_size));
  bool failed = false;
  ProtobufCAllocator allocator = {pb_alloc, pb_free, &failed};
  ProtobufCMessage* m = protobuf_c_message_unpack(kind, &allocator, slim_size, slim);
  assay_free(slim);
  if (failed) return onnx_free_message(m), assay_status_no_memory();
  if (!m) return ASSAY_ERROR(ASSAY_CORRUPT, "this is not a valid %s", kind->short_name);
  *out = m;
  return NULL;
}

void onnx_free_message(ProtobufCMessage* message) {
  bool failed = false;
  ProtobufCAllocator allocator = {pb_alloc, pb_free, &failed};
  if (message) protobuf_c_message_free_unpacked(message, &allocator);
}

void onnx_reader_deinit(onnx_reader_t* r) {
  for (size_t i = 0; i < r->n_externals; i++) assay_mapping_release(r->externals[i].mapping);
  assay_free(r->externals);
  assay_folder_close(r->beneath);
}

// ---- text and bytes ---------------------------------------------------------------------------

assay_status_t onnx_text(onnx_reader_t* r, const char* text, const char** out) {
  if (text && *text) return assay_arena_strdup(r->arena, text, out);
  *out = "";
  return NULL;
}

void onnx_collect(onnx_collector_t* c, const uint8_t* data, size_t len) {
  if (!len) return;
  if (c->spill.text || c->spill.failed) {
    assay_str_append_n(&c->spill, (const char*)data, len);
  } else if (!c->run.len) {
    c->run = (assay_bytes_t){data, len};
  } else if (c->run.data + c->run.len == data) {
    c->run.len += len;
  } else {
    assay_str_append_n(&c->spill, (const char*)c->run.data, c->run.len);
    assay_str_append_n(&c->spill, (const char*)data, len);
  }
}

assay_status_t onnx_collected(onnx_reader_t* r, onnx_collector_t* c, assay_bytes_t* out) {
  assay_status_t st = assay_str_status(&c->spill);
  assay_bytes_t bytes = c->run;
  if (!st && c->spill.text) {
    const char* copy = NULL;
    st = assay_arena_strndup(r->arena, c->spill.text, c->spill.len, &copy);
    bytes = (assay_bytes_t){(const uint8_t*)copy, c->spill.len};
  }
  assay_str_deinit(&c->spill);
  if (!st) *out = bytes;
  return st;
}

assay_status_t onnx_collect_message(onnx_collector_t* c, uint32_t number,
                                    const ProtobufCMessage* m) {
  uint8_t head[10];
  size_t n = protobuf_c_message_get_packed_size(m), len = 0;
  for (uint32_t tag = number << 3 | ASSAY_WIRE_LEN; tag; tag >>= 7)
    head[len++] = (uint8_t)((tag & 0x7f) | (tag > 0x7f ? 0x80 : 0));
  for (size_t rest = n;; rest >>= 7) {
    head[len++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    if (rest <= 0x7f) break;
  }
  uint8_t* body = assay_malloc(n);
  if (!body) return assay_status_no_memory();
  protobuf_c_message_pack(m, body);
  // What is collected stays where it is unless it is copied: spill it.
  if (!c->spill.text) assay_str_append_n(&c->spill, (const char*)c->run.data, c->run.len);
  assay_str_append_n(&c->spill, (const char*)head, len);
  assay_str_append_n(&c->spill, (const char*)body, n);
  assay_free(body);
  return NULL;
}

assay_status_t onnx_carried(onnx_reader_t* r, const ProtobufCMessage* m, assay_bytes_t* out) {
  onnx_collector_t c = {0};
  for (unsigned i = 0; i < m->n_unknown_fields; i++) {
    assay_wire_span_t span;
    if (assay_wire_token(&m->unknown_fields[i], ASSAY_WIRE_CARRIED, &span))
      onnx_collect(&c, assay_mapping_data(r->file) + span.offset, (size_t)span.len);
  }
  return onnx_collected(r, &c, out);
}

assay_bytes_t onnx_self(const onnx_reader_t* r, const ProtobufCMessage* m) {
  assay_wire_span_t span;
  for (unsigned i = 0; i < m->n_unknown_fields; i++)
    if (assay_wire_token(&m->unknown_fields[i], ASSAY_WIRE_SELF, &span))
      return (assay_bytes_t){assay_mapping_data(r->file) + span.offset, span.len};
  return (assay_bytes_t){0};
}

assay_status_t onnx_read_props(onnx_reader_t* r, size_t n, Onnx__StringStringEntryProto** entries,
                               assay_prop_t** out, size_t* out_n) {
  if (!n) return NULL;
  assay_prop_t* props = NULL;
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *props, &props));
  for (size_t i = 0; i < n; i++) {
    ASSAY_TRY(onnx_text(r, entries[i]->key, &props[i].key));
    ASSAY_TRY(onnx_text(r, entries[i]->value, &props[i].value));
  }
  *out = props;
  *out_n = n;
  return NULL;
}
