// Arguments of grid_sample.cu.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_GRID_SAMPLE_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_GRID_SAMPLE_ARGS_H_

#include "types.h"

enum { SAMPLE_AXES = 3, SAMPLE_CHANNELS = 8 };  // channels that a thread makes of a place

typedef struct grid_sample_args {
  address_t x, grid,
      y;  // [batch, channels, sizes], [batch, places, axes], [batch, channels, places]
  int64_t batch, channels, groups;  // groups of SAMPLE_CHANNELS
  int64_t in_size, places;
  int64_t sizes[SAMPLE_AXES];
} grid_sample_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_GRID_SAMPLE_ARGS_H_
