// Arguments of two products, the second of which multiplies what the first one made.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_PAIR_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_PAIR_ARGS_H_

#include "product_args.h"

enum { PRODUCT_PAIR_PARTS = 4 };  // at most

// Of one matrix each, and of as many rows; second.x is not read. Weights of the first one are
// brought in so many parts, of so many terms, whole steps.
typedef struct product_pair_args {
  product_args_t first, second;
  int32_t part, parts;
} product_pair_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_PAIR_ARGS_H_
