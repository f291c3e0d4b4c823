// Arguments of a normalization of rows that the same launch makes.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_NORM_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_NORM_ARGS_H_

#include "types.h"

typedef struct norm_args {
  address_t y, scale, bias;
  address_t places;  // as rows_args_t's
  int32_t period;
  float epsilon;
} norm_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_NORM_ARGS_H_
