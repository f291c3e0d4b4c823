// A model without the quantizers that its nodes spell out, against golden.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_WITHOUT_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_WITHOUT_H_

#include "diagnose/chain.h"
#include "diagnose/kinds/rounded.h"

// *out: whether golden is what the model gives where nothing is rounded and cut between a step and
// what takes it back. Nothing else explains that to float32's rounding at every value.
//   options   as for assay_chain_run
assay_status_t assay_rounded_without(const assay_model_t* model, const assay_samples_t* inputs,
                                     const assay_golden_t* golden,
                                     const assay_export_options_t* options,
                                     const assay_rounded_weights_t* rounded,
                                     bool* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_WITHOUT_H_
