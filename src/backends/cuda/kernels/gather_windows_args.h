// Arguments of gather_windows.cu.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_GATHER_WINDOWS_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_GATHER_WINDOWS_ARGS_H_

#include "divisor_args.h"

// Along one axis of the image.
typedef struct gather_axis {
  int32_t in, out, kernel, stride, pad;
} gather_axis_t;

typedef struct gather_windows_args {
  address_t x, y;
  int64_t rows;                    // windows; fewer than 2^31 elements of them
  int64_t x_sample;                // step of a sample, in elements
  int32_t channels, terms, pitch;  // pitch: of rows of y, a multiple of 16 bytes
  uint32_t outside;                // an element, where a window leaves the image
  int32_t pieces;                  // of 16 bytes, of a row of y
  gather_axis_t down, across;
  // Lines of a sample; terms of a row of a window; windows of a block, which are neighbours; blocks
  // of a line; elements of a line of the image that a block's windows read.
  divisor_t lines, terms_of_row, windows, parts, line;
} gather_windows_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_GATHER_WINDOWS_ARGS_H_
