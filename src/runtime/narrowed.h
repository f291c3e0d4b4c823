// Constants that a plan file holds in 16 bits (docs/adr/0033-constants-in-16-bits.md): which ones
// do as it is written, and what is asked of them as it is read.
#ifndef ASSAY_RUNTIME_NARROWED_H_
#define ASSAY_RUNTIME_NARROWED_H_

#include "exec/backend.h"
#include "plan/plan.h"

// Puts constants in their 16 bits (ASSAY_STORE_NARROW) into copies of a plan's model as it was
// compiled and as it was given, which have the ids of what they are copies of. What both have stays
// what both have: in 16 bits where no pass reads it, and else in float32.
assay_status_t assay_narrow_models(const assay_plan_t* plan, const assay_backend_t* backend,
                                   assay_model_t* compiled, assay_model_t* source) ASSAY_MUST_USE;
// Whether those of a plan that was read are such as a backend takes. Errors: CORRUPT.
assay_status_t assay_narrow_check(const assay_plan_t* plan,
                                  const assay_backend_t* backend) ASSAY_MUST_USE;
// Makes all of a model's constants float32 that lie in 16 bits, so that passes may read them.
assay_status_t assay_narrow_widen(assay_model_t* m) ASSAY_MUST_USE;
// Whether a constant in 16 bits, or in any store, is what another one becomes when it is stored so.
assay_status_t assay_narrow_same(assay_tensor_t* stored, assay_tensor_t* t,
                                 bool* out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_NARROWED_H_
