// Products on tensor cores by mma.sync (kernels/product/product_mma.cu).
#include <math.h>

#include "backends/cuda/product/product.h"

static const cuda_tile_t shapes[] = {{64, 64, 2, 2}, {128, 128, 2, 4}, {128, 64, 4, 2},
                                     {32, 64, 1, 4}, {16, 64, 1, 4},   {32, 32, 2, 2},
                                     {16, 32, 1, 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes, STEP_BYTES = 128 };
// Steps in shared memory: so many that two blocks find room in a multiprocessor of 228 KB, and one
// beside what it declares in smaller ones.
enum { MIN_STAGES = 2, MAX_STAGES = 8, STAGES_BYTES = 96 << 10, OTHER_BYTES = 4 << 10 };

static int find_stages(const cuda_own_t* own, const cuda_tile_t* s) {
  const int most = own->properties.shared_bytes - OTHER_BYTES;
  const int bytes = (s->rows + s->columns) * STEP_BYTES;
  const int stages = (most < STAGES_BYTES ? most : STAGES_BYTES) / bytes;
  return stages < MIN_STAGES ? MIN_STAGES : stages > MAX_STAGES ? MAX_STAGES : stages;
}

// Steps of a wave of blocks follow each other at the pace of the tensor cores (1024 multiply-adds
// of 16 bits a clock on a multiprocessor, half of tf32, of which larger tiles reach a larger
// share), and none takes less than its copies and barriers.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double blocks = (double)cuda_tile_blocks(&p->args, s);
  const double waves = ceil(blocks / own->properties.multiprocessors);
  const double share = 0.7 * s->rows * s->columns / (s->rows * s->columns + 64.0 * 64);
  const double rate = (p->in == ASSAY_TYPE_FLOAT ? 512 : 1024) * 1700 * share;
  const double terms = p->in == ASSAY_TYPE_FLOAT ? 32 : 64;
  const bool fast = cuda_x_is_fast(&p->args, p->left, p->in == ASSAY_TYPE_FLOAT ? 4 : 8);
  const double step =
      (fast ? 1 : CUDA_BY_ELEMENTS) * fmax(terms * s->rows * s->columns / rate, 0.12);
  return 2 + waves * (1.5 + ceil((double)p->args.k / terms) * step);
}

static bool is_for(const cuda_product_t* p) { return p->in != ASSAY_TYPE_FLOAT || p->tf32; }

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  if (ok && is_for(&p)) cuda_tile_variants(l, &p, shapes, N_SHAPES, "tensor", predict, out, out_n);
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
  const bool wide = p.in == ASSAY_TYPE_FLOAT;
  const int64_t piece = wide ? 4 : 8;
  const int stages = find_stages(cuda_own_of(l), s), w = cuda_w_way(&p.args, piece);
  // Its columns of a term are too few for pieces to change places.
  if (w == 2 && s->columns / piece < 8) return NULL;
  cuda_product_options(&p, &options);
  assay_str_printf(&options,
                   " -DIN_IS_F32=%d -DBM=%d -DBN=%d -DWM=%d -DWN=%d -DX_FAST=%d -DW_FAST=%d"
                   " -DSTAGES=%d -DW_CONSTANT=%d",
                   wide, s->rows, s->columns, s->down, s->across,
                   cuda_x_is_fast(&p.args, p.left, piece), w, stages,
                   cuda_weights_are_constant(l, &p));
  const int steps = stages * (s->rows + s->columns) * STEP_BYTES, sums = cuda_tile_sums_bytes(s);
  const int shared = steps > sums ? steps : sums;
  const cuda_source_t source = {.file = "product_mma.cu",
                                .kernel = "product_mma",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p.args, s),
                            .threads = 32 * s->down * s->across,
                            .dependent = true,
                            .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel(l, &p, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

// A step's 16 products (8 of tf32) and the accumulator are cut where the largest one's 25th bit is:
// no more than if each were added by a sum that rounds towards zero.
const assay_tactic_t cuda_tactic_product_mma = {
    .name = "product_mma",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
