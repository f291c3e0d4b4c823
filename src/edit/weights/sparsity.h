// Weights of which two of every four are zero, along the axis that products sum over.
#ifndef ASSAY_EDIT_WEIGHTS_SPARSITY_H_
#define ASSAY_EDIT_WEIGHTS_SPARSITY_H_

#include "ir/ir.h"

// A weight that can be sparse.
typedef struct assay_sparse_weight {
  assay_value_t* value;  // an initializer of the main graph
  int axis;              // that is summed over
  bool fits;             // its length is a multiple of 4, and the weight is of floats
} assay_sparse_weight_t;

// Weights of Conv, Gemm and MatMul, each once, in the order of the nodes; also such as go through
// Q/DQ, Cast or Transpose. The list lives in the model's arena.
assay_status_t assay_sparsity_find(assay_model_t* m, assay_sparse_weight_t** out,
                                   size_t* out_n) ASSAY_MUST_USE;
// Whether two of every four elements along the axis are zero.
assay_status_t assay_sparsity_check(const assay_sparse_weight_t* w, bool* out) ASSAY_MUST_USE;
// Makes the two smallest of every four zero.
assay_status_t assay_sparsity_prune(const assay_sparse_weight_t* w) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_WEIGHTS_SPARSITY_H_
