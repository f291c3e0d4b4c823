// Arguments of moves.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_MOVE_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_MOVE_ARGS_H_

#include "types.h"

// Element (i, j, k) of the output, [n, rows, columns], is element (i, k, j) of the input,
// [n, columns, rows]. rows 1: the elements stay in their order.
typedef struct move_args {
  address_t from, to;
  int64_t size, rows, columns;
} move_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_MOVE_ARGS_H_
