// Arguments of gather.cu.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_GATHER_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_GATHER_ARGS_H_

#include "types.h"

// The output is [outer, n, slice], the table [outer, size, slice], slices of words.
typedef struct gather_args {
  address_t data, indices, out;
  int64_t words, n, size, slice;  // words: of the output
} gather_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_GATHER_ARGS_H_
