// Products on 8-bit integers of one left side, which end in quantizers of their own, in one launch
// (kernels/int8/int8_siblings.cu): queries, keys and values. sm_90, as int8_bulk.c; matrices alone,
// and ends that are a factor at most before the quantizer.
#include <math.h>

#include "backends/cuda/int8/product.h"
#include "backends/cuda/kernels/int8_siblings_args.h"
#include "base/alloc.h"

typedef struct shape {
  cuda_tile_t tile;
  const char* name;
} shape_t;
#define SHAPE(rows, columns) \
  { {rows, columns, (rows) / 64, 1}, "int8_siblings/" #rows "x" #columns }
static const shape_t shapes[] = {SHAPE(64, 64),  SHAPE(64, 96),   SHAPE(64, 128),  SHAPE(128, 64),
                                 SHAPE(128, 96), SHAPE(128, 128), SHAPE(128, 192), SHAPE(128, 256)};
enum { N_SHAPES = sizeof shapes / sizeof *shapes, CAPABILITY = 90, WAYS = 3 };

// ---- which layers -------------------------------------------------------------------------------

static const assay_int8_source_t* scalar_of(const assay_int8_t* q) {
  return q->other < 0 ? NULL : &q->sources[q->other];
}

static bool is_one(const assay_int8_t* q) {
  const assay_int8_source_t* scalar = q ? scalar_of(q) : NULL;
  return q && q->anchor && int8_is(q->anchor, "MatMul") && q->w.constant && q->simple &&
         q->quantizes && q->sources[0].kind == ASSAY_INT8_RESULT && cuda_int8_has_inverse(q) &&
         (!scalar || (scalar->kind == ASSAY_INT8_SCALAR && q->operation == ASSAY_INT8_MUL));
}

static bool are_siblings(const assay_layer_t* a, const assay_layer_t* b) {
  const assay_int8_t *p = a->int8, *q = b->int8;
  return is_one(p) && is_one(q) && p->x.value && p->x.value == q->x.value && p->type == q->type;
}

// ---- the kernel ---------------------------------------------------------------------------------

typedef struct int8_siblings_kernel {
  assay_kernel_t base;
  int x, n;  // input; siblings
  int8_siblings_args_t args;
  address_t weights[INT8_SIBLINGS];
  cuda_tiles_t rows, columns[INT8_SIBLINGS];
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} int8_siblings_kernel_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const int8_siblings_kernel_t* k = (const int8_siblings_kernel_t*)base;
  int8_siblings_args_t args = k->args;
  (void)scratch;
  ASSAY_TRY(cuda_map_tiles(q, &k->rows, in[k->x], &args.x));
  for (int i = 0; i < k->n; i++) {
    ASSAY_TRY(cuda_map_tiles(q, &k->columns[i], k->weights[i], &args.of[i].w));
    args.of[i].y = out[i];
  }
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

// What the layers multiply, and what they do to sums, in the same way for all.
typedef struct read {
  const assay_siblings_t* s;
  cuda_int8_t p[INT8_SIBLINGS];
  int n_open;
  bool scaled;  // some have a factor: the others' is 1
  assay_int8_t end;
  cuda_int8_end_t text;  // of the first one; all have the same
} read_t;

static void close_all(read_t* r) {
  for (int i = 0; i < r->n_open; i++) cuda_int8_close(&r->p[i]);
  cuda_int8_end_close(&r->text);
}

static bool is_alike(const cuda_int8_t* a, const cuda_int8_t* b) {
  const product_args_t *p = &a->p.args, *q = &b->p.args;
  return !b->p.left && b->job.weights && b->job.fits_int8 && b->job.zero_input < 0 && b->job.q &&
         q->matrices == 1 && q->m == p->m && q->k == p->k && q->x_row == p->x_row && q->x_k == 1 &&
         b->job.x_type == a->job.x_type && b->job.zero_x == a->job.zero_x &&
         q->m <= INT32_MAX / 2 && q->n <= INT32_MAX / 2 && q->k <= INT32_MAX / 2;
}

static assay_status_t read(const assay_siblings_t* s, read_t* r, bool* ok) {
  *ok = s->n <= INT8_SIBLINGS && cuda_own_of(s->layers[0])->properties.capability == CAPABILITY;
  for (int i = 0; *ok && i < s->n; i++) {
    ASSAY_TRY(cuda_int8_open(s->layers[i], &r->p[i], ok));
    if (!*ok) break;
    r->n_open = i + 1;
    *ok = is_alike(&r->p[0], &r->p[i]) && s->layers[i]->out[0].size <= INT32_MAX;
    r->scaled |= *ok && scalar_of(r->p[i].job.q);
  }
  return NULL;
}

static void set_end(const assay_int8_t* q, bool scaled, assay_int8_t* out) {
  const assay_int8_source_t* scalar = scalar_of(q);
  const double factor = scalar ? scalar->scalar : 1;  // which changes no float
  *out = *q;
  if (!scaled) return;
  out->sources[1] = (assay_int8_source_t){.kind = ASSAY_INT8_SCALAR, .scalar = factor};
  out->n_sources = 2;
  out->other = 1;
  out->operation = ASSAY_INT8_MUL;
}

// The end of sibling i; that of the first one stays open for its text.
static assay_status_t read_end(read_t* r, int i, int8_sibling_t* a, bool* ok) {
  cuda_int8_end_t own, *e = i ? &own : &r->text;
  const assay_sized_layer_t* l = r->s->layers[i];
  set_end(r->p[i].job.q, r->scaled, &r->end);
  assay_status_t st =
      cuda_int8_end_open(l, &r->end, false, r->p[i].p.args.n, ASSAY_LAYOUT_PLAIN, e, ok);
  if (!st && *ok) {
    const int8_end_args_t* from = &e->args;
    a->factor = from->factor, a->shift = from->shift;
    a->scalar = r->scaled ? from->sources[1].scalar : 1;
    a->low = from->low, a->high = from->high, a->scale = from->scale;
    a->inverse = from->inverse, a->least = from->least, a->most = from->most;
    a->whole_zero = from->whole_zero;
  }
  if (i) cuda_int8_end_close(&own);
  return st;
}

// ---- tiles --------------------------------------------------------------------------------------

static int terms_of(const read_t* r) { return r->p[0].p.args.k <= 64 ? 64 : 128; }

static int64_t blocks_of(const read_t* r, const cuda_tile_t* s) {
  int64_t n = 0;
  for (int i = 0; i < r->n_open; i++) n += cuda_tile_blocks(&r->p[i].p.args, s);
  return n;
}

static int64_t steps_of(const read_t* r) {
  return (r->p[0].p.args.k + terms_of(r) - 1) / terms_of(r);
}

// Tiles of a multiprocessor are multiplied one after the other; where several have room there, one
// ends while others multiply.
static double predict(const cuda_own_t* own, const read_t* r, const cuda_tile_t* s) {
  enum { INSTRUCTIONS = 24, LANES = 128 };  // of a sum's end; of a multiprocessor
  const int64_t blocks = blocks_of(r, s);
  const int together = s->columns > 128 ? 1 : s->rows > 64 ? 2 : 3;
  const double tiles = ceil((double)blocks / own->properties.multiprocessors);
  const double end = INSTRUCTIONS * s->rows * (double)s->columns / (LANES * 1700);
  const double tile = (double)steps_of(r) * cuda_bulk_step_us(own, s, terms_of(r), blocks, 1);
  const double shown = together > 1 ? fmax(0, end - tile) : end;
  return 0.5 * ceil(tiles / together) + tiles * tile + end + (tiles - 1) * shown;
}

// The shape before which so many are predicted to be faster; NULL: there is none.
static const shape_t* find_shape(const cuda_own_t* own, const read_t* r, int way) {
  double us[N_SHAPES];
  for (int i = 0; i < N_SHAPES; i++) us[i] = predict(own, r, &shapes[i].tile);
  for (int i = 0; way < WAYS && i < N_SHAPES; i++) {
    int before = 0;
    for (int k = 0; k < N_SHAPES; k++) before += us[k] < us[i] || (us[k] == us[i] && k < i);
    if (before == way) return &shapes[i];
  }
  return NULL;
}

// ---- making -------------------------------------------------------------------------------------

static assay_status_t set_siblings(read_t* r, const cuda_tile_t* s, int8_siblings_kernel_t* k,
                                   bool* ok) {
  uint32_t first = 0;
  for (int i = 0; *ok && i < r->n_open; i++) {
    int8_sibling_t* a = &k->args.of[i];
    int8_product_args_t packed = {.product = r->p[i].p.args};
    ASSAY_TRY(read_end(r, i, a, ok));
    if (!*ok) return NULL;
    ASSAY_TRY(cuda_int8_bring_bytes(&r->p[i], &packed));
    a->start = packed.start;
    a->columns = packed.product.n;
    a->first_block = first;
    first += (uint32_t)cuda_tile_blocks(&packed.product, s);
    k->weights[i] = packed.product.w;
    k->columns[i] = (cuda_tiles_t){.type = ASSAY_TYPE_INT8,
                                   .columns = packed.product.k,
                                   .rows = packed.product.n,
                                   .row_step = packed.product.w_column,
                                   .width = terms_of(r),
                                   .height = s->columns};
    k->base.out[i] = (assay_storage_t){r->s->layers[i]->out[0].type, ASSAY_LAYOUT_PLAIN};
  }
  return NULL;
}

static assay_status_t load(const read_t* r, const cuda_tile_t* s, int stages,
                           int8_siblings_kernel_t* k) {
  assay_str_t options = {0};
  assay_str_printf(&options,
                   "-DBM=%d -DBN=%d -DBK=%d -DSTAGES=%d -DDOWN_FIRST=0 -DSIBLINGS=%d -DCONV=0 "
                   "-DX_TYPE=%s -DZERO_READ=0 -DEND=1",
                   s->rows, s->columns, terms_of(r), stages, k->n,
                   cuda_whole_name(r->p[0].job.x_type));
  const cuda_source_t source = {.file = "int8_siblings.cu",
                                .kernel = "int8_siblings",
                                .options = assay_str_get(&options),
                                .program = assay_str_get(&r->text.text),
                                .shared_bytes = k->grid.shared_bytes};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(r->s->layers[0])->functions, &source, &k->kernel);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t build(read_t* r, const cuda_tile_t* s, int8_siblings_kernel_t* k, bool* ok) {
  const cuda_own_t* own = cuda_own_of(r->s->layers[0]);
  const int64_t blocks = blocks_of(r, s);
  const int step_bytes = (s->rows + s->columns) * terms_of(r);
  const int stages = cuda_bulk_block_stages(own, s, blocks <= own->properties.multiprocessors,
                                            steps_of(r), step_bytes);
  cuda_bulk_t left = {.padded = -1};
  r->p[0].p.in = r->p[0].job.x_type;
  k->grid = (cuda_grid_t){.blocks = blocks,
                          .threads = cuda_bulk_block_threads(s),
                          .dependent = true,
                          .shared_bytes = cuda_bulk_block_bytes(stages, step_bytes)};
  *ok = cuda_bulk_read_left(&r->p[0].p, terms_of(r), &left) && !left.windows &&
        k->grid.shared_bytes <= own->properties.shared_bytes && blocks <= INT32_MAX;
  if (!*ok) return NULL;
  k->n = r->n_open;
  k->x = r->p[0].p.x;
  k->rows = left.rows;
  k->rows.height = s->rows;
  k->args.rows = r->p[0].p.args.m, k->args.terms = r->p[0].p.args.k;
  k->base.in[k->x] = (assay_storage_t){r->p[0].job.x_type, ASSAY_LAYOUT_PLAIN};
  ASSAY_TRY(set_siblings(r, s, k, ok));
  return *ok ? load(r, s, stages, k) : NULL;
}

static assay_status_t make(read_t* r, int way, assay_kernel_t** out) {
  const shape_t* shape = find_shape(cuda_own_of(r->s->layers[0]), r, way);
  int8_siblings_kernel_t* k = NULL;
  bool ok = false;
  if (!shape) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base =
      (assay_kernel_t){.name = shape->name, .in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = build(r, &shape->tile, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t make_siblings(const assay_siblings_t* s, int way, assay_kernel_t** out) {
  read_t* r = NULL;
  bool ok;
  ASSAY_TRY(ASSAY_NEW(&r));
  r->s = s;
  assay_status_t st = read(s, r, &ok);
  if (!st && ok) st = make(r, way, out);
  close_all(r);
  assay_free(r);
  return st;
}

const assay_tactic_t cuda_tactic_int8_siblings = {
    .name = "int8_siblings",
    .source = "assay",
    .numerics = "integers",
    .are_siblings = are_siblings,
    .make_siblings = make_siblings,
    .rounding = CUDA_INT8_ROUNDING,
};
