// Products on 8-bit integers on tensor cores by wgmma whose tiles the copy engine brings
// (kernels/int8/int8_bulk.cu): a block a tile, or a cluster of blocks that share out its terms,
// whose sums have the same bits in any order. sm_90; one matrix of constant weights, whose
// differences to their zero points are bytes; of convolutions with two axes those whose channels
// are whole steps, of 128 or 64 terms, and those of few channels, whose windows are gathered
// (gather.h). The engine brings zeros where windows reach out of the image, so that there x's zero
// point has to be 0.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/int8/cells.h"
#include "backends/cuda/int8/product.h"

// Groups of four warps have 64 rows each. split: blocks that share out the terms.
typedef struct shape {
  cuda_tile_t tile;
  int split;
} shape_t;
static const shape_t shapes[] = {
    {{64, 32, 1, 1}, 1},   {{64, 64, 1, 1}, 1},   {{64, 96, 1, 1}, 1},   {{64, 128, 1, 1}, 1},
    {{128, 64, 2, 1}, 1},  {{128, 96, 2, 1}, 1},  {{128, 128, 2, 1}, 1}, {{128, 192, 2, 1}, 1},
    {{128, 256, 2, 1}, 1}, {{64, 32, 1, 1}, 2},   {{64, 32, 1, 1}, 4},   {{64, 32, 1, 1}, 8},
    {{64, 64, 1, 1}, 2},   {{64, 64, 1, 1}, 4},   {{64, 64, 1, 1}, 8},   {{64, 128, 1, 1}, 2},
    {{64, 128, 1, 1}, 4},  {{64, 128, 1, 1}, 8},  {{128, 64, 2, 1}, 2},  {{128, 64, 2, 1}, 4},
    {{128, 128, 2, 1}, 2}, {{128, 128, 2, 1}, 4}, {{128, 128, 2, 1}, 8}};
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

// How a layer is multiplied: *as is what it multiplies, perhaps as another product.
typedef struct bulk_layer {
  cuda_product_t as;
  cuda_bulk_t bulk;
  int terms;  // of a step
} bulk_layer_t;

// False: it is none for the copy engine. Windows of few channels are gathered, with x's zero point
// around the image.
static bool read(const assay_sized_layer_t* l, const cuda_int8_t* p, bulk_layer_t* b) {
  const int8_job_t* j = &p->job;
  const product_args_t* a = &b->as.args;
  *b = (bulk_layer_t){.as = p->p, .bulk.padded = -1};
  b->as.in = j->x_type;
  if (cuda_own_of(l)->properties.capability != CAPABILITY || !j->weights || !j->fits_int8 ||
      a->matrices != 1 || a->m > INT32_MAX / 2 || a->n > INT32_MAX / 2 || a->k > INT32_MAX / 2)
    return false;
  const bool known = j->zero_input < 0, leaves = b->as.left && reaches_out(a);
  cuda_product_join_places(&b->as);
  const bool gathers = cuda_gather_fits(&b->as) && (known || !leaves);
  if (gathers) {
    cuda_gather_join(&b->as);
    b->as.gather.args.outside = known ? (uint8_t)j->zero_x : 0;
  }
  b->terms = find_terms(&b->as);
  return cuda_bulk_read_left(&b->as, b->terms, &b->bulk) &&
         (gathers || !leaves || (known && !j->zero_x));
}

static int64_t steps_of(const cuda_product_t* p) {
  const int terms = find_terms(p);
  return (p->args.k + terms - 1) / terms;
}

static int64_t count_blocks(const cuda_product_t* p, const shape_t* s) {
  return s->split * cuda_tile_blocks(&p->args, &s->tile);
}

// Steps of the block that has the most.
static int64_t steps_of_block(const cuda_product_t* p, const shape_t* s) {
  return (steps_of(p) + s->split - 1) / s->split;
}

// Besides products, what becomes of each sum takes some instructions. Blocks that share out the
// terms wait for each other twice, and read the others' sums.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const shape_t* s) {
  enum {
    INSTRUCTIONS = 24,
    LANES = 128,
    READ = 24
  };  // of a sum; of a multiprocessor; bytes a clock
  const cuda_tile_t* t = &s->tile;
  const int64_t blocks = count_blocks(p, s);
  const double waves = ceil((double)blocks / own->properties.multiprocessors);
  const double sums = t->rows * (double)t->columns / s->split;
  const double ends = INSTRUCTIONS * sums / (LANES * 1700);
  const double parts = s->split > 1 ? 0.8 + (s->split - 1) * 4 * sums / (READ * 1700.0) : 0;
  return 1.3 + cuda_bulk_gather_us(p) +
         waves *
             (0.5 + ends + parts +
              (double)steps_of_block(p, s) * cuda_bulk_step_us(own, t, find_terms(p), blocks, 1));
}

// Each block has steps; grids have numbers of 31 bits.
static bool suits(const cuda_product_t* p, const shape_t* s) {
  return count_blocks(p, s) <= INT32_MAX && (s->split == 1 || steps_of(p) >= s->split);
}

// "ROWSxCOLUMNS", and the blocks that share it where they are several.
static void name_shape(const shape_t* s, char* to) {
  const int n = snprintf(to, ASSAY_VARIANT_BYTES, "%dx%d", s->tile.rows, s->tile.columns);
  if (s->split > 1) snprintf(to + n, (size_t)(ASSAY_VARIANT_BYTES - n), "x%d", s->split);
}

static const shape_t* find_shape(const cuda_product_t* p, const assay_variant_t* v) {
  char name[ASSAY_VARIANT_BYTES];
  for (int i = 0; i < N_SHAPES; i++) {
    name_shape(&shapes[i], name);
    if (strcmp(name, v->name) == 0) return suits(p, &shapes[i]) ? &shapes[i] : NULL;
  }
  return NULL;
}

// ---- kernels ------------------------------------------------------------------------------------

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_int8_t p;
  bulk_layer_t b;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  const bool fits = read(l, &p, &b);
  for (int i = 0; fits && i < N_SHAPES; i++) {
    if (!suits(&b.as, &shapes[i])) continue;
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = "integers", .predicted = predict(l->own, &b.as, &shapes[i])};
    name_shape(&shapes[i], v->name);
  }
  cuda_int8_close(&p);
  return NULL;
}

// Weights are brought as those of the layer, in the order of its terms, zeros behind each column.
static assay_status_t bring_weights(const cuda_int8_t* p, const bulk_layer_t* b,
                                    int8_product_args_t* args) {
  ASSAY_TRY(cuda_int8_bring_bytes(p, args));
  const product_args_t packed = args->product;
  args->product = b->as.args;
  args->product.w = packed.w;
  args->product.w_k = packed.w_k;
  args->product.w_column = packed.w_column;
  return NULL;
}

static void set_tile(const product_args_t* a, const cuda_tile_t* s, bulk_layer_t* b) {
  b->bulk.rows.height = b->bulk.places.places = s->rows;
  b->bulk.weights = (cuda_tiles_t){.type = ASSAY_TYPE_INT8,
                                   .columns = a->k,
                                   .rows = a->n,
                                   .row_step = a->w_column,
                                   .width = b->terms,
                                   .height = s->columns};
}

// Of a block: those of sums that several have need no room for another block beside it.
// kept: bytes of shared memory besides.
static int find_stages(const cuda_own_t* own, const cuda_product_t* p, const shape_t* s,
                       int step_bytes, int kept) {
  const bool alone = count_blocks(p, s) <= own->properties.multiprocessors;
  const int stages = cuda_bulk_block_stages(own, &s->tile, alone, steps_of_block(p, s), step_bytes);
  return cuda_bulk_stages_beside(own, &s->tile, alone, stages, step_bytes, kept);
}

static assay_status_t make_of(const assay_sized_layer_t* l, cuda_int8_t* p, const shape_t* s,
                              bulk_layer_t* b, assay_kernel_t** out) {
  const cuda_own_t* own = cuda_own_of(l);
  const cuda_tile_t* t = &s->tile;
  const int step_bytes = (t->rows + t->columns) * b->terms;
  const bool keeps = p->job.q && !p->joined && cuda_int8_may_have_cells(p->job.q);
  const int kept = keeps ? (int)sizeof(int8_cell_t) * CUDA_INT8_MAX_CELLS : 0;
  const int stages = find_stages(own, &b->as, s, step_bytes, kept);
  const int shared = cuda_bulk_block_bytes(stages, step_bytes);
  int8_product_args_t args = {.product = p->p.args, .zero_x = p->job.zero_x};
  assay_str_t options = {0};
  if (shared + kept > own->properties.shared_bytes) return NULL;
  ASSAY_TRY(bring_weights(p, b, &args));
  if (b->as.gather.args.rows) ASSAY_TRY(cuda_gather_load(own, &b->as));
  set_tile(&args.product, t, b);
  p->p = b->as;
  assay_str_printf(&options, "-DBM=%d -DBN=%d -DBK=%d -DSTAGES=%d -DDOWN_FIRST=%d", t->rows,
                   t->columns, b->terms, stages, cuda_bulk_is_down_first(&b->as));
  if (s->split > 1) assay_str_printf(&options, " -DSPLIT=%d", s->split);
  const cuda_source_t source = {.file = "int8_bulk.cu",
                                .kernel = "int8_bulk",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  const cuda_grid_t grid = {.blocks = count_blocks(&b->as, s),
                            .threads = cuda_bulk_block_threads(t),
                            .dependent = true,
                            .cluster = s->split > 1 ? s->split : 0,
                            .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_int8_kernel(l, p, &args, &b->bulk, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_int8_make_bulk(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   const assay_int8_t* joined, assay_kernel_t** out) {
  cuda_int8_t p;
  bulk_layer_t b;
  bool ok = false;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  p.joined = joined;
  const shape_t* s = read(l, &p, &b) ? find_shape(&b.as, v) : NULL;
  assay_status_t st = s ? make_of(l, &p, s, &b, out) : NULL;
  cuda_int8_close(&p);
  return st;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  return cuda_int8_make_bulk(l, v, NULL, out);
}

const assay_tactic_t cuda_tactic_int8_bulk = {
    .name = "int8_bulk",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_INT8_ROUNDING,
};
