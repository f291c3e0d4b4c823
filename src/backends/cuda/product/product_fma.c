// Products in float32 by fused multiply-adds, all chains of a sum by the same threads.
#include "backends/cuda/product/fma.h"

// The first one is what is built where nothing is timed.
static const cuda_tile_t shapes[] = {{64, 64, 8, 4},  {128, 128, 8, 8}, {128, 64, 8, 8},
                                     {64, 128, 8, 8}, {32, 64, 4, 4},   {32, 32, 4, 4},
                                     {16, 64, 4, 4},  {16, 32, 4, 4}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  return cuda_fma_variants(l, shapes, N_SHAPES, 1, out, out_n);
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  return cuda_fma_make(l, v, shapes, N_SHAPES, 1, out);
}

const assay_tactic_t cuda_tactic_product_fma = {
    .name = "product_fma",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_FMA_ROUNDING,
};
