// Sizes of transposed convolutions: what their evaluation and the kernels of backends share.
//
// Input element i of an axis is added to output elements i * stride + k * dilation - pads[0], one
// for each kernel position k, where these lie inside.
#ifndef ASSAY_OPS_CONV_CONV_TRANSPOSE_H_
#define ASSAY_OPS_CONV_CONV_TRANSPOSE_H_

#include "ops/conv/window.h"

// w: window o of the *output* (axis.in) belongs to element o of the *input* (axis.out).
typedef struct assay_conv_transpose {
  int64_t n, c, m, group, cg, mg;  // as in ops/conv/conv.h
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

// Lines of the input and the output lie along the last axis. A row of the kernel, its positions
// along the last axis, adds one line of the input to one of the output.

// The line of the input that is added to a line of the output; -1: none.
static inline int64_t assay_conv_transpose_in_line(const assay_conv_transpose_t* t, int64_t line,
                                                   int64_t row) {
  int64_t in = 0, step = 1;
  for (int d = t->w.rank - 1; d-- > 0;) {
    const assay_window_axis_t* a = &t->w.axis[d];
    const int64_t from = line % a->in + a->pads[0] - row % a->kernel * a->dilation;
    if (from < 0 || from % a->stride || from / a->stride >= a->out) return -1;
    in += from / a->stride * step;
    step *= a->out;
    line /= a->in;
    row /= a->kernel;
  }
  return in;
}

// The other way round: the line of the output; -1: none.
static inline int64_t assay_conv_transpose_out_line(const assay_conv_transpose_t* t, int64_t line,
                                                    int64_t row) {
  int64_t out = 0, step = 1;
  for (int d = t->w.rank - 1; d-- > 0;) {
    const assay_window_axis_t* a = &t->w.axis[d];
    const int64_t to = line % a->out * a->stride + row % a->kernel * a->dilation - a->pads[0];
    if (to < 0 || to >= a->in) return -1;
    out += to * step;
    step *= a->in;
    line /= a->out;
    row /= a->kernel;
  }
  return out;
}

// Elements [*first, *end) of a line of the input that kernel position `tap` of the last axis adds
// to places [from, to) of the output; the first one to place *at.
static inline void assay_conv_transpose_range(const assay_window_axis_t* a, int64_t tap,
                                              int64_t from, int64_t to, int64_t* first,
                                              int64_t* end, int64_t* at) {
  const int64_t shift = tap * a->dilation - a->pads[0];
  *first = from - shift > 0 ? (from - shift + a->stride - 1) / a->stride : 0;
  *end = to - shift > 0 ? (to - shift + a->stride - 1) / a->stride : 0;
  if (*end > a->out) *end = a->out;
  if (*first > *end) *first = *end;
  *at = *first * a->stride + shift;
}

#endif  // ASSAY_OPS_CONV_CONV_TRANSPOSE_H_
