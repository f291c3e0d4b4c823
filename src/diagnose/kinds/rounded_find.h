// Whether golden is of the network before its weights were rounded.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_FIND_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_FIND_H_

#include "diagnose/chain.h"

typedef enum assay_rounded_verdict {
  ASSAY_ROUNDED_NO = 0,  // the rounding of weights does not explain how golden differs
  ASSAY_ROUNDED_YES,     // it does: with outputs alone in size, with inner values at most products
  ASSAY_ROUNDED_EXACT,   // golden is what the model gives without the quantizers that it spells out
  ASSAY_ROUNDED_MORE,    // outputs differ by more: there may be a fault besides
} assay_rounded_verdict_t;

// Asked where golden differs from truth by more than float32's rounding explains: the model's
// rounded weights are moved by up to half a step, a few draws; what that does to golden's values,
// over all samples, is about what the rounding of those weights did. A fault's effect has no reason
// to be of that size, at every output.
//   options   as for assay_chain_run
//   out       the weights; empty where the verdict is NO
assay_status_t assay_rounded_find(const assay_model_t* model, const assay_samples_t* inputs,
                                  const assay_golden_t* golden,
                                  const assay_export_options_t* options,
                                  assay_rounded_weights_t* out,
                                  assay_rounded_verdict_t* out_verdict) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_FIND_H_
