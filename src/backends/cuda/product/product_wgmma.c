// Products on tensor cores by wgmma, of which sm_90 alone has it
// (kernels/product/product_wgmma.cu).
#include <math.h>

#include "backends/cuda/product/product.h"

// Groups of four warps have 64 rows each.
static const cuda_tile_t shapes[] = {{64, 64, 1, 1},   {64, 32, 1, 1},  {64, 96, 1, 1},
                                     {64, 128, 1, 1},  {128, 64, 2, 1}, {128, 128, 2, 1},
                                     {128, 192, 2, 1}, {128, 256, 2, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum { CAPABILITY = 90, PIECE = 8, TERMS = 64, STEP_BYTES = 2 * TERMS, GROUP = 128 };
// Steps in shared memory: two are multiplied at a time, and one at least is on its way (four where
// there is room). Where all blocks run at once, all that a multiprocessor has may be one's; else
// two should find room in one. What is over: what the kernel declares, and the place that steps
// begin at (a multiple of 1024).
enum { MIN_STAGES = 4, MAX_STAGES = 14, SHARED_BY_TWO = 104 << 10, OTHER_BYTES = 5 << 10 };

static int64_t steps_of(const cuda_product_t* p) { return (p->args.k + TERMS - 1) / TERMS; }

static int find_stages(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const int most = own->properties.shared_bytes - OTHER_BYTES;
  const bool alone = cuda_tile_blocks(&p->args, s) <= own->properties.multiprocessors;
  const int bytes = (s->rows + s->columns) * STEP_BYTES;
  const int64_t needed = steps_of(p) + 2;  // all of them on their way
  int stages = (alone || most < SHARED_BY_TWO ? most : SHARED_BY_TWO) / bytes;
  if (stages > MAX_STAGES) stages = MAX_STAGES;
  if (stages > needed) stages = (int)needed;
  return stages < MIN_STAGES ? MIN_STAGES : stages;
}

static int shared_bytes(const cuda_tile_t* s, int stages) {
  return stages * (s->rows + s->columns) * STEP_BYTES + 1024;
}

// Of a step the products of a group take columns / 2 + 16 clocks for 16 terms, since the left side
// comes from shared memory each time, and its copies 50 bytes a clock (measured on an H200 at 1700
// MHz); blocks that share a multiprocessor take turns. A left side that threads read element by
// element takes several times as long.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double clocks = TERMS / 16 * (s->rows / 64) * (s->columns / 2.0 + 16);
  const double copies = (s->rows + s->columns) * STEP_BYTES / 50.0;
  const double slower = cuda_x_is_fast(&p->args, p->left, PIECE) ? 1 : CUDA_BY_ELEMENTS;
  const double step = slower * fmax(fmax(clocks, copies) / 1700, 0.08);
  const double waves =
      ceil((double)cuda_tile_blocks(&p->args, s) / own->properties.multiprocessors);
  return 1.5 + waves * (1 + (double)steps_of(p) * step);
}

static bool is_for(const assay_sized_layer_t* l, const cuda_product_t* p) {
  return cuda_own_of(l)->properties.capability == CAPABILITY && p->in != ASSAY_TYPE_FLOAT;
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  if (ok && is_for(l, &p))
    cuda_tile_variants(l, &p, shapes, N_SHAPES, "tensor", predict, out, out_n);
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_product_t p;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  const cuda_tile_t* s = ok && is_for(l, &p) ? cuda_tile_find(&p, shapes, N_SHAPES, v) : NULL;
  if (!s) return NULL;
  const int stages = find_stages(cuda_own_of(l), &p, s), shared = shared_bytes(s, stages);
  if (shared > cuda_own_of(l)->properties.shared_bytes - OTHER_BYTES + 1024) return NULL;
  cuda_product_options(&p, &options);
  assay_str_printf(&options, " -DBM=%d -DBN=%d -DX_FAST=%d -DW_FAST=%d -DSTAGES=%d -DW_CONSTANT=%d",
                   s->rows, s->columns, cuda_x_is_fast(&p.args, p.left, PIECE),
                   cuda_w_way(&p.args, PIECE), stages, cuda_weights_are_constant(l, &p));
  const cuda_source_t source = {.file = "product_wgmma.cu",
                                .kernel = "product_wgmma",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p.args, s),
                            .threads = GROUP * s->down,
                            .dependent = true,
                            .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel(l, &p, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_wgmma = {
    .name = "product_wgmma",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
