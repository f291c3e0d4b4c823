// Sizes of transposed convolutions: what their evaluation and the kernels of backends share.
//
// Input element i of an axis is added to output elements i * stride + k * dilation - pads[0], one
// for each kernel position k, where these lie inside.
#ifndef ASSAY_OPS_CONV_TRANSPOSE_H_
#define ASSAY_OPS_CONV_TRANSPOSE_H_

#include "ops/window.h"

// w: window o of the *output* (axis.in) belongs to element o of the *input* (axis.out).
typedef struct assay_conv_transpose {
  int64_t n, c, m, group, cg, mg;  // as in ops/conv.h
  int64_t kernel_size, in_size, out_size;
  assay_window_t w;
  int64_t output_padding[ASSAY_MAX_RANK];
  int64_t output_shape[ASSAY_MAX_RANK];  // -1: not given
} assay_conv_transpose_t;

// Reads and checks attributes and shapes: x [n, c, in...], w [c, m / group, kernel...].
//   bias   NULL: none
//   since  of the operator's row: 1 or 11
assay_status_t assay_conv_transpose_read(const assay_node_t* node, const assay_tensor_t* x,
                                         const assay_tensor_t* w, const assay_tensor_t* bias,
                                         int since, assay_conv_transpose_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_CONV_TRANSPOSE_H_
