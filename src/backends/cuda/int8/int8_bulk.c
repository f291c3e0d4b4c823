// Products on 8-bit integers on tensor cores by wgmma whose tiles the copy engine brings
// (kernels/int8/int8_bulk.cu): a block a tile. sm_90; one matrix of constant weights, whose
// differences to their zero points are bytes; of convolutions with two axes those whose channels are
// whole steps, of 128 or 64 terms. The engine brings zeros where windows reach out of the image, so
// that there x's zero point has to be 0.
#include <math.h>

#include "backends/cuda/int8/product.h"

// Groups of four warps have 64 rows each.
static const cuda_tile_t shapes[] = {{64, 32, 1, 1},   {64, 64, 1, 1},   {64, 96, 1, 1},
                                     {64, 128, 1, 1},  {128, 64, 2, 1},  {128, 96, 2, 1},
                                     {128, 128, 2, 1}, {128, 192, 2, 1}, {128, 256, 2, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes, CAPABILITY = 90 };

// ---- reading ------------------------------------------------------------------------------------

static bool reaches_out(const product_args_t* a) {
  bool yes = false;
  for (int d = 0; d < PRODUCT_AXES; d++) {
    const product_axis_t* x = &a->axes[d];
    const int64_t last = (int64_t)(x->out - 1) * x->stride - x->pad;
    yes |= x->pad > 0 || last + (int64_t)(x->kernel - 1) * x->dilation >= x->in;
  }
  return yes;
}

// Terms of a step, a line of as many bytes: all of one tap.
static int find_terms(const cuda_product_t* p) {
  const int64_t terms = p->left ? p->args.channels : p->args.k;
  const bool halves = p->left ? terms % 128 != 0 : terms <= 64;
  return halves ? 64 : 128;
}

// *terms: of a step. False: it is none for the copy engine.
static bool read(const assay_sized_layer_t* l, cuda_int8_t* p, cuda_bulk_t* b, int* terms) {
  const int8_job_t* j = &p->job;
  const product_args_t* a = &p->p.args;
  *b = (cuda_bulk_t){.padded = -1};
  if (cuda_own_of(l)->properties.capability != CAPABILITY || !j->weights || !j->fits_int8 ||
      a->matrices != 1 || a->m > INT32_MAX / 2 || a->n > INT32_MAX / 2 || a->k > INT32_MAX / 2)
    return false;
  p->p.in = j->x_type;
  cuda_product_join_places(&p->p);
  *terms = find_terms(&p->p);
  if (!cuda_bulk_read_left(&p->p, *terms, b)) return false;
  return !b->windows || !reaches_out(a) || (j->zero_input < 0 && !j->zero_x);
}

static int64_t steps_of(const cuda_product_t* p) {
  const int terms = find_terms(p);
  return (p->args.k + terms - 1) / terms;
}

// Besides products, what becomes of each sum takes some instructions.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  enum { INSTRUCTIONS = 24, LANES = 128 };  // of a sum; of a multiprocessor
  const int64_t blocks = cuda_tile_blocks(&p->args, s);
  const double waves = ceil((double)blocks / own->properties.multiprocessors);
  const double ends = INSTRUCTIONS * s->rows * (double)s->columns / (LANES * 1700);
  return 1.3 + waves * (0.5 + ends +
                        (double)steps_of(p) * cuda_bulk_step_us(own, s, find_terms(p), blocks, 1));
}

// ---- kernels ------------------------------------------------------------------------------------

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_int8_t p;
  cuda_bulk_t b;
  int terms;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  if (read(l, &p, &b, &terms))
    cuda_tile_variants(l, &p.p, shapes, N_SHAPES, "integers", predict, out, out_n);
  cuda_int8_close(&p);
  return NULL;
}

static void set_tile(const cuda_product_t* p, const product_args_t* packed, const cuda_tile_t* s,
                     int terms, cuda_bulk_t* b) {
  b->rows.height = b->places.places = s->rows;
  b->weights = (cuda_tiles_t){.type = ASSAY_TYPE_INT8,
                              .columns = p->args.k,
                              .rows = p->args.n,
                              .row_step = packed->w_column,
                              .width = terms,
                              .height = s->columns};
}

static assay_status_t make_of(const assay_sized_layer_t* l, cuda_int8_t* p, const cuda_tile_t* s,
                              cuda_bulk_t* b, int terms, assay_kernel_t** out) {
  const cuda_own_t* own = cuda_own_of(l);
  const int step_bytes = (s->rows + s->columns) * terms;
  const int stages = cuda_bulk_block_stages(own, &p->p, s, steps_of(&p->p), step_bytes);
  const int shared = cuda_bulk_block_bytes(stages, step_bytes);
  int8_product_args_t args = {.product = p->p.args, .zero_x = p->job.zero_x};
  assay_str_t options = {0};
  if (shared > own->properties.shared_bytes) return NULL;
  ASSAY_TRY(cuda_int8_bring_bytes(p, &args));
  set_tile(&p->p, &args.product, s, terms, b);
  assay_str_printf(&options, "-DBM=%d -DBN=%d -DBK=%d -DSTAGES=%d -DDOWN_FIRST=%d", s->rows,
                   s->columns, terms, stages, cuda_bulk_is_down_first(&p->p));
  const cuda_source_t source = {.file = "int8_bulk.cu",
                                .kernel = "int8_bulk",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p->p.args, s),
                            .threads = cuda_bulk_block_threads(s),
                            .dependent = true,
                            .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_int8_kernel(l, p, &args, b, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_int8_t p;
  cuda_bulk_t b;
  int terms;
  bool ok = false;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  const cuda_tile_t* s =
      read(l, &p, &b, &terms) ? cuda_tile_find(&p.p, shapes, N_SHAPES, v) : NULL;
  assay_status_t st = s ? make_of(l, &p, s, &b, terms, out) : NULL;
  cuda_int8_close(&p);
  return st;
}

const assay_tactic_t cuda_tactic_int8_bulk = {
    .name = "int8_bulk",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_INT8_ROUNDING,
};
