// Products with a constant matrix (MatMul, Gemm, and Conv of one place of the kernel, whose
// channels lie last) by our own kernels: tiles of some rows and columns, and what the layer does to
// each element while the tile is in the cache.
//
// Every sum is one chain of multiply-adds along k, whatever the rows, the columns and the number of
// threads are.
#include <string.h>

#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/gemm/panels.h"
#include "backends/cpu/gemm/product.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "ops/conv/conv.h"

enum {
  PARTS = 64,
  ROWS = 48,
  LANES = 16,
  WIDE = 2 * CPU_PANEL,
  MAX_COLUMNS = 512,
  SHORT = 256,          // where rows of the input have so few units,
  SHORT_COLUMNS = 320,  // tiles have so many columns at most, and
  TILE_FLOATS = 8192,   // about so many elements
  MIN_ROWS = 24,
  MAX_ROWS = 384,
  CACHED_BYTES = 400000,  // of weights
  FAR_BYTES = 1 << 20,    // weights that are no longer in the second cache as a layer begins
  DEPTH = 768,            // units of k that are multiplied at a time, where there are more
  CHUNK = 288             // rows of a tile then, or of all tiles while the columns go by
};

typedef struct product {
  assay_kernel_t base;
  bool bf16;
  int input;
  int64_t m, k, n, units, rows, columns;  // units of a row of k; of a tile
  int64_t depth;                          // units that are multiplied at a time
  int64_t chunk;                          // rows while all columns go by
  bool far;                               // weights come from memory
  int max_parts;
  const uint32_t* weights;  // in panels, in the store
  float* bias;              // [n, padded]; NULL: none
  cpu_program_t* program;   // NULL: none
} product_t;

// ---- running -----------------------------------------------------------------------------------

typedef struct job {
  const product_t* k;
  const void* const* in;
  void* out;
  float* tile;
  int64_t row, last_row, column, last_column;  // its share
  bool again;                                  // after these rows the columns come again
} job_t;

// Rows and columns of a tile, and units of k.
typedef struct piece {
  int64_t row, rows, column, n, unit, depth;
} piece_t;

// Weights that are wanted next, while those of a piece are multiplied: units of k of the same
// columns, or the next columns, of which each tile fetches some.
typedef struct ahead {
  const uint32_t* at;  // in a panel; NULL: none
  int64_t units;
} ahead_t;

static ahead_t ahead_of(const job_t* j, const piece_t* p) {
  const product_t* k = j->k;
  const int64_t unit = p->unit + p->depth, all = j->last_row - j->row;
  const bool split = k->depth < k->units, ends = p->row + p->rows == j->last_row;
  if (!k->far) return (ahead_t){NULL, 0};
  if (split && (unit < k->units || !ends)) {
    const int64_t next = unit < k->units ? unit : 0, left = k->units - next;
    return (ahead_t){k->weights + p->column * k->units + next * CPU_PANEL,
                     left < k->depth ? left : k->depth};
  }
  const bool last = p->column + p->n >= j->last_column;
  if (last && !j->again) return (ahead_t){NULL, 0};
  const int64_t from = split ? 0 : k->units * (p->row - j->row) / all;
  const int64_t to = split ? k->depth : k->units * (p->row + p->rows - j->row) / all;
  const int64_t next = last ? j->column : p->column + p->n;
  return (ahead_t){k->weights + next * k->units + from * CPU_PANEL, to - from};
}

// A piece into `to`, whose rows lie `step` apart: from the last columns to the first, rows in
// order, so that what the last vector of a row writes after it is written over.
static void multiply(const job_t* j, const piece_t* p, float* to, int64_t step) {
  const product_t* k = j->k;
  const bool streams = k->far && k->m <= CPU_GEMM_STREAM_ROWS;
  const ahead_t ahead = streams ? (ahead_t){NULL, 0} : ahead_of(j, p);
  for (int64_t c = (p->n - 1) / WIDE * WIDE; c >= 0; c -= WIDE) {
    const int64_t vectors = (p->n - c + LANES - 1) / LANES, column = p->column + c;
    const cpu_gemm_block_t block = {
        .m = p->rows,
        .k = p->depth,
        .a = (const uint32_t*)j->in[k->input] + p->row * k->units + p->unit,
        .a_step = k->units,
        .panels = k->weights + column * k->units + p->unit * CPU_PANEL,
        .panel_rows = k->units,
        .vectors = vectors < 4 ? (int)vectors : 4,
        .start = p->unit   ? to + c
                 : k->bias ? k->bias + column
                           : NULL,
        .start_step = p->unit ? step : 0,
        .c = to + c,
        .c_step = step,
        .ahead = c ? NULL : ahead.at,
        .ahead_bytes = ahead.units * CPU_PANEL * (int64_t)sizeof(uint32_t),
        .streams = streams};
    (k->bf16 ? cpu_gemm_block_bf16 : cpu_gemm_block)(&block);
  }
}

// A tile, all of k.
static void multiply_tile(const job_t* j, piece_t* p, float* to, int64_t step) {
  const product_t* k = j->k;
  for (p->unit = 0; p->unit < k->units; p->unit += k->depth) {
    const int64_t left = k->units - p->unit;
    p->depth = left < k->depth ? left : k->depth;
    multiply(j, p, to, step);
  }
}

static void run_tile(const job_t* j, piece_t* p) {
  const product_t* k = j->k;
  const assay_type_t type = k->base.out[0].type;
  if (!k->program && type == ASSAY_TYPE_FLOAT && k->n % LANES == 0) {
    multiply_tile(j, p, (float*)j->out + p->row * k->n + p->column, k->n);
    return;
  }
  // Where sums are taken up again, nothing may be written after a row's last vector.
  const int64_t step = k->depth < k->units ? (p->n + LANES - 1) / LANES * LANES : p->n;
  multiply_tile(j, p, j->tile, step);
  const cpu_program_part_t part = {.from = p->row * k->n + p->column,
                                   .n = p->n,
                                   .runs = p->rows,
                                   .step = k->n,
                                   .result = j->tile,
                                   .result_step = step};
  if (k->program) {
    cpu_program_run_part(k->program, j->in, type, j->out, &part);
    return;
  }
  if (p->n == k->n && step == p->n) {
    cpu_narrow(j->tile, p->rows * p->n, type, part.from, j->out);
    return;
  }
  for (int64_t i = 0; i < p->rows; i++)
    cpu_narrow(j->tile + i * step, p->n, type, part.from + i * k->n, j->out);
}

// Columns stay while rows go by: their weights are in the second cache.
static void run_rows(const job_t* j) {
  const product_t* k = j->k;
  // Where weights come again for each tile, tiles are as high as each other.
  const int64_t all = j->last_row - j->row, tiles = (all + k->rows - 1) / k->rows;
  const int64_t rows = k->depth < k->units ? (all / 6 + tiles) / tiles * 6 : k->rows;
  for (int64_t c = j->column; c < j->last_column; c += k->columns)
    for (int64_t r = j->row; r < j->last_row; r += rows) {
      piece_t p = {.row = r,
                   .rows = j->last_row - r < rows ? j->last_row - r : rows,
                   .column = c,
                   .n = j->last_column - c < k->columns ? j->last_column - c : k->columns};
      run_tile(j, &p);
    }
}

// Rows in chunks as high as each other, which stay in the second cache beside the weights of some
// columns.
static void run_part(const job_t* j) {
  const int64_t all = j->last_row - j->row, chunks = (all + j->k->chunk - 1) / j->k->chunk;
  const int64_t rows = chunks > 1 ? (all / chunks / 6 + 1) * 6 : all;
  for (int64_t r = j->row; r < j->last_row; r += rows) {
    job_t some = *j;
    some.row = r;
    some.again = j->last_row - r > rows;
    some.last_row = some.again ? r + rows : j->last_row;
    run_rows(&some);
  }
}

// A tile, and a vector after its last row.
static int64_t tile_floats(const product_t* k) { return k->rows * k->columns + LANES; }

// Part p of `parts`. Each has all rows and some columns, or, where there are many rows, the other
// way round.
static void run_share(const product_t* k, const void* const* in, void* out, float* tiles, int p,
                      int parts) {
  // Of few columns, narrower shares are more alike.
  const int64_t width = k->n >= 4 * parts * WIDE ? WIDE : CPU_PANEL;
  const int64_t blocks = (k->m + 5) / 6, panels = (k->n + width - 1) / width;
  // Weights that come from memory are read by one part only, unless the rows are more.
  const bool by_rows =
      panels < parts || (blocks >= 16 * parts && !(k->far && panels >= 4 * parts && k->m < k->n));
  const int64_t all = by_rows ? blocks : panels, size = by_rows ? 6 : width;
  const int64_t max = by_rows ? k->m : k->n, from = all * p / parts * size;
  const int64_t to = all * (p + 1) / parts * size < max ? all * (p + 1) / parts * size : max;
  const job_t j = {.k = k,
                   .in = in,
                   .out = out,
                   .tile = tiles + p * tile_floats(k),
                   .row = by_rows ? from : 0,
                   .last_row = by_rows ? to : k->m,
                   .column = by_rows ? 0 : from,
                   .last_column = by_rows ? k->n : to};
  run_part(&j);
}

// Weights that multiply few rows take longer to come from memory than to be multiplied.
static int64_t far_weights(const product_t* k) { return k->far ? k->n * k->units : 0; }

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const product_t* k = (const product_t*)base;
  const int64_t work = k->m * k->n * (k->k / 16 + 4);
  int parts = cpu_threads(work > far_weights(k) ? work : far_weights(k));
  if (parts > k->max_parts) parts = k->max_parts;
  float* tiles = cpu_scratch(scratch);
  if (parts == 1) {
    run_share(k, in, out[0], tiles, 0, 1);
    return NULL;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; p++) run_share(k, in, out[0], tiles, p, parts);
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  product_t* k = (product_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k);
}

// ---- weights -----------------------------------------------------------------------------------

// turned: [n, k].
static assay_status_t pack_weights(product_t* k, const assay_operand_t* weights, bool turned) {
  const cpu_panels_t panels = {.n = k->n,
                               .n_step = turned ? k->k : 1,
                               .places = 1,
                               .k = k->k,
                               .k_step = turned ? 1 : k->n,
                               .pairs = k->bf16};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s in panels of %d, %lld by %lld%s", weights->value->name,
                       assay_type_name(weights->type), CPU_PANEL, (long long)k->k, (long long)k->n,
                       turned ? ", turned" : "");
  return cpu_panels_get(&panels, weights, &key, &k->weights);
}

// ---- which layers ------------------------------------------------------------------------------

typedef struct operands {
  const assay_operand_t *x, *weights, *bias;
  bool turned, conv;
} operands_t;

static bool read_gemm(const assay_sized_layer_t* l, const assay_node_t* n, operands_t* o) {
  o->turned = assay_attr_i64(n, "transB", 0) != 0;
  if (assay_attr_i64(n, "transA", 0) || assay_attr_f64(n, "alpha", 1) != 1 ||
      assay_attr_f64(n, "beta", 1) != 1)
    return false;
  if (n->n_inputs < 3 || !n->inputs[2]) return true;
  o->bias = assay_sized_input(l, n->inputs[2]);
  // A row, the same for all rows of the output.
  return o->bias && o->bias->constant && assay_type_is_kernel_float(o->bias->type) &&
         o->bias->size == l->out[0].dims[1] && cpu_is_row(o->bias);
}

// A convolution of one place of the kernel that goes over all places of the input: a row of its
// product is a place.
static assay_status_t read_conv(const assay_sized_layer_t* l, const assay_node_t* n, operands_t* o,
                                product_t* k, bool* ok) {
  assay_conv_t s;
  *ok = o->x->rank >= 3 && o->x->rank <= 5 && o->weights->rank == o->x->rank;
  if (!*ok) return NULL;
  const assay_tensor_t x = cpu_operand_head(o->x), w = cpu_operand_head(o->weights);
  ASSAY_TRY(assay_conv_read(n, &x, &w, NULL, false, &s));
  *ok = s.kernel_size == 1 && s.group == 1 && s.in_size == s.out_size;
  for (int i = 0; i < s.w.rank; i++)
    *ok &= s.w.axis[i].stride == 1 && !s.w.axis[i].pads[0] && !s.w.axis[i].pads[1];
  o->turned = o->conv = true;
  k->k = s.c;
  k->m = s.n * s.in_size;
  k->n = s.m;
  if (n->n_inputs < 3 || !n->inputs[2]) return NULL;
  o->bias = assay_sized_input(l, n->inputs[2]);
  *ok = *ok && o->bias && o->bias->constant && assay_type_is_kernel_float(o->bias->type) &&
        o->bias->size == k->n;
  return NULL;
}

static bool read_product(const assay_sized_layer_t* l, const assay_node_t* n, operands_t* o,
                         product_t* k) {
  const bool gemm = strcmp(n->op_type, "Gemm") == 0;
  if (o->x->rank < 2 || o->weights->rank != 2 ||
      (gemm && (l->out[0].rank != 2 || !read_gemm(l, n, o))))
    return false;
  k->k = o->x->dims[o->x->rank - 1];
  k->m = o->x->size / k->k;
  k->n = o->weights->dims[o->turned ? 0 : 1];
  return o->weights->dims[o->turned ? 1 : 0] == k->k;
}

static assay_status_t read_node(const assay_sized_layer_t* l, operands_t* o, product_t* k,
                                bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool conv = strcmp(n->op_type, "Conv") == 0;
  *ok = !*n->domain && n->n_inputs >= 2 && l->n_out == 1 && l->out[0].value && l->out[0].size &&
        assay_type_is_kernel_float(l->out[0].type) &&
        (conv || strcmp(n->op_type, "Gemm") == 0 || strcmp(n->op_type, "MatMul") == 0);
  if (!*ok) return NULL;
  o->x = assay_sized_input(l, n->inputs[0]);
  o->weights = assay_sized_input(l, n->inputs[1]);
  *ok = o->x && o->weights && o->x != o->weights && o->weights->constant && o->x->size &&
        o->x->type == o->weights->type;
  if (!*ok) return NULL;
  if (conv)
    ASSAY_TRY(read_conv(l, n, o, k, ok));
  else
    *ok = read_product(l, n, o, k);
  k->input = (int)(o->x - l->in);
  // Sizes that do not fit together are for the emulated engine, which says so.
  int64_t size;
  *ok = *ok && assay_mul_i64(k->m, k->n, &size) && size == l->out[0].size;
  return NULL;
}

// Whether rows stay in the caches while columns go by; where not, others do better. Of a sample,
// so that the batch changes nothing.
static bool stays_near(const product_t* k, int64_t samples) {
  return k->units <= 2 * SHORT || k->m / samples * k->units * 4 <= CACHED_BYTES;
}

// One block of weights is in the second cache, and the next one comes in. Rows of whole sums stay
// there, too, where it has room for them: else they come again for each block.
static void find_far_tile(product_t* k) {
  const int64_t depths = (k->units + DEPTH - 1) / DEPTH, unit = sizeof *k->weights;
  const int64_t blocks = 3 * WIDE * k->units * unit, cache = cpu_second_cache();
  k->columns = WIDE;
  k->depth = (k->units + depths - 1) / depths;
  k->rows = depths > 1 ? CHUNK : ROWS;
  if (depths == 1 && blocks + CHUNK * k->units * unit <= cache - cache / 4) k->chunk = CHUNK;
}

static void find_tile(product_t* k) {
  const int64_t fit = CACHED_BYTES / (k->units * 4) / WIDE * WIDE;
  const int64_t max = k->units <= SHORT ? SHORT_COLUMNS : MAX_COLUMNS;
  k->columns = fit < WIDE ? WIDE : fit > max ? max : fit;
  if (k->columns > cpu_panel_padded(k->n)) k->columns = cpu_panel_padded(k->n);
  // Tiles of whole rows are one piece for what comes after them: the higher, the better.
  k->rows = ROWS;
  if (k->units <= SHORT && k->columns >= k->n) {
    const int64_t rows = TILE_FLOATS / k->columns / 6 * 6;
    k->rows = rows < MIN_ROWS ? MIN_ROWS : rows > MAX_ROWS ? MAX_ROWS : rows;
  }
  k->depth = k->units;
  k->chunk = k->m;
  k->far = k->n * k->units * (int64_t)sizeof *k->weights > FAR_BYTES;
  if (k->far) find_far_tile(k);
  // Scratch memory for no more parts than there is work for.
  const int64_t parts = (k->m * k->n / ROWS * k->k + far_weights(k)) / 30000 + 1;
  k->max_parts = parts < PARTS ? (int)parts : PARTS;
  k->base.scratch = (size_t)(k->max_parts * tile_floats(k) + LANES) * sizeof(float);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  product_t* k = NULL;
  operands_t o = {0};
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  bool ok = false;
  assay_status_t st = read_node(l, &o, k, &ok);
  const assay_layout_t layout = o.conv ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  if (!st && ok) {
    k->bf16 = o.x->type == ASSAY_TYPE_BFLOAT16;
    k->units = k->bf16 ? k->k / 2 : k->k;
    ok = cpu_gemm_suits(k->bf16) && (!o.conv || stays_near(k, o.x->dims[0])) &&
         (k->bf16 ? k->k % 2 == 0 : o.x->type == ASSAY_TYPE_FLOAT);
    k->base.in[k->input] = (assay_storage_t){o.x->type, layout};
    k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  }
  if (!st && ok) st = cpu_program_behind(l, layout, &k->base, &k->program, &ok);
  if (!st && ok) st = assay_operand_padded_floats(o.bias, cpu_panel_padded(k->n), &k->bias);
  if (!st && ok) st = pack_weights(k, o.weights, o.turned);
  if (st || !ok) return destroy(&k->base), st;
  find_tile(k);
  *out = &k->base;
  return NULL;
}

// Other rows; packed weights and the bias stay.
static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  product_t *k = (product_t*)base, now = *k;
  operands_t o = {0};
  cpu_program_t* program = NULL;
  ASSAY_TRY(read_node(l, &o, &now, out_ok));
  *out_ok = *out_ok && !o.conv && now.k == k->k && now.n == k->n;
  if (!*out_ok) return NULL;
  memset(now.base.in, 0, sizeof now.base.in);
  now.base.in[k->input] = k->base.in[k->input];
  ASSAY_TRY(cpu_program_behind(l, ASSAY_LAYOUT_PLAIN, &now.base, &program, out_ok));
  cpu_program_destroy(k->program);
  *k = now;
  k->program = program;
  if (*out_ok) find_tile(k);
  return NULL;
}

const assay_tactic_t cpu_tactic_gemm_weights = {
    .name = "gemm_weights",
    .source = "assay",
    .make = make,
    .resize = resize,
    .rounding = {CPU_FLOAT_SUMS},
};
