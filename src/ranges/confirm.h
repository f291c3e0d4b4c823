// Whether an input breaks the model: one run of the emulated engine, every layer watched.
#ifndef ASSAY_RANGES_CONFIRM_H_
#define ASSAY_RANGES_CONFIRM_H_

#include "ranges/witness.h"
#include "runtime/executor.h"

typedef struct assay_confirm assay_confirm_t;

// ranges: integers are looked at where it has a hazard of theirs. All outlive it.
assay_status_t assay_confirm_create(const assay_plan_t* plan, const assay_ranges_t* ranges,
                                    assay_confirm_t** out) ASSAY_MUST_USE;
void assay_confirm_destroy(assay_confirm_t* c);  // NULL is allowed

// Runs the inputs (by graph input; NULL: its initializer). *out_broken: where the first number was
// made that is not finite or not right, and how; only node, value, kind, figure and at_output are
// set.
assay_status_t assay_confirm_run(assay_confirm_t* c, assay_tensor_t* const* inputs,
                                 bool* out_broken, assay_witness_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_CONFIRM_H_
