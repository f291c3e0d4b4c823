// What passes that group quantizers with other nodes share.
#ifndef ASSAY_PASSES_INT8_QUANTIZERS_H_
#define ASSAY_PASSES_INT8_QUANTIZERS_H_

#include "passes/pass.h"

// Scale and zero point of QuantizeLinear or DequantizeLinear. False: they are not one number each,
// or the scale is not positive.
bool assay_quantizer_numbers(const assay_node_t* n, float* scale, float* zero);
// A node that does what n, one of the top graph with one output, does, at position `at`.
assay_status_t assay_node_repeat(assay_pass_context_t* c, const assay_node_t* n, size_t at,
                                 assay_node_t** out) ASSAY_MUST_USE;
// The same after n and for these readers, who read it in place of n's; uses lose their reads.
assay_status_t assay_node_repeat_for(assay_pass_context_t* c, assay_uses_t* uses,
                                     const assay_node_t* n, const assay_node_t* const* readers,
                                     size_t n_readers, assay_node_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_PASSES_INT8_QUANTIZERS_H_
