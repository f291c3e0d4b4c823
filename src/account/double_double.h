// Truth of a layer in twice the precision of float64, for layers whose own format is float64: its
// nodes one after the other by their rows' definitions (ops/dd_array.h), rounded once at the
// end.
#ifndef ASSAY_ACCOUNT_DOUBLE_DOUBLE_H_
#define ASSAY_ACCOUNT_DOUBLE_DOUBLE_H_

#include "ops/op.h"

typedef struct assay_double_double {
  const assay_node_t* const* nodes;
  size_t n_nodes;
  // Evaluates a node in float64; with low (by output, to be filled) in arithmetic DOUBLE_DOUBLE.
  assay_status_t (*evaluate)(void* user, const assay_node_t* node, assay_tensor_t* const* in,
                             assay_tensor_t** out, assay_tensor_t** low);
  void* user;
} assay_double_double_t;

// in: inputs of all nodes, one after the other, NULL for hidden ones. out: of the last node, as
// made in float64; replaced where the dd result is finite and of the same shape. Errors:
// UNSUPPORTED if a node is not known in twice the precision (out is as it was).
assay_status_t assay_double_double_run(const assay_double_double_t* f, assay_tensor_t* const* in,
                                       assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_DOUBLE_DOUBLE_H_
