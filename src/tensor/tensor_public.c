// The public face of tensors: include/assay/tensor.h.
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "tensor/tensor.h"

assay_status_t assay_tensor_make(assay_type_t type, int rank, const int64_t* dims, const void* data,
                                 size_t bytes, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  int64_t want = 0;
  if (type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "tensors of strings are made with assay_tensor_make_strings");
  ASSAY_TRY(assay_tensor_create_packed(type, rank, dims, &t));
  if (!assay_type_packed_bytes(type, t->size, &want) || (size_t)want != bytes) {
    assay_status_t st =
        ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "data has %zu bytes, but %s%s takes %lld", bytes,
                    assay_type_name(type), ASSAY_DIMS_TEXT(t), (long long)want);
    return assay_tensor_release(t), st;
  }
  if (bytes) memcpy(t->data, data, bytes);
  *out = t;
  return NULL;
}

assay_status_t assay_tensor_make_strings(int rank, const int64_t* dims, const char* const* texts,
                                         const size_t* lengths, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_STRING, rank, dims, &t));
  assay_status_t st = NULL;
  for (int64_t i = 0; !st && i < t->size; i++)
    st = assay_tensor_set_string(t, i, texts[i], lengths[i]);
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

assay_status_t assay_tensor_make_container(assay_kind_t kind, assay_type_t type, int64_t n,
                                           assay_tensor_t* const* items, assay_tensor_t** out) {
  switch (kind) {
    case ASSAY_KIND_SEQUENCE:
      if (n >= 0) return assay_sequence_create(type, n, items, out);
      break;
    case ASSAY_KIND_OPTIONAL:
      if (n == 0 || n == 1) return assay_optional_create(type, n ? items[0] : NULL, out);
      break;
    case ASSAY_KIND_MAP:
      if (n == 2) return assay_map_create(items[0], items[1], out);
      break;
    case ASSAY_KIND_TENSOR:
      break;
  }
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "a container is a sequence of any number of items, an optional of 0 or 1, or a map of 2 "
      "(keys and values); got kind %d with %lld",
      (int)kind, (long long)n);
}

assay_kind_t assay_tensor_kind(const assay_tensor_t* t) { return t->kind; }
assay_type_t assay_tensor_type(const assay_tensor_t* t) { return t->type; }
int assay_tensor_rank(const assay_tensor_t* t) { return t->rank; }
const int64_t* assay_tensor_dims(const assay_tensor_t* t) { return t->dims; }
int64_t assay_tensor_size(const assay_tensor_t* t) { return t->size; }

const void* assay_tensor_data(const assay_tensor_t* t) {
  return t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_PACKED ? t->data : NULL;
}

size_t assay_tensor_bytes(const assay_tensor_t* t) {
  int64_t bytes = 0;
  if (t->kind != ASSAY_KIND_TENSOR || !assay_type_packed_bytes(t->type, t->size, &bytes)) return 0;
  return (size_t)bytes;
}

static assay_status_t too_small(const char* what, size_t have, size_t want) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "room for %zu %s; the tensor has %zu", have, what,
                     want);
}

assay_status_t assay_tensor_read(assay_tensor_t* t, void* out_data, size_t bytes) {
  assay_tensor_t* packed = NULL;
  if (bytes < assay_tensor_bytes(t)) return too_small("bytes", bytes, assay_tensor_bytes(t));
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  if (assay_tensor_bytes(t)) memcpy(out_data, packed->data, assay_tensor_bytes(t));
  assay_tensor_release(packed);
  return NULL;
}

assay_status_t assay_tensor_read_f64(assay_tensor_t* t, double* out_values, size_t n) {
  assay_tensor_t* wide = NULL;
  if (t->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(t->type))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "only tensors of floats can be read as float64");
  if (n < (size_t)t->size) return too_small("elements", n, (size_t)t->size);
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  if (t->size) memcpy(out_values, assay_f64(wide), (size_t)t->size * sizeof *out_values);
  assay_tensor_release(wide);
  return NULL;
}

assay_status_t assay_tensor_convert(assay_tensor_t* t, assay_type_t type, assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *typed = NULL;
  if (t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "only tensors of numbers can be converted");
  if (type == t->type) return assay_tensor_pack(t, out);
  if (!assay_type_is_float(type) || !assay_type_is_float(t->type))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "a tensor of %s cannot be converted to %s: only floats to floats",
                       assay_type_name(t->type), assay_type_name(type));
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_retype(wide, type, &typed);
  if (!st) st = assay_tensor_pack(typed, out);
  assay_tensor_release(typed);
  assay_tensor_release(wide);
  return st;
}

const char* assay_tensor_string(const assay_tensor_t* t, int64_t i, size_t* out_length) {
  if (t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_STR || i < 0 || i >= t->size)
    return NULL;
  const assay_string_t* s = &assay_strings(t)[i];
  *out_length = s->len;
  return s->text ? s->text : "";
}

int64_t assay_tensor_item_count(const assay_tensor_t* t) { return t->n_items; }
assay_tensor_t* assay_tensor_item(const assay_tensor_t* t, int64_t i) {
  return i >= 0 && i < t->n_items ? t->items[i] : NULL;
}
