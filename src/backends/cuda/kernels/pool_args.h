// Arguments of pooling over windows.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_POOL_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_POOL_ARGS_H_

#include "types.h"

enum { POOL_RANK = 3 };  // spatial axes

typedef struct pool_axis {
  int64_t in, out, kernel, stride, dilation, pads[2];
} pool_axis_t;

// Elements lie as [sample, channel, place], or as [sample, place, channel].
typedef struct pool_args {
  address_t x, y, indices;
  int64_t size, channels, in_places, out_places;
  int32_t channels_last, counts_padding, column_major;
  pool_axis_t axis[POOL_RANK];
} pool_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_POOL_ARGS_H_
