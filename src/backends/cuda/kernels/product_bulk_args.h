// Arguments of products whose operands the copy engine brings.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_BULK_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_BULK_ARGS_H_

#include "product_args.h"

typedef struct product_bulk_args {
  tensor_map_t x, w;
  product_args_t product;
} product_bulk_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_BULK_ARGS_H_
