// What tactics of products by multiply-adds have in common (kernels/product/product_fma.cu).
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_FMA_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_FMA_H_

#include "backends/cuda/product/product.h"

enum { CUDA_FMA_SHARED = 4 };  // groups that share out the chains of a sum

// A kernel of a tile: by one group of threads, or by CUDA_FMA_SHARED.
typedef struct cuda_fma {
  const cuda_tile_t* tile;
  int groups, stages;
  int threads, shared_bytes;
} cuda_fma_t;

// *ok false: the multiprocessors have no memory for it, or sums have one chain and groups nothing
// to share.
void cuda_fma_find(const cuda_own_t* own, const product_args_t* a, const cuda_tile_t* tile,
                   int groups, cuda_fma_t* out, bool* ok);

// Options of kernels by how a step is shared out, besides those of tiles, stages and operands.
void cuda_fma_options(const product_args_t* a, const cuda_fma_t* f, assay_str_t* out);

// Microseconds; bulk: the copy engine brings operands.
double cuda_fma_predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* t,
                        int groups, bool bulk);

// Tiles of a layer as variants, and a kernel of one of them. *out stays NULL where it is none.
assay_status_t cuda_fma_variants(const assay_sized_layer_t* l, const cuda_tile_t* tiles, int n,
                                 int groups, assay_variant_t* out, size_t* out_n) ASSAY_MUST_USE;
assay_status_t cuda_fma_make(const assay_sized_layer_t* l, const assay_variant_t* v,
                             const cuda_tile_t* tiles, int n, int groups,
                             assay_kernel_t** out) ASSAY_MUST_USE;

// How all of them round.
#define CUDA_FMA_ROUNDING                                                        \
  {                                                                              \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .fma = true, \
    .by_definition = true, .function_ulps = 4                                    \
  }

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_FMA_H_
