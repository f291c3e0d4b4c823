// Arguments of one_hot.cu and triangle.cu.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PATTERNS_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PATTERNS_ARGS_H_

#include "types.h"

typedef struct one_hot_args {
  address_t indices, values, y;  // values: of no index, of an index; y [outer, depth, inner]
  int64_t size, depth, inner;
  int32_t from_end;  // an index may count from there
} one_hot_args_t;

typedef struct triangle_args {
  address_t x, y;  // matrices; x 0: ones on the diagonal, and zeros
  address_t k;     // int64_t: which diagonal; 0: `diagonal`
  int64_t size, rows, columns, diagonal;
  int32_t upper;
} triangle_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PATTERNS_ARGS_H_
