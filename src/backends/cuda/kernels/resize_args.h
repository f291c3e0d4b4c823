// Arguments of Resize and Upsample.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_RESIZE_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_RESIZE_ARGS_H_

#include "types.h"

enum { RESIZE_AXES = 3, RESIZE_RANK = 8 };

// A dimension of the output: elements of it lie `step` apart there, `from` in the input.
typedef struct resize_dim {
  int64_t size, step, from;
} resize_dim_t;

// One that is resampled: place j is made of taps [j * taps, j * taps + taps): the place in the
// input and its weight.
typedef struct resize_taps {
  resize_dim_t dim;
  address_t index, weight;  // int32, float32; no weights: 1
  int64_t taps;
} resize_taps_t;

typedef struct resize_args {
  address_t x, y;
  int64_t size;
  int32_t n_kept;
  resize_dim_t kept[RESIZE_RANK];
  resize_taps_t axis[RESIZE_AXES];  // in the order in which they are resampled
} resize_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_RESIZE_ARGS_H_
