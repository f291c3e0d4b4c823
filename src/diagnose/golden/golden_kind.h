// Whether golden of a model that quantizes is of the network before (float), or of one that
// quantizes, too: quantization-aware training, or the model itself, run by another engine.
#ifndef ASSAY_DIAGNOSE_GOLDEN_KIND_H_
#define ASSAY_DIAGNOSE_GOLDEN_KIND_H_

#include "account/golden/golden.h"

// Golden that has a quantizer's steps as integers quantizes. Else both truths, as written and
// unquantized, are evaluated on one sample; each golden value that is much nearer to one of them
// speaks for it, and the majority tells; where none does, those that are a little nearer. Where as
// many speak for both, golden is the float network's. A model that quantizes nothing: false.
//   inputs   in the order of the graph's inputs
// *out_sure: golden has integers, or lies much nearer to one of the truths; of books, where it is
// as written: some value is so to rounding; of the float network: some value speaks for it, if
// little.
//   outputs  golden of the graph's outputs where golden has them as samples alone; NULL: none
assay_status_t assay_golden_is_quantized(const assay_golden_t* golden, const assay_model_t* model,
                                         assay_tensor_t* const* inputs,
                                         assay_tensor_t* const* outputs, uint64_t seed, bool* out,
                                         bool* out_sure) ASSAY_MUST_USE;

// The same of golden outputs alone, as samples; golden NULL or empty: false.
assay_status_t assay_golden_outputs_are_quantized(const assay_model_t* model,
                                                  const assay_samples_t* inputs,
                                                  const assay_samples_t* golden, uint64_t seed,
                                                  bool* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_GOLDEN_KIND_H_
