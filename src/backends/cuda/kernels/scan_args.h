// Arguments of running sums and products.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_SCAN_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_SCAN_ARGS_H_

#include "types.h"

// Lines of n elements lie `inner` apart: [lines / inner, n, inner].
typedef struct scan_args {
  address_t x, y;
  int64_t lines, n, inner;
  int32_t exclusive, reverse;
} scan_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_SCAN_ARGS_H_
