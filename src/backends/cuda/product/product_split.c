// Products in float32 by fused multiply-adds, of few tiles: four groups of a block's threads share
// out the chains of its sums (split-K within a block), so that small tiles have parts of many sums
// a thread, which read little of shared memory for each.
#include "backends/cuda/product/fma.h"

static const cuda_tile_t shapes[] = {{32, 32, 4, 8}, {64, 64, 8, 8}, {64, 32, 8, 4}, {32, 64, 4, 8},
                                     {16, 64, 4, 8}, {16, 32, 4, 4}, {8, 64, 2, 8},  {8, 32, 2, 4}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  return cuda_fma_variants(l, shapes, N_SHAPES, CUDA_FMA_SHARED, out, out_n);
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  return cuda_fma_make(l, v, shapes, N_SHAPES, CUDA_FMA_SHARED, out);
}

// The bits of product_fma.
const assay_tactic_t cuda_tactic_product_split = {
    .name = "product_split",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_FMA_ROUNDING,
};
