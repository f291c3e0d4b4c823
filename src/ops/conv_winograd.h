// Rounding bounds of convolutions that are computed by Winograd's minimal filtering.
#ifndef ASSAY_OPS_CONV_WINOGRAD_H_
#define ASSAY_OPS_CONV_WINOGRAD_H_

#include "ops/bound.h"
#include "ops/conv.h"

// Whether the algorithm that an engine names can compute this convolution: kernels of 3, strides
// and dilations of 1, at most 3 axes. Others are computed directly.
bool assay_conv_winograd_fits(const assay_rounding_t* r, const assay_conv_t* s);

// Adds the limits of y [n, m, out...] to guaranteed and probable: bias is NULL or m elements. Tiles
// start at output 0.
assay_status_t assay_conv_winograd_limits(const assay_rounding_t* r, const assay_conv_t* s,
                                          const double* x, const double* w, const double* bias,
                                          double* guaranteed, double* probable) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_CONV_WINOGRAD_H_
