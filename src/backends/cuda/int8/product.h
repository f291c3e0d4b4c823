// Products and convolutions on 8-bit integers: what the tactics of them have in common.
#ifndef ASSAY_BACKENDS_CUDA_INT8_PRODUCT_H_
#define ASSAY_BACKENDS_CUDA_INT8_PRODUCT_H_

#include "backends/cuda/int8/end.h"
#include "backends/cuda/product/bulk.h"

// What a layer multiplies.
typedef struct cuda_int8 {
  cuda_product_t p;  // p.w -1: the weights are constants
  int8_job_t job;
  // What the layer and the quantizer behind it do, for a kernel that stores both outputs; borrowed,
  // NULL: the layer is alone.
  const assay_int8_t* joined;
} cuda_int8_t;

// *ok false: the layer is none. Closed with cuda_int8_close where it is. Errors: NO_MEMORY.
assay_status_t cuda_int8_open(const assay_sized_layer_t* l, cuda_int8_t* p,
                              bool* ok) ASSAY_MUST_USE;
void cuda_int8_close(cuda_int8_t* p);

// Whether tiles of tensor cores are for it: not groups of few columns and channels.
bool cuda_int8_has_tiles(const cuda_int8_t* p);

// A kernel of it: that of a source, with its options; those that all such kernels have are added.
// bulk: how the copy engine brings both sides, for a kernel that takes int8_bulk_args_t; NULL:
// threads do. Takes over what the job owns. *out stays NULL where operands lie in another way.
assay_status_t cuda_int8_kernel(const assay_sized_layer_t* l, cuda_int8_t* p,
                                const int8_product_args_t* args, const cuda_bulk_t* bulk,
                                const cuda_source_t* source, const cuda_grid_t* grid,
                                assay_kernel_t** out) ASSAY_MUST_USE;

// Kernels of single tactics for a layer with the quantizer behind it (int8_pair.c), and for one
// alone (joined NULL): as make_variant of a tactic.
assay_status_t cuda_int8_make_bulk(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   const assay_int8_t* joined, assay_kernel_t** out) ASSAY_MUST_USE;
assay_status_t cuda_int8_make_mma(const assay_sized_layer_t* l, const assay_variant_t* v,
                                  const assay_int8_t* joined, assay_kernel_t** out) ASSAY_MUST_USE;
assay_status_t cuda_int8_make_direct(const assay_sized_layer_t* l, const assay_variant_t* v,
                                     const assay_int8_t* joined,
                                     assay_kernel_t** out) ASSAY_MUST_USE;
assay_status_t cuda_int8_make_narrow(const assay_sized_layer_t* l, const assay_variant_t* v,
                                     const assay_int8_t* joined,
                                     assay_kernel_t** out) ASSAY_MUST_USE;

// Constant weights for a kernel, and what goes with them: args' product.w and its steps, start, due
// and zeros.
assay_status_t cuda_int8_bring_bytes(const cuda_int8_t* p,
                                     int8_product_args_t* args) ASSAY_MUST_USE;
assay_status_t cuda_int8_bring_terms(const cuda_int8_t* p,
                                     int8_product_args_t* args) ASSAY_MUST_USE;

// How sums of all integer layers round: not at all, and then as ops/quant/int8.h says.
#define CUDA_INT8_ROUNDING                                                              \
  {                                                                                     \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .documented = true, \
    .fma = true, .function_ulps = 1                                                     \
  }

#endif  // ASSAY_BACKENDS_CUDA_INT8_PRODUCT_H_
