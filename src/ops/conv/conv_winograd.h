// Rounding bounds of convolutions that are computed by Winograd's minimal filtering.
#ifndef ASSAY_OPS_CONV_CONV_WINOGRAD_H_
#define ASSAY_OPS_CONV_CONV_WINOGRAD_H_

#include "ops/bound.h"
#include "ops/conv/conv.h"

// Whether the algorithm that an engine names can compute this convolution: kernels of 3, strides
// of 1, at most 3 axes. Others are computed directly.
bool assay_conv_winograd_fits(const assay_rounding_t* r, const assay_conv_t* s);

// Tiles along an axis make `out` places each, the dilation apart. They start at the output's first
// places, as many as the dilation says, and then after those that these make, and so on.
static inline int64_t assay_conv_winograd_tiles(const assay_window_axis_t* a, int out) {
  const int64_t whole = a->dilation * out, left = a->out % whole;
  return a->out / whole * a->dilation + (left < a->dilation ? left : a->dilation);
}
static inline int64_t assay_conv_winograd_tile(int64_t i, int64_t dilation, int out) {
  return i / dilation * dilation * out + i % dilation;
}

// Adds the limits of y [n, m, out...] to guaranteed and probable: bias is NULL or m elements.
assay_status_t assay_conv_winograd_limits(const assay_rounding_t* r, const assay_conv_t* s,
                                          const double* x, const double* w, const double* bias,
                                          double* guaranteed, double* probable) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_CONV_CONV_WINOGRAD_H_
