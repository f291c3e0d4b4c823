// Convolutions of few channels, whose windows become rows of a matrix in scratch memory before they
// are multiplied: tiles by pieces of 16 bytes, and the copy engine, take no such channels as they
// lie.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_GATHER_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_GATHER_H_

#include "backends/cuda/kernels/gather_windows_args.h"
#include "backends/cuda/tactic.h"

struct cuda_product;

typedef struct cuda_gather {
  gather_windows_args_t args;  // rows 0: nothing is gathered
  cuda_kernel_t kernel;
  int64_t blocks;
  int shared_bytes;
} cuda_gather_t;

// Whether a product is such a convolution: of one group, two axes, no dilations,
// constant weights, and a matrix that is not too large.
bool cuda_gather_fits(const struct cuda_product* p);
// Makes it a product of matrices: its left side will lie in scratch memory, and its weights have
// zeros behind each row. Weights are not brought yet.
void cuda_gather_join(struct cuda_product* p);
// Compiles the kernel; and brings the weights, of 16 bits. Errors: NO_MEMORY, DEVICE
assay_status_t cuda_gather_load(const cuda_own_t* own, struct cuda_product* p) ASSAY_MUST_USE;
assay_status_t cuda_gather_get(const assay_sized_layer_t* l, struct cuda_product* p) ASSAY_MUST_USE;
assay_status_t cuda_gather_enqueue(const cuda_gather_t* g, assay_queue_t* q,
                                   assay_device_ptr_t from, assay_device_ptr_t to) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_GATHER_H_
