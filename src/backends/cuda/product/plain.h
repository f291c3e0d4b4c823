// Products that a tactic needs on its way: y = x w^T, of rows that lie one after the other.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_PLAIN_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_PLAIN_H_

#include "backends/cuda/kernels/product_args.h"
#include "backends/cuda/tactic.h"

typedef struct cuda_plain_product {
  cuda_kernel_t kernel;
  cuda_grid_t grid;
  product_args_t args;
} cuda_plain_product_t;

// x [m, k] and w [n, k] of this type, y [m, n] in float32: of float32 by multiply-adds, of 16 bits
// and of float32 that is rounded to tf32 by tensor cores. *ok false: too large. Errors: DEVICE,
// NO_MEMORY.
assay_status_t cuda_plain_product_get(const cuda_own_t* own, assay_type_t type, bool tf32,
                                      int64_t m, int64_t n, int64_t k, cuda_plain_product_t* out,
                                      bool* ok) ASSAY_MUST_USE;
assay_status_t cuda_plain_product_enqueue(const cuda_plain_product_t* p, assay_queue_t* q,
                                          assay_device_ptr_t x, assay_device_ptr_t w,
                                          assay_device_ptr_t y) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_PLAIN_H_
