// What the copy engine brings for products, in common to the tactics that ask it.
#include "backends/cuda/product/bulk.h"

#include <math.h>

#include "backends/cuda/product/constants.h"

enum { CAPABILITY = 90, PIECE = 8 };

// ---- operands -----------------------------------------------------------------------------------

static const product_axis_t* across(const product_args_t* a) { return &a->axes[PRODUCT_AXES - 1]; }
static const product_axis_t* down(const product_args_t* a) { return &a->axes[PRODUCT_AXES - 2]; }

static bool read_windows(const cuda_product_t* p, int terms, cuda_bulk_t* b) {
  const product_args_t* a = &p->args;
  const product_axis_t* axes[] = {across(a), down(a)};
  for (int d = 0; d < PRODUCT_AXES - 2; d++)
    if (!cuda_axis_is_one(&a->axes[d])) return false;
  b->places = (cuda_windows_t){.type = p->in,
                               .channels = a->channels,
                               .width = axes[0]->in,
                               .height = axes[1]->in,
                               .samples = a->m / ((int64_t)axes[0]->out * axes[1]->out),
                               .place_step = a->x_place,
                               .sample_step = a->x_sample,
                               .line = terms,
                               .to_tf32 = p->tf32};
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
  return a->channels % terms == 0 && cuda_windows_fit(&b->places);
}

bool cuda_bulk_read_left(const cuda_product_t* p, int terms, cuda_bulk_t* b) {
  const product_args_t* a = &p->args;
  const bool one_to_one = p->left == CUDA_LEFT_CONV && cuda_is_one_to_one(a);
  if (p->left && !one_to_one) return p->left == CUDA_LEFT_CONV && read_windows(p, terms, b);
  b->rows = (cuda_tiles_t){.type = p->in,
                           .columns = a->k,
                           .rows = a->m,
                           .row_step = one_to_one ? a->x_place : a->x_row,
                           .width = terms,
                           .to_tf32 = p->tf32};
  return (one_to_one || a->x_k == 1) && cuda_tiles_fit(&b->rows);
}

static int parts_of(const cuda_product_t* p) { return p->parts > 1 ? p->parts : 1; }

static bool read_weights(const cuda_product_t* p, cuda_bulk_t* b) {
  const product_args_t* a = &p->args;
  b->turned = a->w_column == 1 && a->w_k != 1;
  b->weights = (cuda_tiles_t){.type = p->in,
                              .columns = b->turned ? a->n : a->k,
                              .rows = b->turned ? a->k : parts_of(p) * a->n,
                              .row_step = b->turned ? a->w_k : a->w_column,
                              .width = cuda_bulk_terms(p)};
  return (b->turned || a->w_k == 1) && cuda_tiles_fit(&b->weights);
}

// Constant weights whose rows are apart by what the engine cannot step by: makes it the next number
// that it can. False: they are none.
static bool pad_weights(const assay_sized_layer_t* l, cuda_product_t* p) {
  product_args_t* a = &p->args;
  const bool turned = a->w_column == 1 && a->w_k != 1;
  int64_t* step = turned ? &a->w_k : &a->w_column;
  const int64_t width = turned ? a->n : a->k;
  if (p->w < 0 || !l->in[p->w].constant || *step != width || *step % PIECE == 0 ||
      (!turned && a->w_k != 1))
    return false;
  *step = (width + PIECE - 1) / PIECE * PIECE;
  return true;
}

// Constant weights of float32 as they will lie in parts.
static bool split_weights(const assay_sized_layer_t* l, int parts, cuda_product_t* p,
                          cuda_bulk_t* b) {
  enum { PIECE_OF_FLOATS = 4 };
  product_args_t* a = &p->args;
  const assay_operand_t* w = assay_sized_input(l, l->layer->nodes[0]->inputs[1]);
  const bool conv = p->layout == ASSAY_LAYOUT_CHANNELS_LAST;
  if (!w || !w->constant || p->left == CUDA_LEFT_TRANSPOSED) return false;
  const int64_t terms = p->gather.args.rows ? p->gather.args.terms : a->k;
  const int64_t pitch = (terms + PIECE_OF_FLOATS - 1) / PIECE_OF_FLOATS * PIECE_OF_FLOATS;
  b->split = w;
  b->parts = (cuda_parts_t){parts, a->n, 1, terms, pitch, a->w_column, 0, a->w_k};
  if (conv) {
    const int64_t channels = w->dims[1], taps = terms / channels;
    b->parts = (cuda_parts_t){parts, a->n, taps, channels, pitch, terms, 1, taps};
  }
  p->parts = parts;
  p->w = -1;
  a->w_k = 1;
  a->w_column = pitch;
  return true;
}

static bool is_bulk(const assay_sized_layer_t* l, const cuda_product_t* p) {
  const product_args_t* a = &p->args;
  return cuda_own_of(l)->properties.capability == CAPABILITY && a->matrices == 1 &&
         a->m <= INT32_MAX / 2 && a->n <= INT32_MAX / 4 && a->k <= INT32_MAX / 2;
}

static void pad(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b) {
  if (!pad_weights(l, p)) return;
  b->padded = p->w;
  p->w = -1;
}

// parts: of float32; 0: of 16 bits.
static bool read_operands(const assay_sized_layer_t* l, int parts, cuda_product_t* p,
                          cuda_bulk_t* b) {
  if (!is_bulk(l, p)) return false;
  // Weights of halves lie in turn as they are, neither gathered nor in parts.
  if (p->half_type && (parts || cuda_gather_fits(p))) return false;
  if (cuda_gather_fits(p)) cuda_gather_join(p);
  if (parts && !split_weights(l, parts, p, b)) return false;
  if (!parts) pad(l, p, b);
  return cuda_bulk_read_left(p, cuda_bulk_terms(p), b) && read_weights(p, b);
}

assay_status_t cuda_bulk_read(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b,
                              bool* ok) {
  *b = (cuda_bulk_t){.padded = -1};
  ASSAY_TRY(cuda_product_read(l, p, ok));
  *ok = *ok && (p->in != ASSAY_TYPE_FLOAT || p->tf32) &&
        read_operands(l, p->in == ASSAY_TYPE_FLOAT, p, b);
  return NULL;
}

assay_status_t cuda_bulk_read_parts(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b,
                                    bool* ok) {
  *b = (cuda_bulk_t){.padded = -1};
  ASSAY_TRY(cuda_product_read(l, p, ok));
  *ok = *ok && p->in == ASSAY_TYPE_FLOAT && !p->tf32 && read_operands(l, 2, p, b);
  return NULL;
}

// Nothing is gathered: how many chains sums have would follow from what it adds to the terms.
assay_status_t cuda_bulk_read_plain(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b,
                                    bool* ok) {
  *b = (cuda_bulk_t){.padded = -1};
  ASSAY_TRY(cuda_product_read(l, p, ok));
  *ok = *ok && p->in == ASSAY_TYPE_FLOAT && !p->tf32 && is_bulk(l, p);
  if (*ok) pad(l, p, b);
  *ok = *ok && cuda_bulk_read_left(p, cuda_bulk_terms(p), b) && read_weights(p, b);
  return NULL;
}

assay_status_t cuda_bulk_get(const assay_sized_layer_t* l, const cuda_bulk_t* b,
                             cuda_product_t* p) {
  product_args_t* a = &p->args;
  if (b->split) {
    if (p->gather.args.rows) ASSAY_TRY(cuda_gather_load(cuda_own_of(l), p));
    return cuda_parts_get(l, b->split, &b->parts, &a->w);
  }
  if (p->gather.args.rows) ASSAY_TRY(cuda_gather_get(l, p));
  if (b->padded < 0) return NULL;
  const cuda_rows_t rows = {b->weights.rows, b->weights.columns, b->weights.row_step};
  return cuda_rows_get(l, &l->in[b->padded], &rows, &a->w);
}

assay_status_t cuda_bulk_map(assay_queue_t* q, const cuda_bulk_t* b, assay_device_ptr_t x,
                             assay_device_ptr_t w, tensor_map_t* to_x, tensor_map_t* to_w) {
  if (b->windows)
    ASSAY_TRY(cuda_map_windows(q, &b->places, x, to_x));
  else
    ASSAY_TRY(cuda_map_tiles(q, &b->rows, x, to_x));
  return cuda_map_tiles(q, &b->weights, w, to_w);
}

static assay_status_t launch(const cuda_product_t* p, const cuda_tile_t* s, assay_queue_t* q,
                             cuda_kernel_t kernel, const cuda_grid_t* grid,
                             const product_args_t* args) {
  product_bulk_args_t all = {.product = *args};
  cuda_bulk_t b = {0};
  const int line = cuda_bulk_terms(p);
  if (!cuda_bulk_read_left(p, line, &b) || !read_weights(p, &b))
    return ASSAY_ERROR(ASSAY_INTERNAL, "a product is no longer one for the copy engine");
  const bool shares_weights = grid->cluster > 1 && !p->normalized;
  b.rows.height = p->x_sharing > 1 ? s->rows / p->x_sharing : s->rows;
  b.places.places = s->rows;
  b.weights.width = b.turned && s->columns % line ? line / 2 : line;
  b.weights.height = b.turned ? line : shares_weights ? s->columns / grid->cluster : s->columns;
  ASSAY_TRY(cuda_bulk_map(q, &b, args->x, args->w, &all.x, &all.w));
  return cuda_queue_launch(q, kernel, grid, &all);
}

// Whether tiles are counted down the rows first: where weights are larger than what a cache holds
// beside other things, and the left side is smaller.
bool cuda_bulk_is_down_first(const cuda_product_t* p) {
  enum { CACHED = 16 << 20 };
  const bool is_byte = p->in == ASSAY_TYPE_INT8 || p->in == ASSAY_TYPE_UINT8;
  const int64_t bytes = is_byte ? 1 : parts_of(p) * (int64_t)assay_kernel_float_bytes(p->in);
  return p->args.n > p->args.m && p->args.n * p->args.k > CACHED / bytes;
}

assay_status_t cuda_bulk_make(const assay_sized_layer_t* l, const cuda_product_t* p,
                              const cuda_bulk_t* b, const cuda_tile_t* s,
                              const cuda_bulk_kernel_t* k, assay_kernel_t** out) {
  assay_str_t options = {0};
  assay_str_printf(&options,
                   "-DIN=%s -DOUT=%s -DCONV=%d -DBM=%d -DBN=%d -DSTAGES=%d -DTURNED=%d "
                   "-DW_CONSTANT=%d",
                   cuda_type_name(p->in), cuda_type_name(p->out), b->windows, s->rows, s->columns,
                   k->stages, b->turned, cuda_weights_are_constant(l, p));
  if (p->parts > 1) assay_str_printf(&options, " -DW_PARTS=%d", p->parts);
  if (p->scaled) assay_str_append(&options, " -DSCALED=1");
  if (cuda_bulk_is_down_first(p)) assay_str_append(&options, " -DDOWN_FIRST=1");
  if (k->options) assay_str_printf(&options, " %s", k->options);
  const cuda_source_t source = {.file = k->file,
                                .kernel = k->name,
                                .options = assay_str_get(&options),
                                .shared_bytes = k->shared_bytes};
  const cuda_product_launch_t way = {launch, s};
  const cuda_grid_t grid = {.blocks = k->blocks,
                            .threads = k->threads,
                            .dependent = true,
                            .cluster = k->cluster,
                            .shared_bytes = k->shared_bytes};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel_by(l, p, &source, &grid, &way, out);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_bulk_variants(const assay_sized_layer_t* l, const cuda_tile_t* tiles, int n,
                                  cuda_tile_predict_t* predict, assay_variant_t* out,
                                  size_t* out_n) {
  cuda_product_t p;
  cuda_bulk_t b;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_bulk_read(l, &p, &b, &ok));
  if (ok) cuda_tile_variants(l, &p, tiles, n, "tensor", predict, out, out_n);
  return NULL;
}

assay_status_t cuda_bulk_find(const assay_sized_layer_t* l, const assay_variant_t* v,
                              const cuda_tile_t* tiles, int n, cuda_product_t* p, cuda_bulk_t* b,
                              const cuda_tile_t** s) {
  bool ok = false;
  ASSAY_TRY(cuda_bulk_read(l, p, b, &ok));
  *s = ok ? cuda_tile_find(p, tiles, n, v) : NULL;
  return NULL;
}

int cuda_bulk_terms(const cuda_product_t* p) {
  return CUDA_BULK_STEP_BYTES / (int)assay_kernel_float_bytes(p->in);
}

int64_t cuda_bulk_steps(const cuda_product_t* p) {
  const int terms = cuda_bulk_terms(p);
  return (p->args.k + terms - 1) / terms;
}

int cuda_bulk_step_bytes(const cuda_tile_t* s) {
  return (s->rows + s->columns) * CUDA_BULK_STEP_BYTES;
}

double cuda_bulk_gather_us(const cuda_product_t* p) {
  return p->gather.args.rows ? 2 + 1e-6 * (double)(p->args.m * p->args.k) : 0;
}

// As product_wgmma.c; nobody counts addresses. What the second-level cache gives in a clock is 31
// bytes for each multiprocessor where all ask for it, and 64 for one (measured on an H200).
double cuda_bulk_step_us(const cuda_own_t* own, const cuda_tile_t* s, int line_bytes,
                         int64_t blocks, int sharing) {
  enum { SLICE = 32 };  // bytes of a line that are multiplied at once
  const double all = own->properties.multiprocessors;
  const double bytes = fmin(64, 31 * fmax(1, all / (double)blocks));
  const double clocks = line_bytes / SLICE * (s->rows / 64) * (s->columns / 2.0 + 16);
  const double copies = (s->rows + (double)s->columns / sharing) * line_bytes / bytes;
  return fmax(fmax(clocks, copies) / 1700, 0.06);
}

// ---- a block a tile -----------------------------------------------------------------------------

bool cuda_bulk_is_alone(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  return cuda_tile_blocks(&p->args, s) <= own->properties.multiprocessors;
}

// Steps in shared memory: of a block that is alone, all that a multiprocessor has; else two should
// find room in one.
// What each of two blocks of a multiprocessor may have.
enum { SHARED_BY_TWO = 112 << 10 };

int cuda_bulk_block_stages(const cuda_own_t* own, const cuda_tile_t* s, bool alone, int64_t steps,
                           int step_bytes) {
  enum { MIN_STAGES = 3 };
  const int most = own->properties.shared_bytes - CUDA_BULK_OTHER_BYTES;
  const int sums = (cuda_tile_sums_bytes(s) + step_bytes - 1) / step_bytes;
  const int least = sums > MIN_STAGES ? sums : MIN_STAGES;
  int stages =
      (alone || most < SHARED_BY_TWO ? most : SHARED_BY_TWO - CUDA_BULK_OTHER_BYTES) / step_bytes;
  if (stages > CUDA_BULK_MAX_STAGES) stages = CUDA_BULK_MAX_STAGES;
  if (stages > steps) stages = (int)steps;
  return stages < least ? least : stages;
}

int cuda_bulk_stages_beside(const cuda_own_t* own, const cuda_tile_t* s, bool alone, int stages,
                            int step_bytes, int others) {
  const int fewer = stages - (others + step_bytes - 1) / step_bytes;
  const int least = (cuda_tile_sums_bytes(s) + step_bytes - 1) / step_bytes;
  const int room = alone ? own->properties.shared_bytes : SHARED_BY_TWO;
  const bool full = others && cuda_bulk_block_bytes(stages, step_bytes) + others > room;
  return full && fewer >= least && fewer > 1 ? fewer : stages;
}

int cuda_bulk_block_threads(const cuda_tile_t* s) {
  enum { GROUP = 128, WARP = 32 };
  return GROUP * s->down + 2 * WARP;
}

int cuda_bulk_block_bytes(int stages, int step_bytes) {
  return stages * step_bytes + CUDA_BULK_OTHER_BYTES;
}
