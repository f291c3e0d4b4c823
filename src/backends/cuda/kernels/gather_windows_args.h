// Arguments of gather_windows.cu.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_GATHER_WINDOWS_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_GATHER_WINDOWS_ARGS_H_

#include "types.h"

// Along one axis of the image.
typedef struct gather_axis {
  int32_t in, out, kernel, stride, pad;
} gather_axis_t;

typedef struct gather_windows_args {
  address_t x, y;
  int64_t rows;                    // windows
  int64_t x_sample;                // step of a sample, in elements
  int32_t channels, terms, pitch;  // pitch: of rows of y, a multiple of 8
  gather_axis_t down, across;
} gather_windows_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_GATHER_WINDOWS_ARGS_H_
