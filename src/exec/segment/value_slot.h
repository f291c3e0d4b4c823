// Values that a run holds as tensors: what the caller gives, constants, what the emulated engine
// makes, and what passes from one segment of layers to the next. All row-major.
#ifndef ASSAY_EXEC_SEGMENT_VALUE_SLOT_H_
#define ASSAY_EXEC_SEGMENT_VALUE_SLOT_H_

#include "ir/ir.h"
#include "tensor/tensor.h"

// The elements that a value has in every run; NULL: it is not a constant, or an input whose
// constant is only what it is without the caller's.
static inline assay_tensor_t* assay_value_slot_constant(const assay_value_t* v) {
  return v->is_input ? NULL : v->constant;
}

typedef struct assay_value_slot {
  assay_tensor_t* canonical;  // NULL: not in this form
  assay_tensor_t* packed;     // NULL: not in this form
  bool keep;                  // a constant, which the next run reads again
} assay_value_slot_t;

void assay_value_slot_clear(assay_value_slot_t* v);
bool assay_value_slot_is_set(const assay_value_slot_t* v);
// What it holds, in either form, for its shape; NULL if nothing.
const assay_tensor_t* assay_value_slot_any(const assay_value_slot_t* v);
// Empties the value and puts a tensor in: one reference is taken over.
void assay_value_slot_put(assay_value_slot_t* v, assay_tensor_t* take_tensor);
// In the canonical form with the declared type; borrowed.
assay_status_t assay_value_slot_canonical(assay_value_slot_t* v, assay_type_t declared,
                                          assay_tensor_t** out);
// Packed, with the elements at a multiple of their size; borrowed. UNSUPPORTED for what is no
// tensor of numbers.
assay_status_t assay_value_slot_packed(assay_value_slot_t* v, assay_type_t type,
                                       assay_tensor_t** out);

#endif  // ASSAY_EXEC_SEGMENT_VALUE_SLOT_H_
