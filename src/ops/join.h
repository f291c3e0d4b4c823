// The type that covers two types: what a value is that comes from one of two places, such as the
// branches of If, the rounds of Loop or the items of a sequence.
#ifndef ASSAY_OPS_JOIN_H_
#define ASSAY_OPS_JOIN_H_

#include "ir/ir.h"

// Whether one value may have both types: kinds and element types agree as far as they are known.
bool assay_valtype_agree(const assay_valtype_t* a, const assay_valtype_t* b);
// Whether they say the same, unknown dimensions included.
bool assay_valtype_same(const assay_valtype_t* a, const assay_valtype_t* b);
// The type that covers two that agree: dimensions that are not known to be equal become unknown, so
// do ranks. NULL covers everything.
assay_status_t assay_valtype_join(assay_model_t* m, const assay_valtype_t* a,
                                  const assay_valtype_t* b,
                                  const assay_valtype_t** out) ASSAY_MUST_USE;
// The type without any shape.
assay_status_t assay_valtype_strip(assay_model_t* m, const assay_valtype_t* t,
                                   const assay_valtype_t** out) ASSAY_MUST_USE;
// A sequence or optional of tensors of one element type (UNDEFINED: not known) and any shape.
assay_status_t assay_valtype_container(assay_model_t* m, assay_kind_t kind, assay_type_t elem,
                                       const assay_valtype_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_JOIN_H_
