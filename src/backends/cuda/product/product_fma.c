// Products in float32 by fused multiply-adds (kernels/product_fma.cu).
#include <math.h>
#include <stdio.h>

#include "backends/cuda/product/product.h"

typedef struct tile_shape {
  int rows, columns, down, across;  // the tile; the part of a thread
} tile_shape_t;

// The first one is what is built where nothing is timed.
static const tile_shape_t shapes[] = {
    {64, 64, 4, 4}, {128, 128, 8, 8}, {32, 32, 4, 4}, {16, 64, 4, 4}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static int64_t blocks_of(const product_args_t* a, int rows, int columns) {
  return a->matrices * ((a->m + rows - 1) / rows) * ((a->n + columns - 1) / columns);
}

// Waves of blocks over the multiprocessors, each as long as its multiply-adds take at the share of
// 128 a clock (1.7 GHz) that a tile of that size reaches.
static double predict(const cuda_own_t* own, const product_args_t* a, const tile_shape_t* s) {
  const double blocks = (double)blocks_of(a, s->rows, s->columns);
  const double waves = ceil(blocks / own->properties.multiprocessors);
  const double share = 0.9 * s->down * s->across / (s->down * s->across + 8.0);
  return 2 + waves * (0.5 + (double)a->k * s->rows * s->columns / (128 * 1700 * share));
}

static bool suits(const cuda_product_t* p, const tile_shape_t* s) {
  return blocks_of(&p->args, s->rows, s->columns) <= INT32_MAX;
}

static bool is_for(const cuda_product_t* p) { return p->in == ASSAY_TYPE_FLOAT && !p->tf32; }

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  for (int i = 0; ok && is_for(&p) && i < N_SHAPES; i++) {
    if (!suits(&p, &shapes[i])) continue;
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = "fma", .predicted = predict(l->own, &p.args, &shapes[i])};
    snprintf(v->name, sizeof v->name, "%dx%d", shapes[i].rows, shapes[i].columns);
  }
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_product_t p;
  bool ok = false;
  int rows = 0, columns = 0;
  const tile_shape_t* s = NULL;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  if (!ok || !is_for(&p) || sscanf(v->name, "%dx%d", &rows, &columns) != 2) return NULL;
  for (int i = 0; i < N_SHAPES; i++)
    if (shapes[i].rows == rows && shapes[i].columns == columns) s = &shapes[i];
  if (!s || !suits(&p, s)) return NULL;
  cuda_product_options(&p, &options);
  assay_str_printf(&options, " -DBM=%d -DBN=%d -DTM=%d -DTN=%d -DX_ALONG_K=%d -DW_ALONG_K=%d", rows,
                   columns, s->down, s->across, p.left || p.args.x_k == 1, p.args.w_k == 1);
  const cuda_source_t source = {
      .file = "product_fma.cu", .kernel = "product_fma", .options = assay_str_get(&options)};
  const cuda_grid_t grid = {.blocks = blocks_of(&p.args, rows, columns),
                            .threads = rows / s->down * (columns / s->across)};
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
