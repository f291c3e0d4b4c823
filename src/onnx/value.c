// Values of test data: files that hold one tensor, sequence, optional or map.
// Source: onnx-data.proto (IR version 14).
#include <string.h>

#include "formats/format.h"
#include "onnx/build.h"
#include "onnx/onnx.h"
#include "onnx/read.h"

// Numbers of SequenceProto.DataType and OptionalProto.DataType.
enum { OF_NOTHING = 0, OF_TENSOR, OF_SPARSE, OF_SEQUENCE, OF_MAP, OF_OPTIONAL };

// ---- reading ----------------------------------------------------------------------------------

static assay_status_t read_sequence(onnx_reader_t* r, const Onnx__SequenceProto* p,
                                    const assay_valtype_t* type, assay_tensor_t** out);
static assay_status_t read_optional(onnx_reader_t* r, const Onnx__OptionalProto* p,
                                    const assay_valtype_t* type, assay_tensor_t** out);
static assay_status_t read_map(onnx_reader_t* r, const Onnx__MapProto* p, assay_tensor_t** out);

// The element type of the tensors within a type; UNDEFINED if it says nothing.
static assay_type_t inner_elem(const assay_valtype_t* type) {
  while (type && type->kind != ASSAY_KIND_TENSOR) type = type->of;
  return type ? type->elem : ASSAY_TYPE_UNDEFINED;
}

static assay_status_t read_item(onnx_reader_t* r, const Onnx__SequenceProto* p, size_t i,
                                const assay_valtype_t* of, assay_tensor_t** out) {
  switch (p->elem_type) {
    case OF_TENSOR:
      return onnx_read_tensor(r, p->tensor_values[i], NULL, out);
    case OF_SPARSE:
      return onnx_read_sparse(r, p->sparse_tensor_values[i], NULL, out);
    case OF_SEQUENCE:
      return read_sequence(r, p->sequence_values[i], of, out);
    case OF_MAP:
      return read_map(r, p->map_values[i], out);
    default:
      return read_optional(r, p->optional_values[i], of, out);
  }
}

static assay_status_t read_sequence(onnx_reader_t* r, const Onnx__SequenceProto* p,
                                    const assay_valtype_t* type, assay_tensor_t** out) {
  const size_t counts[] = {0,
                           p->n_tensor_values,
                           p->n_sparse_tensor_values,
                           p->n_sequence_values,
                           p->n_map_values,
                           p->n_optional_values};
  if (p->elem_type < OF_NOTHING || p->elem_type > OF_OPTIONAL)
    return ASSAY_ERROR(ASSAY_CORRUPT, "a sequence is of type %d, which ONNX does not have",
                       (int)p->elem_type);
  for (int i = 0; i <= OF_OPTIONAL; i++)
    if (counts[i] && i != p->elem_type)
      return ASSAY_ERROR(ASSAY_CORRUPT, "a sequence of type %d holds items of type %d",
                         (int)p->elem_type, i);
  size_t n = counts[p->elem_type];
  const assay_valtype_t* of = type ? type->of : NULL;
  assay_tensor_t** items = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof(assay_tensor_t*), &items));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) st = read_item(r, p, i, of, &items[i]);
  if (!st)
    st = assay_sequence_create(n ? items[0]->type : inner_elem(type), (int64_t)n, items, out);
  for (size_t i = 0; i < n; i++) assay_tensor_release(items[i]);
  assay_free(items);
  return st;
}

static assay_status_t read_optional(onnx_reader_t* r, const Onnx__OptionalProto* p,
                                    const assay_valtype_t* type, assay_tensor_t** out) {
  const assay_valtype_t* of = type ? type->of : NULL;
  assay_tensor_t* item = NULL;
  assay_status_t st = NULL;
  if (p->tensor_value)
    st = onnx_read_tensor(r, p->tensor_value, NULL, &item);
  else if (p->sparse_tensor_value)
    st = onnx_read_sparse(r, p->sparse_tensor_value, NULL, &item);
  else if (p->sequence_value)
    st = read_sequence(r, p->sequence_value, of, &item);
  else if (p->map_value)
    st = read_map(r, p->map_value, &item);
  else if (p->optional_value)
    st = read_optional(r, p->optional_value, of, &item);
  if (!st) st = assay_optional_create(item ? item->type : inner_elem(type), item, out);
  assay_tensor_release(item);
  return st;
}

static assay_status_t read_keys(const Onnx__MapProto* p, assay_tensor_t** out) {
  bool text = p->key_type == ASSAY_TYPE_STRING;
  ASSAY_TRY(onnx_check_elem_type(p->key_type));
  if (!text && !assay_type_is_integer((assay_type_t)p->key_type))
    return ASSAY_ERROR(ASSAY_CORRUPT, "a map has keys of type %s; expected integers or strings",
                       assay_type_name((assay_type_t)p->key_type));
  if (text ? p->n_keys : p->n_string_keys)
    return ASSAY_ERROR(ASSAY_CORRUPT, "a map has keys of another type than it says");
  int64_t n = (int64_t)(text ? p->n_string_keys : p->n_keys);
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(text ? ASSAY_TYPE_STRING : ASSAY_TYPE_INT64, 1, &n, &t));
  assay_status_t st = NULL;
  for (int64_t i = 0; !st && i < n; i++) {
    if (text)
      st =
          assay_tensor_set_string(t, i, (const char*)p->string_keys[i].data, p->string_keys[i].len);
    else
      assay_i64(t)[i] = p->keys[i];
  }
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// One tensor of n elements out of n tensors of one element.
static assay_status_t join_scalars(const assay_tensor_t* sequence, assay_tensor_t** out) {
  int64_t n = sequence->n_items;
  assay_type_t type = n ? sequence->items[0]->type : sequence->type;
  if (!type) type = ASSAY_TYPE_FLOAT;
  assay_tensor_t *t = NULL, *wide = NULL;
  ASSAY_TRY(assay_tensor_create(type, 1, &n, &t));
  assay_status_t st = NULL;
  size_t bytes = assay_store_elem_bytes(t->store);
  for (int64_t i = 0; !st && i < n; i++) {
    assay_tensor_t* item = sequence->items[i];
    if (item->kind != ASSAY_KIND_TENSOR || item->type != type || item->size != 1) {
      st = ASSAY_ERROR(ASSAY_UNSUPPORTED, "value %lld of a map is not one element of %s",
                       (long long)i, assay_type_name(type));
      break;
    }
    st = assay_tensor_widen(item, &wide);
    if (st) break;
    if (type == ASSAY_TYPE_STRING)
      st = assay_tensor_set_string(t, i, assay_strings(wide)->text, assay_strings(wide)->len);
    else
      memcpy((char*)t->data + (size_t)i * bytes, wide->data, bytes);
    assay_tensor_release(wide);
  }
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

static assay_status_t read_map(onnx_reader_t* r, const Onnx__MapProto* p, assay_tensor_t** out) {
  assay_tensor_t *keys = NULL, *sequence = NULL, *values = NULL;
  if (!p->values) return ASSAY_ERROR(ASSAY_CORRUPT, "a map has no values");
  assay_status_t st = read_keys(p, &keys);
  if (!st) st = read_sequence(r, p->values, NULL, &sequence);
  if (!st && sequence->n_items != keys->size)
    st = ASSAY_ERROR(ASSAY_CORRUPT, "a map has %lld keys and %lld values", (long long)keys->size,
                     (long long)sequence->n_items);
  if (!st) st = join_scalars(sequence, &values);
  if (!st) st = assay_map_create(keys, values, out);
  assay_tensor_release(keys);
  assay_tensor_release(sequence);
  assay_tensor_release(values);
  return st;
}

// The message that a value of this type is stored as.
static const ProtobufCMessageDescriptor* message_of(const assay_valtype_t* type) {
  if (!type) return &onnx__tensor_proto__descriptor;
  switch (type->kind) {
    case ASSAY_KIND_SEQUENCE:
      return &onnx__sequence_proto__descriptor;
    case ASSAY_KIND_OPTIONAL:
      return &onnx__optional_proto__descriptor;
    case ASSAY_KIND_MAP:
      return &onnx__map_proto__descriptor;
    default:
      return type->is_sparse ? &onnx__sparse_tensor_proto__descriptor
                             : &onnx__tensor_proto__descriptor;
  }
}

static assay_status_t read_message(onnx_reader_t* r, const ProtobufCMessageDescriptor* kind,
                                   const assay_valtype_t* type, assay_tensor_t** out) {
  ProtobufCMessage* m = NULL;
  ASSAY_TRY(onnx_unpack(kind, assay_mapping_data(r->file), assay_mapping_size(r->file), &m));
  assay_status_t st;
  if (kind == &onnx__sequence_proto__descriptor)
    st = read_sequence(r, (const Onnx__SequenceProto*)m, type, out);
  else if (kind == &onnx__optional_proto__descriptor)
    st = read_optional(r, (const Onnx__OptionalProto*)m, type, out);
  else if (kind == &onnx__map_proto__descriptor)
    st = read_map(r, (const Onnx__MapProto*)m, out);
  else if (kind == &onnx__sparse_tensor_proto__descriptor)
    st = onnx_read_sparse(r, (const Onnx__SparseTensorProto*)m, NULL, out);
  else
    st = onnx_read_tensor(r, (const Onnx__TensorProto*)m, NULL, out);
  onnx_free_message(m);
  return st;
}

assay_status_t assay_onnx_read_value(const char* path, const assay_valtype_t* type,
                                     assay_tensor_t** out) {
  onnx_reader_t r = {0};
  const char *slash = strrchr(path, '/'), *folder = NULL;
  ASSAY_TRY(assay_mapping_open(path, &r.file));
  assay_status_t st = assay_arena_create(&r.arena);
  if (!st && slash)
    st = assay_arena_strndup(r.arena, path, slash == path ? 1 : (size_t)(slash - path), &folder);
  r.folder = folder ? folder : ".";
  if (!st) st = read_message(&r, message_of(type), type, out);
  onnx_reader_deinit(&r);
  assay_arena_destroy(r.arena);
  assay_mapping_release(r.file);
  return assay_status_note(st, "'%s'", path);
}

// ---- writing ----------------------------------------------------------------------------------

static void put_sequence(onnx_builder_t* b, const assay_tensor_t* t);
static void put_optional(onnx_builder_t* b, const assay_tensor_t* t);
static void put_map(onnx_builder_t* b, const assay_tensor_t* t);

static int item_type(const assay_tensor_t* item) {
  switch (item->kind) {
    case ASSAY_KIND_SEQUENCE:
      return OF_SEQUENCE;
    case ASSAY_KIND_MAP:
      return OF_MAP;
    case ASSAY_KIND_OPTIONAL:
      return OF_OPTIONAL;
    default:
      return OF_TENSOR;
  }
}

static void put_item(onnx_builder_t* b, uint32_t number, assay_tensor_t* item) {
  onnx_mark_t mark = onnx_begin(b, number);
  switch (item->kind) {
    case ASSAY_KIND_SEQUENCE:
      put_sequence(b, item);
      break;
    case ASSAY_KIND_MAP:
      put_map(b, item);
      break;
    case ASSAY_KIND_OPTIONAL:
      put_optional(b, item);
      break;
    default:
      onnx_put_tensor(b, item, true);
  }
  onnx_end(b, mark);
}

static void put_sequence(onnx_builder_t* b, const assay_tensor_t* t) {
  int type = t->n_items ? item_type(t->items[0]) : OF_TENSOR;
  onnx_put_int(b, 2, type);
  for (int64_t i = 0; i < t->n_items; i++) put_item(b, (uint32_t)(2 + type), t->items[i]);
}

static void put_optional(onnx_builder_t* b, const assay_tensor_t* t) {
  int type = t->n_items ? item_type(t->items[0]) : OF_NOTHING;
  onnx_put_int(b, 2, type);
  if (t->n_items) put_item(b, (uint32_t)(2 + type), t->items[0]);
}

// The values of a map, one tensor each.
static assay_status_t put_scalars(onnx_builder_t* b, assay_tensor_t* values) {
  assay_tensor_t *wide = NULL, *one = NULL;
  ASSAY_TRY(assay_tensor_widen(values, &wide));
  size_t bytes = assay_store_elem_bytes(wide->store);
  assay_status_t st = NULL;
  for (int64_t i = 0; !st && i < wide->size; i++) {
    st = assay_tensor_create(wide->type, 0, NULL, &one);
    if (st) break;
    if (wide->store == ASSAY_STORE_STR)
      st = assay_tensor_set_string(one, 0, assay_strings(wide)[i].text, assay_strings(wide)[i].len);
    else
      memcpy(one->data, (const char*)wide->data + (size_t)i * bytes, bytes);
    if (!st) put_item(b, 3, one);
    assay_tensor_release(one);
  }
  assay_tensor_release(wide);
  return st;
}

static void put_map(onnx_builder_t* b, const assay_tensor_t* t) {
  const assay_tensor_t* keys = t->items[0];
  onnx_put_int(b, 2, keys->type);
  for (int64_t i = 0; i < keys->size; i++) {
    if (keys->type == ASSAY_TYPE_STRING)
      onnx_put_blob(b, 4, assay_strings(keys)[i].text, assay_strings(keys)[i].len);
    else
      onnx_put_int(b, 3, assay_i64(keys)[i]);
  }
  onnx_mark_t mark = onnx_begin(b, 5);
  onnx_put_int(b, 2, OF_TENSOR);
  assay_status_t st = put_scalars(b, t->items[1]);
  b->status = assay_status_join(b->status, st);
  onnx_end(b, mark);
}

assay_status_t assay_onnx_write_value(const char* path, assay_tensor_t* value, const char* name) {
  onnx_builder_t b = {0};
  if (value->kind == ASSAY_KIND_TENSOR) {
    onnx_put_tensor(&b, value, true);
    onnx_put_text(&b, 8, name ? name : "");
  } else {
    onnx_put_text(&b, 1, name ? name : "");
    if (value->kind == ASSAY_KIND_SEQUENCE)
      put_sequence(&b, value);
    else if (value->kind == ASSAY_KIND_OPTIONAL)
      put_optional(&b, value);
    else
      put_map(&b, value);
  }
  assay_status_t st = b.status;
  b.status = NULL;
  assay_writer_t* w = NULL;
  if (!st) st = assay_writer_open(path, &w);
  if (!st) st = onnx_built_write(&b, w);
  if (!st) {
    st = assay_writer_commit(w);
    w = NULL;
  }
  assay_writer_abandon(w);
  onnx_builder_deinit(&b);
  return st;
}
