// Products in float32 by fused multiply-adds (kernels/product/product_fma.cu).
#include <math.h>

#include "backends/cuda/product/product.h"

// The first one is what is built where nothing is timed.
static const cuda_tile_t shapes[] = {{64, 64, 4, 4}, {128, 128, 8, 8}, {128, 64, 8, 4},
                                     {32, 64, 4, 4}, {32, 32, 4, 4},   {32, 32, 2, 2},
                                     {16, 64, 4, 4}, {16, 32, 2, 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum { TERMS = 32, STEP_BYTES = 128, PIECE = 4, MIN_STAGES = 2, MAX_STAGES = 6 };
enum { STAGES_BYTES = 96 << 10, OTHER_BYTES = 4 << 10 };

static int find_stages(const cuda_own_t* own, const cuda_tile_t* s) {
  const int most = own->properties.shared_bytes - OTHER_BYTES;
  const int stages =
      (most < STAGES_BYTES ? most : STAGES_BYTES) / ((s->rows + s->columns) * STEP_BYTES);
  return stages < MIN_STAGES ? MIN_STAGES : stages > MAX_STAGES ? MAX_STAGES : stages;
}

// Waves of blocks over the multiprocessors. A step takes its multiply-adds, 128 a clock, or the
// reads of its terms from shared memory, 128 bytes a clock, and none less than its copies; a left
// side that threads read element by element takes several times as long.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double blocks = (double)cuda_tile_blocks(&p->args, s);
  const double waves = ceil(blocks / own->properties.multiprocessors);
  const double adds = TERMS * s->rows * s->columns / 128.0;
  const double reads = 1.3 * adds * (s->down + s->across) / (s->down * s->across);
  const double slower = cuda_x_is_fast(&p->args, p->left, PIECE) ? 1 : CUDA_BY_ELEMENTS;
  const double step = slower * fmax((adds + reads) / 1700, 0.12);
  return 2 + waves * (0.5 + ceil((double)p->args.k / TERMS) * step);
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
  const int stages = find_stages(cuda_own_of(l), s), sums = cuda_tile_sums_bytes(s);
  const int steps = stages * (s->rows + s->columns) * STEP_BYTES;
  const int shared = steps > sums ? steps : sums;
  assay_str_printf(&options,
                   "-DOUT=%s -DCONV=%d -DBM=%d -DBN=%d -DTM=%d -DTN=%d -DX_FAST=%d -DW_FAST=%d "
                   "-DSTAGES=%d -DW_CONSTANT=%d",
                   cuda_type_name(p.out), (int)p.left, s->rows, s->columns, s->down, s->across,
                   cuda_x_is_fast(&p.args, p.left, PIECE), cuda_w_way(&p.args, PIECE), stages,
                   cuda_weights_are_constant(l, &p));
  const cuda_source_t source = {.file = "product_fma.cu",
                                .kernel = "product_fma",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p.args, s),
                            .threads = s->rows / s->down * (s->columns / s->across),
                            .dependent = true,
                            .shared_bytes = shared};
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
