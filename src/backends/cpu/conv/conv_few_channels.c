// Convolutions of an input of few channels (a network's first one), which lies as ONNX has it:
// products of our own (gemm.h) whose rows are places of the output, and of a row the pieces are
// pieces of the rows of the input under the kernel, taken where they lie in a patch with padding.
//
// Where the CPU multiplies pairs of bf16, two channels are a unit, of one place; otherwise each
// channel has rows of its own, in float32, to which 16-bit inputs are widened as they come into the
// patch. How the output is cut into tiles, which threads share, changes no sum.
#include <string.h>

#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/conv/direct_kernel.h"
#include "backends/cpu/gemm/panels.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "base/target.h"
#include "ops/conv/conv.h"

enum {
  MAX_CHANNELS = 4,
  PIECES = 128,  // more are for others
  LANES = 16,
  WIDE = 2 * CPU_PANEL,
  PARTS = 64,
  TILES = 4,                  // of rows, for threads to share
  TILE_COLUMNS = 128,         // wider rows are cut
  TILE_BYTES = 48 * 1024,     // of sums that wait for what comes after
  PATCH_UNITS = 1024 * 1024,  // more are for others
};

typedef struct few {
  assay_kernel_t base;
  int input;
  assay_type_t type;                  // of the input
  bool pairs;                         // units are two channels in bf16; else one in float32
  assay_window_axis_t across, along;  // the axis across rows, and along a row
  int64_t samples, channels, made;    // channels of the input and of the output
  int64_t units;                      // of one place of a row
  int64_t planes;                     // rows of the patch for one of the input
  int64_t row_tiles, column_tiles;    // of a sample
  int64_t patch_rows, patch_columns;  // at most
  int max_parts;
  size_t patch, thread_scratch;  // floats of a patch; of all that a thread needs
  const uint32_t* weights;       // in panels, in the store
  float* bias;                   // [made], and zeros up to a panel; NULL: none
  cpu_program_t* program;        // NULL: none
} few_t;

// ---- patches -----------------------------------------------------------------------------------

// One row of up to 4 channels of bf16, two of them in a unit.
#define PAIR(name, units, low, high)                                             \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                    \
  static void name(const uint16_t* const* c, int64_t n, uint32_t* restrict to) { \
    const uint16_t *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3];               \
    (void)c0, (void)c1, (void)c2, (void)c3;                                      \
    for (int64_t i = 0; i < n; i++, to += (units)) {                             \
      to[0] = (low);                                                             \
      if ((units) > 1) to[(units)-1] = (high);                                   \
    }                                                                            \
  }
PAIR(pair_1, 1, (uint32_t)c0[i], 0)
PAIR(pair_2, 1, c0[i] | (uint32_t)c1[i] << 16, 0)
PAIR(pair_3, 2, c0[i] | (uint32_t)c1[i] << 16, (uint32_t)c2[i])
PAIR(pair_4, 2, c0[i] | (uint32_t)c1[i] << 16, c2[i] | (uint32_t)c3[i] << 16)

typedef struct job {
  const few_t* k;
  const void* const* in;
  void* out;
  uint32_t* patch;
  float* sums;
} job_t;

typedef struct tile {
  int64_t sample, row, rows, column, columns;
} tile_t;

// Places of the input that n windows from `first` on cover: from *at on, which may lie in the
// padding.
static int64_t cover(const assay_window_axis_t* a, int64_t first, int64_t n, int64_t* at) {
  *at = first * a->stride - a->pads[0];
  return (n - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
}

static int64_t limited(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Row `row` of the input of a sample, from `column` on, to the patch.
static void fill_row(const job_t* j, int64_t sample, int64_t row, int64_t column, int64_t columns,
                     uint32_t* to, int64_t plane) {
  typedef void pair_t(const uint16_t* const* c, int64_t n, uint32_t* to);
  static pair_t* const pairs[MAX_CHANNELS] = {pair_1, pair_2, pair_3, pair_4};
  const few_t* k = j->k;
  const int64_t width = k->along.in, size = k->across.in * width;
  const bool inside = row >= 0 && row < k->across.in;
  const int64_t first = inside ? limited(column, 0, width) : column;
  const int64_t end = inside ? limited(column + columns, first, width) : column;
  const int64_t n = end > first ? end - first : 0, before = n ? first - column : columns;
  const int64_t at = (sample * k->channels * k->across.in + row) * width + first;
  for (int64_t p = 0; p < k->planes; p++, to += plane) {
    memset(to, 0, (size_t)(before * k->units) * sizeof *to);
    memset(to + (before + n) * k->units, 0,
           (size_t)((columns - before - n) * k->units) * sizeof *to);
    if (!n) continue;
    if (!k->pairs) {
      cpu_widen(j->in[k->input], k->type, at + p * size, n, (float*)(void*)(to + before));
      continue;
    }
    const uint16_t* c[MAX_CHANNELS] = {NULL};
    for (int64_t i = 0; i < k->channels; i++)
      c[i] = (const uint16_t*)j->in[k->input] + at + i * size;
    pairs[k->channels - 1](c, n, to + before * k->units);
  }
}

// ---- running -----------------------------------------------------------------------------------

// All channels of one row of a tile; the last ones first, as what a vector writes after the last
// one is written over.
static void multiply(const few_t* k, const uint32_t* patch, const int64_t* pieces, int64_t columns,
                     float* to) {
  const int64_t n_pieces = k->across.kernel * k->planes, units = k->along.kernel * k->units;
  for (int64_t c = (k->made - 1) / WIDE * WIDE; c >= 0; c -= WIDE) {
    const int64_t vectors = (k->made - c + LANES - 1) / LANES;
    const cpu_gemm_block_t block = {.m = columns,
                                    .k = units,
                                    .a = patch,
                                    .a_step = k->along.stride * k->units,
                                    .n_pieces = n_pieces,
                                    .pieces = pieces,
                                    .panels = k->weights + c * units * n_pieces,
                                    .vectors = vectors < 4 ? (int)vectors : 4,
                                    .start = k->bias ? k->bias + c : NULL,
                                    .c = to + c,
                                    .c_step = k->made};
    (k->pairs ? cpu_gemm_block_bf16 : cpu_gemm_block)(&block);
  }
}

// What comes after the sums of a tile.
static void finish(const job_t* j, const tile_t* t) {
  const few_t* k = j->k;
  const assay_type_t type = k->base.out[0].type;
  const int64_t n = t->columns * k->made, step = k->along.out * k->made;
  const int64_t at = ((t->sample * k->across.out + t->row) * k->along.out + t->column) * k->made;
  const cpu_program_part_t part = {
      .from = at, .n = n, .runs = t->rows, .step = step, .result = j->sums, .result_step = n};
  if (k->program) {
    cpu_program_run_part(k->program, j->in, type, j->out, &part);
    return;
  }
  for (int64_t r = 0; r < t->rows; r++) cpu_narrow(j->sums + r * n, n, type, at + r * step, j->out);
}

static void run_tile(const job_t* j, const tile_t* t) {
  const few_t* k = j->k;
  int64_t row, column, pieces[PIECES];
  const int64_t rows = cover(&k->across, t->row, t->rows, &row);
  const int64_t columns = cover(&k->along, t->column, t->columns, &column);
  const int64_t step = columns * k->units, plane = rows * step;
  for (int64_t r = 0; r < rows; r++)
    fill_row(j, t->sample, row + r, column, columns, j->patch + r * step, plane);
  for (int64_t p = 0; p < k->planes; p++)
    for (int64_t i = 0; i < k->across.kernel; i++)
      pieces[p * k->across.kernel + i] = p * plane + i * k->across.dilation * step;
  for (int64_t r = 0; r < t->rows; r++)
    multiply(k, j->patch + r * k->across.stride * step, pieces, t->columns,
             j->sums + r * t->columns * k->made);
  finish(j, t);
}

// Part p of `parts`.
static void run_share(const few_t* k, const void* const* in, void* out, void* scratch, int p,
                      int parts) {
  const int64_t of_sample = k->row_tiles * k->column_tiles, all = k->samples * of_sample;
  float* own = (float*)scratch + (size_t)p * k->thread_scratch;
  const job_t j = {k, in, out, (uint32_t*)(void*)own, own + k->patch};
  for (int64_t i = all * p / parts; i < all * (p + 1) / parts; i++) {
    const int64_t r = i % of_sample / k->column_tiles, c = i % k->column_tiles;
    tile_t t = {.sample = i / of_sample,
                .row = k->across.out * r / k->row_tiles,
                .column = k->along.out * c / k->column_tiles};
    t.rows = k->across.out * (r + 1) / k->row_tiles - t.row;
    t.columns = k->along.out * (c + 1) / k->column_tiles - t.column;
    run_tile(&j, &t);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const few_t* k = (const few_t*)base;
  const int64_t places = k->across.out * k->along.out * k->samples;
  int parts = cpu_threads(places * k->made *
                          (k->across.kernel * k->along.kernel * k->planes * k->units / LANES + 4));
  if (parts > k->max_parts) parts = k->max_parts;
  if (parts == 1) {
    run_share(k, in, out[0], scratch, 0, 1);
    return NULL;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; p++) run_share(k, in, out[0], scratch, p, parts);
  return NULL;
}

// Rows of a sample (assay_by_rows_t); the input is read as a whole.
static void run_rows(const assay_kernel_t* base, const void* const* in, void* const* out,
                     void* scratch, int64_t sample, int64_t row, int64_t end) {
  const few_t* k = (const few_t*)base;
  const job_t j = {k, in, out[0], scratch, (float*)scratch + k->patch};
  const int64_t max = (k->across.out + k->row_tiles - 1) / k->row_tiles;
  for (; row < end; row += max)
    for (int64_t c = 0; c < k->column_tiles; c++) {
      tile_t t = {.sample = sample,
                  .row = row,
                  .rows = end - row < max ? end - row : max,
                  .column = k->along.out * c / k->column_tiles};
      t.columns = k->along.out * (c + 1) / k->column_tiles - t.column;
      run_tile(&j, &t);
    }
}

static void describe_rows(few_t* k) {
  const size_t elem = assay_kernel_float_bytes(k->base.out[0].type);
  k->base.by_rows = (assay_by_rows_t){.input = k->input,
                                      .samples = k->samples,
                                      .rows = k->across.out,
                                      .row_bytes = (size_t)(k->along.out * k->made) * elem,
                                      .work = (double)(k->along.out * k->made) *
                                              (double)(k->across.kernel * k->along.kernel) *
                                              (double)(k->planes * k->units),
                                      .scratch = k->thread_scratch * sizeof(float),
                                      .run = run_rows};
}

static void destroy(assay_kernel_t* base) {
  few_t* k = (few_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k);
}

// ---- weights -----------------------------------------------------------------------------------

// From [made, channels, kernel...]: pairs of channels at each place of the kernel, or the places of
// one channel after the other.
static assay_status_t pack_weights(few_t* k, const assay_operand_t* weights) {
  const int64_t places = k->across.kernel * k->along.kernel;
  cpu_panels_t panels = {.n = k->made, .n_step = k->channels * places, .pairs = k->pairs};
  if (k->pairs) {
    panels.places = places, panels.place_step = 1;
    panels.k = k->channels, panels.k_step = places;
  } else {
    panels.places = k->channels, panels.place_step = places;
    panels.k = places, panels.k_step = 1;
  }
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s in panels of %d%s, few channels, %lld by %lld by %lld",
                       weights->value->name, assay_type_name(weights->type), CPU_PANEL,
                       k->pairs ? " pairs" : "", (long long)k->channels,
                       (long long)k->across.kernel, (long long)k->along.kernel);
  return cpu_panels_get(&panels, weights, &key, &k->weights);
}

// ---- which layers ------------------------------------------------------------------------------

// Takes over what the convolution is; false: it is none for this tactic.
static bool use_conv(few_t* k, const assay_conv_t* s) {
  static const assay_window_axis_t one = {
      .kernel = 1, .stride = 1, .dilation = 1, .in = 1, .out = 1};
  k->samples = s->n;
  k->channels = s->c;
  k->made = s->m;
  k->across = s->w.rank > 1 ? s->w.axis[0] : one;
  k->along = s->w.axis[s->w.rank - 1];
  k->units = k->pairs ? (s->c + 1) / 2 : 1;
  k->planes = k->pairs ? 1 : s->c;
  return s->group == 1 && s->c <= MAX_CHANNELS && k->along.dilation == 1 &&
         k->across.kernel <= PIECES / k->planes;
}

static bool cut(few_t* k) {
  const int64_t width = k->along.out, height = k->across.out;
  int64_t at, size;
  k->column_tiles = (width + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const int64_t columns = (width + k->column_tiles - 1) / k->column_tiles;
  int64_t rows = (height + TILES - 1) / TILES;
  while (rows > 1 && rows * columns * k->made * 4 > TILE_BYTES) rows--;
  k->row_tiles = (height + rows - 1) / rows;
  rows = (height + k->row_tiles - 1) / k->row_tiles;
  k->patch_columns = cover(&k->along, 0, columns, &at);
  k->patch_rows = cover(&k->across, 0, rows, &at);
  if (!assay_mul_i64(k->patch_rows, k->patch_columns, &size) || size > PATCH_UNITS) return false;
  const int64_t parts = k->samples * k->row_tiles * k->column_tiles;
  k->max_parts = parts < PARTS ? (int)parts : PARTS;
  k->patch = (size_t)((size * k->units * k->planes + LANES - 1) / LANES * LANES);
  const size_t sums = (size_t)(rows * columns * k->made + LANES);
  k->thread_scratch = k->patch + (sums + LANES - 1) / LANES * LANES;
  k->base.scratch = (size_t)k->max_parts * k->thread_scratch * sizeof(float);
  return true;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cpu_conv_operands_t o;
  assay_conv_t s;
  bool ok;
  if (!cpu_conv_operands(l, &o) || o.x->rank > 4 || !assay_type_is_kernel_float(o.x->type) ||
      !cpu_gemm_suits(false))
    return NULL;
  const direct_way_t* way = cpu_direct_way(o.x->type);
  if (o.x->type != ASSAY_TYPE_FLOAT && !way) return NULL;
  ASSAY_TRY(cpu_conv_read(l, &o, &s, &ok));
  if (!ok) return NULL;
  few_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(o.x - l->in);
  k->type = o.x->type;
  k->pairs = way && way->pairs;
  k->base.in[k->input] = (assay_storage_t){o.x->type, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  ok = use_conv(k, &s) && cut(k);
  assay_status_t st =
      ok ? cpu_program_behind(l, ASSAY_LAYOUT_CHANNELS_LAST, &k->base, &k->program, &ok) : NULL;
  if (!st && ok) st = assay_operand_padded_floats(o.bias, cpu_panel_padded(k->made), &k->bias);
  if (!st && ok) st = pack_weights(k, o.weights);
  if (st || !ok) return destroy(&k->base), st;
  describe_rows(k);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_conv_few_channels = {
    .name = "conv_few_channels",
    .source = "assay",
    .make = make,
    .rounding = {CPU_FLOAT_SUMS},
};
