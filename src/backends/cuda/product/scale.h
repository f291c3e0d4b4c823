// Products whose left side's columns are multiplied by numbers that its rows share.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_SCALE_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_SCALE_H_

#include "backends/cuda/product/product.h"

// The inputs of a layer that are multiplied, of which one has a row for so many rows of the other.
typedef struct cuda_scale {
  int x, numbers;
  int64_t rows;
} cuda_scale_t;

// A kernel of product_bulk.c for the layer, whose left side is not its own operand: a tile as the
// variant says. *out stays NULL where there is none.
assay_status_t cuda_product_bulk_scaled(const assay_sized_layer_t* l, const assay_variant_t* v,
                                        const cuda_scale_t* scale,
                                        assay_kernel_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_SCALE_H_
