// The model that a precision makes, as one to be written: 16-bit values, and Casts between types.
#ifndef ASSAY_CHECK_MIXED_MODEL_H_
#define ASSAY_CHECK_MIXED_MODEL_H_

#include "diagnose/fp32_set.h"

// What an unfused plan of the model in this precision computes (passes/mixed.h). Layers in fp16 and
// bf16 have values of these types, all others float32 ones, whatever types the model declared. What
// follows from sizes stays in float32.
// Errors: UNSUPPORTED if the operator set is too old for a type.
assay_status_t assay_mixed_model(assay_model_t* model, const assay_precision_t* precision,
                                 uint64_t seed, assay_model_t** out) ASSAY_MUST_USE;
// The same with a fix of the precision that was asked for.
assay_status_t assay_mixed_model_of_fix(assay_model_t* model, const assay_precision_t* asked,
                                        const assay_fix_t* fix, uint64_t seed,
                                        assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_MIXED_MODEL_H_
