// Values that a run holds as tensors: what the caller gives, constants, what the emulated engine
// makes, and what passes from one segment of layers to the next.
#include "exec/segment/value_slot.h"

#include "formats/format.h"

void assay_value_slot_clear(assay_value_slot_t* v) {
  assay_tensor_release(v->canonical);
  assay_tensor_release(v->packed);
  *v = (assay_value_slot_t){0};
}

bool assay_value_slot_is_set(const assay_value_slot_t* v) { return v->canonical || v->packed; }

const assay_tensor_t* assay_value_slot_any(const assay_value_slot_t* v) {
  return v->canonical ? v->canonical : v->packed;
}

void assay_value_slot_put(assay_value_slot_t* v, assay_tensor_t* take_tensor) {
  assay_value_slot_clear(v);
  if (take_tensor->kind == ASSAY_KIND_TENSOR &&
      (take_tensor->store == ASSAY_STORE_PACKED || take_tensor->store == ASSAY_STORE_NARROW))
    v->packed = take_tensor;
  else
    v->canonical = take_tensor;
}

assay_status_t assay_value_slot_canonical(assay_value_slot_t* v, assay_type_t declared,
                                          assay_tensor_t** out) {
  if (!v->canonical) {
    assay_tensor_t* wide = NULL;
    ASSAY_TRY(assay_tensor_widen(v->packed, &wide));
    assay_status_t st = assay_tensor_retype(wide, declared, &v->canonical);
    assay_tensor_release(wide);
    if (st) return st;
  }
  *out = v->canonical;
  return NULL;
}

// A packed tensor of this element type, by way of the canonical form unless it lies so.
static assay_status_t pack(assay_tensor_t* t, assay_type_t type, assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *typed = NULL;
  if (t->store == ASSAY_STORE_NARROW && type == t->narrow) return assay_tensor_narrowed(t, out);
  if (t->store == ASSAY_STORE_NARROW && type == t->type) return assay_tensor_pack(t, out);
  assay_status_t st = assay_tensor_widen(t, &wide);
  if (!st) st = assay_tensor_retype(wide, type, &typed);
  if (!st) st = assay_tensor_pack(typed, out);
  assay_tensor_release(wide);
  assay_tensor_release(typed);
  return st;
}

assay_status_t assay_value_slot_packed(assay_value_slot_t* v, assay_type_t type,
                                       assay_tensor_t** out) {
  const assay_tensor_t* any = assay_value_slot_any(v);
  if (!any || any->kind != ASSAY_KIND_TENSOR || any->store == ASSAY_STORE_STR)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "a value that is not a tensor of numbers has no packed form");
  // What lies in a model's file may lie at any address.
  const size_t elem = (size_t)(assay_type_bits(type) + 7) / 8;
  assay_tensor_t* made = NULL;
  if (v->packed && v->packed->type == type && v->packed->store == ASSAY_STORE_PACKED) {
    if ((uintptr_t)v->packed->data % elem == 0) return *out = v->packed, NULL;
    ASSAY_TRY(assay_tensor_copy(v->packed, &made));
  } else {
    ASSAY_TRY(pack(v->canonical ? v->canonical : v->packed, type, &made));
  }
  assay_tensor_release(v->packed);
  *out = v->packed = made;
  return NULL;
}
