// QuantizeLinear and DequantizeLinear, one after the other, before an input of a node.
#ifndef ASSAY_EDIT_WEIGHTS_QUANTIZER_PAIR_H_
#define ASSAY_EDIT_WEIGHTS_QUANTIZER_PAIR_H_

#include "passes/edit.h"

// The scales of a value: one, or as many as the dimensions say.
typedef struct assay_pair_scales {
  double* at;
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  int axis;       // that they lie along; -1: there is one
  int64_t block;  // elements along it that share one; 0: each has its own
} assay_pair_scales_t;

// Quantizes v to a type, with zero points of 0, and dequantizes it again before `n`.
assay_status_t assay_quantizer_pair_insert(assay_edit_t* x, assay_node_t* n, assay_value_t* v,
                                           assay_type_t type, const assay_pair_scales_t* scales,
                                           assay_value_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_WEIGHTS_QUANTIZER_PAIR_H_
