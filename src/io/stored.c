// Numbers as files of arrays keep them: packed, in types that those files have.
#include "io/stored.h"

#include "formats/format.h"

assay_type_t assay_file_elem_type(assay_type_t type) {
  if (assay_type_is_float(type) && assay_type_bits(type) < 16) return ASSAY_TYPE_FLOAT;
  switch (type) {
    case ASSAY_TYPE_BFLOAT16:
      return ASSAY_TYPE_FLOAT;
    case ASSAY_TYPE_INT4:
    case ASSAY_TYPE_INT2:
      return ASSAY_TYPE_INT8;
    case ASSAY_TYPE_UINT4:
    case ASSAY_TYPE_UINT2:
      return ASSAY_TYPE_UINT8;
    default:
      return type;
  }
}

// Floats of whole bytes that only some files have a name for.
static bool is_small_float(assay_type_t type) {
  return type == ASSAY_TYPE_BFLOAT16 || type == ASSAY_TYPE_FLOAT8E4M3FN ||
         type == ASSAY_TYPE_FLOAT8E5M2 || type == ASSAY_TYPE_FLOAT8E8M0;
}

void assay_stored_deinit(assay_stored_t* s) {
  assay_tensor_release(s->tensor);
  *s = (assay_stored_t){0};
}

assay_status_t assay_stored_make(assay_tensor_t* t, bool small_floats, assay_stored_t* out) {
  assay_tensor_t *wide = NULL, *as = NULL, *packed = NULL;
  int64_t bytes = 0;
  if (t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "%s cannot be kept as plain numbers; save them as %s",
                       t->kind == ASSAY_KIND_TENSOR ? "strings" : "sequences, optionals and maps",
                       t->kind == ASSAY_KIND_TENSOR ? "npz" : ".pb");
  const assay_type_t type =
      small_floats && is_small_float(t->type) ? t->type : assay_file_elem_type(t->type);
  assay_status_t st = NULL;
  if (type == t->type && t->store == ASSAY_STORE_PACKED) {
    packed = assay_tensor_retain(t);
  } else {
    st = assay_tensor_widen(t, &wide);
    if (!st) st = assay_tensor_retype(wide, type, &as);
    if (!st) st = assay_tensor_pack(as, &packed);
  }
  assay_tensor_release(wide);
  assay_tensor_release(as);
  if (!st && !assay_type_packed_bytes(type, t->size, &bytes)) st = assay_status_no_memory();
  if (st) return assay_tensor_release(packed), st;
  *out = (assay_stored_t){packed, bytes};
  return NULL;
}
