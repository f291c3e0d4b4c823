// Finding a model's value for golden tensors whose names say nothing: by their elements, else by
// their shape and statistics.
//
// Truth of the model on the same inputs is walked node by node. A golden tensor whose elements are
// a value's, but for a thousandth, is that value. From there on truth continues with golden, so
// that after a fault elements agree again. What the faulty node itself gives agrees with nothing:
// for it the tensor of the same shape whose distribution is much the nearest is taken, the first
// such value of the graph, and the walk begins again. That is done only where an output differs: a
// healthy model's golden may hold tensors that the model does not have.
#ifndef ASSAY_DIAGNOSE_GOLDEN_CONTENT_H_
#define ASSAY_DIAGNOSE_GOLDEN_CONTENT_H_

#include "account/golden/golden.h"

typedef struct assay_content_options {
  bool unquantized;
  uint64_t seed;
} assay_content_options_t;

// Sets value and match of those in g that have no value yet; notes say what was taken for what.
//   inputs   one sample, in the order of the graph's inputs
// Golden tensors may have more rows than the model's values: the first ones count.
assay_status_t assay_golden_match_content(assay_golden_t* g, const assay_model_t* model,
                                          assay_tensor_t* const* inputs,
                                          const assay_content_options_t* options) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_GOLDEN_CONTENT_H_
