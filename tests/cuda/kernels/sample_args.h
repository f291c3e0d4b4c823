// Arguments of all kernels of this folder.
#ifndef TESTS_CUDA_KERNELS_SAMPLE_ARGS_H_
#define TESTS_CUDA_KERNELS_SAMPLE_ARGS_H_

#include "prelude.h"

typedef struct sample_args {
  address_t x, y, z;
  int32_t rows, columns, depth;
} sample_args_t;

#endif  // TESTS_CUDA_KERNELS_SAMPLE_ARGS_H_
