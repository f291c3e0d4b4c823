// Products on tensor cores by wgmma whose tiles the copy engine brings
// (kernels/product/product_bulk.cu): sm_90, one matrix, whose rows and weights begin at multiples
// of 16 bytes; convolutions with two axes, whose channels are whole steps, those that are a product
// of matrices, and those of few channels, which become one (gather.h).
#include <math.h>

#include "backends/cuda/kernels/product_bulk_args.h"
#include "backends/cuda/maps.h"
#include "backends/cuda/product/product.h"

// Groups of four warps have 64 rows each.
static const cuda_tile_t shapes[] = {{64, 32, 1, 1},   {64, 64, 1, 1},   {64, 96, 1, 1},
                                     {64, 128, 1, 1},  {128, 64, 2, 1},  {128, 96, 2, 1},
                                     {128, 128, 2, 1}, {128, 192, 2, 1}, {128, 256, 2, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum { CAPABILITY = 90, PIECE = 8, TERMS = 64, STEP_BYTES = 2 * TERMS, GROUP = 128, WARP = 32 };
// Steps in shared memory: where all blocks run at once, all that a multiprocessor has may be one's;
// else two should find room in one. What is over: the place that steps begin at (a multiple of
// 1024), and barriers.
enum { MIN_STAGES = 3, MAX_STAGES = 12, SHARED_BY_TWO = 112 << 10, OTHER_BYTES = 2 << 10 };

// How the copy engine gets the operands.
typedef struct bulk {
  bool windows, turned;
  cuda_tiles_t rows, weights;  // width and height by the tile
  cuda_windows_t places;       // instead of rows
} bulk_t;

// ---- operands -----------------------------------------------------------------------------------

static const product_axis_t* across(const product_args_t* a) { return &a->axes[PRODUCT_AXES - 1]; }
static const product_axis_t* down(const product_args_t* a) { return &a->axes[PRODUCT_AXES - 2]; }

static bool is_unit(const product_axis_t* x) {
  return x->in == 1 && x->out == 1 && x->kernel == 1 && !x->pad;
}

static bool read_windows(const cuda_product_t* p, bulk_t* b) {
  const product_args_t* a = &p->args;
  const product_axis_t* axes[] = {across(a), down(a)};
  for (int d = 0; d < PRODUCT_AXES - 2; d++)
    if (!is_unit(&a->axes[d])) return false;
  b->places = (cuda_windows_t){.type = p->in,
                               .channels = a->channels,
                               .width = axes[0]->in,
                               .height = axes[1]->in,
                               .samples = a->m / ((int64_t)axes[0]->out * axes[1]->out),
                               .place_step = a->x_place,
                               .sample_step = a->x_sample};
  for (int i = 0; i < 2; i++) {
    const product_axis_t* x = axes[i];
    // The last window begins there: strides may leave some of the image, and of its pads, over.
    const int last = (x->out - 1) * x->stride - x->pad;
    b->places.first[i] = -x->pad;
    b->places.last[i] = last + 1 - x->in;
    b->places.strides[i] = x->stride;
    if ((x->kernel - 1) * x->dilation > INT8_MAX) return false;
  }
  b->windows = true;
  return a->channels % TERMS == 0 && cuda_windows_fit(&b->places);
}

static bool read_rows(const cuda_product_t* p, bulk_t* b) {
  const product_args_t* a = &p->args;
  const bool one_to_one = p->left == CUDA_LEFT_CONV && cuda_is_one_to_one(a);
  if (p->left && !one_to_one) return p->left == CUDA_LEFT_CONV && read_windows(p, b);
  b->rows = (cuda_tiles_t){.type = p->in,
                           .columns = a->k,
                           .rows = a->m,
                           .row_step = one_to_one ? a->x_place : a->x_row,
                           .width = TERMS};
  return (one_to_one || a->x_k == 1) && cuda_tiles_fit(&b->rows);
}

static bool read_weights(const cuda_product_t* p, bulk_t* b) {
  const product_args_t* a = &p->args;
  b->turned = a->w_column == 1 && a->w_k != 1;
  b->weights = (cuda_tiles_t){.type = p->in,
                              .columns = b->turned ? a->n : a->k,
                              .rows = b->turned ? a->k : a->n,
                              .row_step = b->turned ? a->w_k : a->w_column,
                              .width = TERMS};
  return (b->turned || a->w_k == 1) && cuda_tiles_fit(&b->weights);
}

// Whether the copy engine brings the operands of a product, which may become one of matrices for
// that.
static bool read_bulk(const assay_sized_layer_t* l, cuda_product_t* p, bulk_t* b) {
  const product_args_t* a = &p->args;
  *b = (bulk_t){0};
  if (cuda_gather_fits(p)) cuda_gather_join(p);
  return cuda_own_of(l)->properties.capability == CAPABILITY && p->in != ASSAY_TYPE_FLOAT &&
         a->matrices == 1 && a->m <= INT32_MAX / 2 && a->n <= INT32_MAX / 2 &&
         a->k <= INT32_MAX / 2 && read_rows(p, b) && read_weights(p, b);
}

static assay_status_t launch(const cuda_product_t* p, const cuda_tile_t* s, assay_queue_t* q,
                             cuda_kernel_t kernel, const cuda_grid_t* grid,
                             const product_args_t* args) {
  product_bulk_args_t all = {.product = *args};
  bulk_t b = {0};
  if (!read_rows(p, &b) || !read_weights(p, &b))
    return ASSAY_ERROR(ASSAY_INTERNAL, "a product is no longer one for the copy engine");
  b.rows.height = s->rows;
  b.places.places = s->rows;
  b.weights.width = b.turned && s->columns % TERMS ? TERMS / 2 : TERMS;
  b.weights.height = b.turned ? TERMS : s->columns;
  if (b.windows)
    ASSAY_TRY(cuda_map_windows(q, &b.places, args->x, &all.x));
  else
    ASSAY_TRY(cuda_map_tiles(q, &b.rows, args->x, &all.x));
  ASSAY_TRY(cuda_map_tiles(q, &b.weights, args->w, &all.w));
  return cuda_queue_launch(q, kernel, grid, &all);
}

// ---- tiles --------------------------------------------------------------------------------------

static int64_t steps_of(const cuda_product_t* p) { return (p->args.k + TERMS - 1) / TERMS; }

static int find_stages(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const int most = own->properties.shared_bytes - OTHER_BYTES;
  const bool alone = cuda_tile_blocks(&p->args, s) <= own->properties.multiprocessors;
  const int bytes = (s->rows + s->columns) * STEP_BYTES;
  const int sums = cuda_tile_sums_bytes(s);
  int stages = (alone || most < SHARED_BY_TWO ? most : SHARED_BY_TWO - OTHER_BYTES) / bytes;
  if (stages > MAX_STAGES) stages = MAX_STAGES;
  if (stages > steps_of(p)) stages = (int)steps_of(p);
  const int least =
      (sums + bytes - 1) / bytes > MIN_STAGES ? (sums + bytes - 1) / bytes : MIN_STAGES;
  return stages < least ? least : stages;
}

static int shared_bytes(const cuda_tile_t* s, int stages) {
  return stages * (s->rows + s->columns) * STEP_BYTES + OTHER_BYTES;
}

// As product_wgmma.c; nobody counts addresses.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double clocks = TERMS / 16 * (s->rows / 64) * (s->columns / 2.0 + 16);
  const double copies = (s->rows + s->columns) * STEP_BYTES / 64.0;
  const double step = fmax(fmax(clocks, copies) / 1700, 0.06);
  const double waves =
      ceil((double)cuda_tile_blocks(&p->args, s) / own->properties.multiprocessors);
  return 1.3 + (p->gather.args.rows ? 2 + 1e-6 * (double)(p->args.m * p->args.k) : 0) +
         waves * (1 + (double)steps_of(p) * step);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  bulk_t b;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  if (ok && read_bulk(l, &p, &b))
    cuda_tile_variants(l, &p, shapes, N_SHAPES, "tensor", predict, out, out_n);
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_product_t p;
  bulk_t b;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  const cuda_tile_t* s =
      ok && read_bulk(l, &p, &b) ? cuda_tile_find(&p, shapes, N_SHAPES, v) : NULL;
  if (!s) return NULL;
  const int stages = find_stages(cuda_own_of(l), &p, s), shared = shared_bytes(s, stages);
  if (shared > cuda_own_of(l)->properties.shared_bytes) return NULL;
  if (p.gather.args.rows) ASSAY_TRY(cuda_gather_get(l, &p));
  assay_str_printf(&options,
                   "-DIN=%s -DOUT=%s -DCONV=%d -DBM=%d -DBN=%d -DSTAGES=%d -DTURNED=%d "
                   "-DW_CONSTANT=%d",
                   cuda_type_name(p.in), cuda_type_name(p.out), b.windows, s->rows, s->columns,
                   stages, b.turned, cuda_weights_are_constant(l, &p));
  const cuda_source_t source = {.file = "product_bulk.cu",
                                .kernel = "product_bulk",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  const cuda_product_launch_t way = {launch, s};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p.args, s),
                            .threads = GROUP * s->down + 2 * WARP,
                            .dependent = true,
                            .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel_by(l, &p, &source, &grid, &way, out);
  assay_str_deinit(&options);
  return st;
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_bulk = {
    .name = "product_bulk",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
