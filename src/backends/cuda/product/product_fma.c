// Products in float32 by fused multiply-adds (kernels/product/product_fma.cu).
#include <math.h>

#include "backends/cuda/product/product.h"

// The first one is what is built where nothing is timed.
static const cuda_tile_t shapes[] = {
    {64, 64, 4, 4}, {128, 128, 8, 8}, {32, 32, 4, 4}, {16, 64, 4, 4}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

// Waves of blocks over the multiprocessors, each as long as its multiply-adds take at the share of
// 128 a clock (1.7 GHz) that a tile of that size reaches.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double blocks = (double)cuda_tile_blocks(&p->args, s);
  const double waves = ceil(blocks / own->properties.multiprocessors);
  const double share = 0.9 * s->down * s->across / (s->down * s->across + 8.0);
  return 2 + waves * (0.5 + (double)p->args.k * s->rows * s->columns / (128 * 1700 * share));
}

static bool is_for(const cuda_product_t* p) { return p->in == ASSAY_TYPE_FLOAT && !p->tf32; }

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  if (ok && is_for(&p)) cuda_tile_variants(l, &p, shapes, N_SHAPES, "fma", predict, out, out_n);
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_product_t p;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  const cuda_tile_t* s = ok && is_for(&p) ? cuda_tile_find(&p, shapes, N_SHAPES, v) : NULL;
  if (!s) return NULL;
  cuda_product_options(&p, &options);
  assay_str_printf(&options, " -DBM=%d -DBN=%d -DTM=%d -DTN=%d -DX_ALONG_K=%d -DW_ALONG_K=%d",
                   s->rows, s->columns, s->down, s->across, p.left || p.args.x_k == 1,
                   p.args.w_k == 1);
  const cuda_source_t source = {
      .file = "product_fma.cu", .kernel = "product_fma", .options = assay_str_get(&options)};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p.args, s),
                            .threads = s->rows / s->down * (s->columns / s->across),
                            .dependent = true};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel(l, &p, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

const assay_tactic_t cuda_tactic_product_fma = {
    .name = "product_fma",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
