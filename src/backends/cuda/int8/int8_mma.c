// Products on 8-bit integers by tensor cores (kernels/int8/int8_mma.cu).
#include <math.h>

#include "backends/cuda/int8/product.h"

// The first one is what is built where nothing is timed.
static const cuda_tile_t shapes[] = {
    {64, 64, 2, 2}, {128, 64, 4, 1}, {32, 64, 1, 4}, {16, 64, 1, 4}, {128, 128, 4, 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes, STEP_BYTES = 128, STAGES = 2, PIECE = 16 };

// Waves of blocks over the multiprocessors: 2048 multiply-adds a clock each, of which larger tiles
// reach a larger share.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double blocks = (double)cuda_tile_blocks(&p->args, s);
  const double waves = ceil(blocks / own->properties.multiprocessors);
  const double share = 0.7 * s->rows * s->columns / (s->rows * s->columns + 64.0 * 64);
  return 2 + waves * (1 + (double)p->args.k * s->rows * s->columns / (2048 * 1700 * share));
}

// The last tile has no registers left for sums of x.
static int n_shapes(const cuda_int8_t* p) {
  return p->job.weights && p->job.fits_int8 ? N_SHAPES : N_SHAPES - 1;
}

// How many terms of the left side lie side by side at a multiple of as many bytes: 16, 8, 4 or 1.
static int x_piece(const cuda_int8_t* p) {
  const product_args_t* a = &p->p.args;
  for (int piece = PIECE; piece >= 4; piece /= 2) {
    const bool fits = p->p.left ? a->channels % piece == 0 && a->x_place % piece == 0
                                : a->k % piece == 0 && a->x_step[0] % piece == 0;
    if (fits) return piece;
  }
  return 1;
}

static bool w_is_fast(const product_args_t* a) {
  return a->w_k == 1 && a->w_column % PIECE == 0 && a->w_step[0] % PIECE == 0;
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_int8_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  if (cuda_int8_has_tiles(&p))
    cuda_tile_variants(l, &p.p, shapes, n_shapes(&p), "integers", predict, out, out_n);
  cuda_int8_close(&p);
  return NULL;
}

static assay_status_t make_of(const assay_sized_layer_t* l, cuda_int8_t* p, const cuda_tile_t* s,
                              assay_kernel_t** out) {
  const int8_job_t* j = &p->job;
  int8_product_args_t args = {.product = p->p.args, .zero_x = j->zero_x};
  assay_str_t options = {0};
  if (j->weights)
    ASSAY_TRY(cuda_int8_bring_bytes(p, &args));
  else
    args.zero_w = j->zero_w;
  assay_str_printf(&options,
                   "-DBM=%d -DBN=%d -DWM=%d -DWN=%d -DX_PIECE=%d -DW_PIECE=%d -DW_ALONG_K=%d "
                   "-DW_KNOWN=%d -DW_ZEROS=%d -DW_TYPE=%s",
                   s->rows, s->columns, s->down, s->across, x_piece(p),
                   w_is_fast(&args.product) ? PIECE : 1, args.product.w_k == 1, j->weights != NULL,
                   args.zeros != 0, j->weights ? "int8_t" : cuda_whole_name(j->w_type));
  const int shared = STAGES * (s->rows + s->columns) * STEP_BYTES;
  const cuda_source_t source = {.file = "int8_mma.cu",
                                .kernel = "int8_mma",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p->p.args, s),
                            .threads = 32 * s->down * s->across,
                            .dependent = true,
                            .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_int8_kernel(l, p, &args, NULL, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_int8_make_mma(const assay_sized_layer_t* l, const assay_variant_t* v,
                                  const assay_int8_t* joined, assay_kernel_t** out) {
  cuda_int8_t p;
  bool ok = false;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  p.joined = joined;
  const cuda_tile_t* s =
      cuda_int8_has_tiles(&p) ? cuda_tile_find(&p.p, shapes, n_shapes(&p), v) : NULL;
  assay_status_t st = s ? make_of(l, &p, s, out) : NULL;
  cuda_int8_close(&p);
  return st;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  return cuda_int8_make_mma(l, v, NULL, out);
}

const assay_tactic_t cuda_tactic_int8_mma = {
    .name = "int8_mma",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_INT8_ROUNDING,
};
