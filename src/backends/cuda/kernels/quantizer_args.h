// Arguments of a quantizer behind a kernel that makes floats (int8/quantizer.h).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_QUANTIZER_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_QUANTIZER_ARGS_H_

#include "types.h"

// The numbers of int8_end_args_t that a quantizer has.
typedef struct quantizer_args {
  address_t y;  // bytes
  float low, high, scale;
  int32_t whole_zero;
  float inverse, least, most;
} quantizer_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_QUANTIZER_ARGS_H_
