// Which arithmetic golden was computed in.
#ifndef ASSAY_DIAGNOSE_KINDS_ARITHMETIC_FIND_H_
#define ASSAY_DIAGNOSE_KINDS_ARITHMETIC_FIND_H_

#include "diagnose/chain.h"

// Asked where golden differs from truth by more than float32's rounding explains: emulates the
// model in each arithmetic and takes the one that misses truth by what golden does. out->format is
// NONE where none does, or where the model quantizes.
//   options   as for assay_chain_run; of its seconds a part is used
assay_status_t assay_golden_arithmetic_find(const assay_model_t* model,
                                            const assay_samples_t* inputs,
                                            const assay_golden_t* golden,
                                            const assay_export_options_t* options,
                                            assay_golden_arithmetic_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_ARITHMETIC_FIND_H_
