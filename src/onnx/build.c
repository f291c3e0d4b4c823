// Building protobuf messages, with the elements of large tensors left where they are.
#include "onnx/build.h"

#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "onnx/wire.h"

enum {
  LENGTH_CAPACITY = 5,  // kept free for the length of a message until it is known
  SPLICE_BYTES = 4096,  // smaller elements are copied
};

void onnx_builder_deinit(onnx_builder_t* b) {
  for (size_t i = 0; i < b->n_splices; i++) assay_tensor_release(b->splices[i].tensor);
  assay_free(b->splices);
  assay_free(b->bytes);
  assay_status_free(b->status);
  *b = (onnx_builder_t){0};
}

static bool reserve(onnx_builder_t* b, size_t more) {
  if (b->status) return false;
  if (more > SIZE_MAX - b->len)
    b->status = assay_status_no_memory();
  else
    b->status = assay_grow(&b->bytes, &b->capacity, b->len + more, 1);
  return !b->status;
}

void onnx_put_bytes(onnx_builder_t* b, const void* data, size_t len) {
  if (!len || !reserve(b, len)) return;
  memcpy(b->bytes + b->len, data, len);
  b->len += len;
}

static void put_varint(onnx_builder_t* b, uint64_t v) {
  uint8_t text[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) text[n++] = (uint8_t)(v | 0x80);
  text[n++] = (uint8_t)v;
  onnx_put_bytes(b, text, n);
}

static void put_tag(onnx_builder_t* b, uint32_t number, int type) {
  put_varint(b, (uint64_t)number << 3 | (unsigned)type);
}

void onnx_put_int(onnx_builder_t* b, uint32_t number, int64_t v) {
  put_tag(b, number, ASSAY_WIRE_VARINT);
  put_varint(b, (uint64_t)v);
}

void onnx_put_float(onnx_builder_t* b, uint32_t number, float v) {
  put_tag(b, number, ASSAY_WIRE_I32);
  onnx_put_bytes(b, &v, sizeof v);
}

void onnx_put_blob(onnx_builder_t* b, uint32_t number, const void* data, size_t len) {
  put_tag(b, number, ASSAY_WIRE_LEN);
  put_varint(b, len);
  onnx_put_bytes(b, data, len);
}

void onnx_put_name(onnx_builder_t* b, uint32_t number, const char* text) {
  onnx_put_blob(b, number, text, strlen(text));
}

void onnx_put_text(onnx_builder_t* b, uint32_t number, const char* text) {
  if (*text) onnx_put_name(b, number, text);
}

static void fail(onnx_builder_t* b, assay_status_t st) {
  b->status = assay_status_join(b->status, st);
}

void onnx_put_elements(onnx_builder_t* b, uint32_t number, assay_tensor_t* t) {
  int64_t len = 0;
  if (!assay_type_packed_bytes(t->type, t->size, &len)) {
    fail(b, ASSAY_ERROR(ASSAY_INTERNAL, "%s%s cannot be packed", assay_type_name(t->type),
                        ASSAY_DIMS_TEXT(t)));
    return;
  }
  put_tag(b, number, ASSAY_WIRE_LEN);
  put_varint(b, (uint64_t)len);
  if (b->status) return;
  if (len < SPLICE_BYTES) {
    assay_tensor_t* p = NULL;
    assay_status_t st = assay_tensor_pack(t, &p);
    if (st)
      fail(b, st);
    else
      onnx_put_bytes(b, p->data, (size_t)len);
    assay_tensor_release(p);
    return;
  }
  b->status = assay_grow(&b->splices, &b->cap_splices, b->n_splices + 1, sizeof *b->splices);
  if (b->status) return;
  b->splices[b->n_splices++] = (onnx_splice_t){b->len, assay_tensor_retain(t), (uint64_t)len};
  b->spliced += (uint64_t)len;
}

onnx_mark_t onnx_begin(onnx_builder_t* b, uint32_t number) {
  put_tag(b, number, ASSAY_WIRE_LEN);
  if (reserve(b, LENGTH_CAPACITY)) b->len += LENGTH_CAPACITY;
  return (onnx_mark_t){b->len, b->n_splices, b->spliced};
}

void onnx_end(onnx_builder_t* b, onnx_mark_t mark) {
  if (b->status) return;
  uint64_t len = (uint64_t)(b->len - mark.content) + b->spliced - mark.spliced;
  uint8_t text[10];
  size_t n = 0;
  for (uint64_t v = len; n < LENGTH_CAPACITY; v >>= 7) {
    text[n++] = (uint8_t)(v >= 0x80 ? v | 0x80 : v);
    if (v < 0x80) break;
  }
  // A message of 2^35 bytes or more is refused when it is complete (onnx_built_size).
  size_t shift = LENGTH_CAPACITY - n;
  memcpy(b->bytes + mark.content - LENGTH_CAPACITY, text, n);
  if (!shift) return;
  memmove(b->bytes + mark.content - shift, b->bytes + mark.content, b->len - mark.content);
  b->len -= shift;
  for (size_t i = mark.n_splices; i < b->n_splices; i++) b->splices[i].at -= shift;
}

uint64_t onnx_built_size(const onnx_builder_t* b) { return b->len + b->spliced; }

assay_status_t onnx_write_elements(assay_tensor_t* t, assay_writer_t* w) {
  assay_tensor_t* p = NULL;
  int64_t len = 0;
  ASSAY_TRY(assay_tensor_pack(t, &p));
  assay_status_t st = NULL;
  if (assay_type_packed_bytes(t->type, t->size, &len))
    st = assay_writer_write(w, p->data, (size_t)len);
  assay_tensor_release(p);
  return st;
}

assay_status_t onnx_built_write(const onnx_builder_t* b, assay_writer_t* w) {
  size_t at = 0;
  for (size_t i = 0; i < b->n_splices; i++) {
    const onnx_splice_t* s = &b->splices[i];
    ASSAY_TRY(assay_writer_write(w, b->bytes + at, s->at - at));
    ASSAY_TRY(onnx_write_elements(s->tensor, w));
    at = s->at;
  }
  return assay_writer_write(w, b->bytes + at, b->len - at);
}

assay_status_t onnx_built_copy(const onnx_builder_t* b, uint8_t* out) {
  size_t at = 0;
  for (size_t i = 0; i < b->n_splices; i++) {
    const onnx_splice_t* s = &b->splices[i];
    assay_tensor_t* p = NULL;
    ASSAY_TRY(assay_tensor_pack(s->tensor, &p));
    memcpy(out, b->bytes + at, s->at - at);
    out += s->at - at;
    memcpy(out, p->data, s->len);
    out += s->len;
    at = s->at;
    assay_tensor_release(p);
  }
  if (b->len > at) memcpy(out, b->bytes + at, b->len - at);
  return NULL;
}

// ---- tensors ----------------------------------------------------------------------------------

void onnx_put_tensor(onnx_builder_t* b, assay_tensor_t* t, bool with_elements) {
  for (int i = 0; i < t->rank; i++) onnx_put_int(b, 1, t->dims[i]);
  onnx_put_int(b, 2, t->type);
  if (!with_elements) return;
  if (t->type == ASSAY_TYPE_STRING) {
    const assay_string_t* s = assay_strings(t);
    for (int64_t i = 0; i < t->size; i++) onnx_put_blob(b, 6, s[i].text, s[i].len);
  } else {
    onnx_put_elements(b, 9, t);
  }
}

void onnx_put_tensor_field(onnx_builder_t* b, uint32_t number, assay_tensor_t* t) {
  onnx_mark_t mark = onnx_begin(b, number);
  onnx_put_tensor(b, t, true);
  onnx_end(b, mark);
}

// Whether an element of a canonical tensor is other than zero or the empty string. -0 counts.
static bool is_set(const assay_tensor_t* t, int64_t i) {
  static const char zeros[16];
  if (t->store == ASSAY_STORE_STR) return assay_strings(t)[i].len > 0;
  size_t n = assay_store_elem_bytes(t->store);
  return memcmp((const char*)t->data + (size_t)i * n, zeros, n) != 0;
}

static assay_status_t gather_set(const assay_tensor_t* t, assay_tensor_t** out_values,
                                 assay_tensor_t** out_indices) {
  int64_t n = 0, k = 0;
  for (int64_t i = 0; i < t->size; i++) n += is_set(t, i);
  ASSAY_TRY(assay_tensor_create(t->type, 1, &n, out_values));
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &n, out_indices));
  size_t bytes = assay_store_elem_bytes(t->store);
  for (int64_t i = 0; i < t->size; i++) {
    if (!is_set(t, i)) continue;
    assay_i64(*out_indices)[k] = i;
    if (t->store == ASSAY_STORE_STR) {
      const assay_string_t* s = &assay_strings(t)[i];
      ASSAY_TRY(assay_tensor_set_string(*out_values, k, s->text, s->len));
    } else {
      memcpy((char*)(*out_values)->data + (size_t)k * bytes,
             (const char*)t->data + (size_t)i * bytes, bytes);
    }
    k++;
  }
  return NULL;
}

void onnx_put_sparse_field(onnx_builder_t* b, uint32_t number, assay_tensor_t* t) {
  assay_tensor_t *wide = NULL, *values = NULL, *indices = NULL;
  assay_status_t st = assay_tensor_widen(t, &wide);
  if (!st) st = gather_set(wide, &values, &indices);
  if (st) {
    fail(b, st);
  } else {
    onnx_mark_t mark = onnx_begin(b, number);
    onnx_put_tensor_field(b, 1, values);
    onnx_put_tensor_field(b, 2, indices);
    for (int i = 0; i < t->rank; i++) onnx_put_int(b, 3, t->dims[i]);
    onnx_end(b, mark);
  }
  assay_tensor_release(wide);
  assay_tensor_release(values);
  assay_tensor_release(indices);
}
