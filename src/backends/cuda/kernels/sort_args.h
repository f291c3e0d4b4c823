// Arguments of kernels that sort.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_SORT_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_SORT_ARGS_H_

#include "types.h"

typedef struct sort_args {
  address_t x, values, indices;  // lines of elements lie `inner` apart: [lines / inner, n, inner]
  address_t from, to;            // lines of keys, one after the other
  int64_t lines, inner, n, k;
  int64_t keys;           // of a line of `from`; of x: n
  int64_t size, stride;   // of a step of the bitonic sort
  int32_t chunks, taken;  // of a line; keys of each that are passed on
  int32_t alternate;      // odd chunks are sorted the other way about
} sort_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_SORT_ARGS_H_
