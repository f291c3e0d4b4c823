// Arguments of products on 8-bit integers whose operands the copy engine brings.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_BULK_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_BULK_ARGS_H_

#include "int8_args.h"

typedef struct int8_bulk_args {
  tensor_map_t x, w;
  int8_product_args_t of;
} int8_bulk_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_BULK_ARGS_H_
