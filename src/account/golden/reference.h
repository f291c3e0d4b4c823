// Another model as golden: what it makes of the same inputs, in float64.
#ifndef ASSAY_ACCOUNT_GOLDEN_REFERENCE_H_
#define ASSAY_ACCOUNT_GOLDEN_REFERENCE_H_

#include "data/samples.h"

// Evaluates the model in a file on the samples of `model`: a run each, of arrays that have the
// names of the model's outputs. Inputs and outputs go by name, those that are left by position,
// with a line in *notes. Of a single sample there are inner values, too, that both models have
// under one name, in one type and shape, from an operator of one kind. Errors: INVALID_ARGUMENT
// inputs or outputs do not fit; those of loading and evaluating.
assay_status_t assay_reference_run(const char* path, const assay_model_t* model,
                                   const assay_samples_t* inputs, uint64_t seed, assay_str_t* notes,
                                   assay_saved_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_GOLDEN_REFERENCE_H_
