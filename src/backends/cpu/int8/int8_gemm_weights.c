// Int8 convolutions of one group and products with a constant matrix by AVX512-VNNI: tiles of some
// lines of the output and some channels, and what the layer does to each sum while the tile is in
// the cache.
//
// Lines of an input with padding, of signed bytes, or of channels that are no multiple of 4, are
// copied first: padding is the zero point of x there, so that what is due for it is one number for
// each channel, with which sums begin. Sums are exact: neither tiles nor threads change a bit.
#include <omp.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/int8/int8_block.h"
#include "backends/cpu/int8/int8_conv_geometry.h"
#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"

enum {
  PARTS = 64,
  PIECES = 128,       // more are for others
  MAX_APART = 16,     // lines under the kernel
  TILE_SUMS = 16384,  // about so many sums of a tile
  MIN_ROWS = 24,
  CACHED = 400000,    // bytes of weights that stay in the second cache
  MIN_COLUMNS = 256,  // what follows the sums works on runs
  MAX_COLUMNS = 1024,
  NEAR = 24 * 1024,        // bytes of a panel that stay in the first cache
  LARGE_SECOND = 1 << 21,  // second caches of so many bytes feed panels fast enough as they are
  SHORT = 6,               // so few rows pass over a panel once
  MANY_ROWS = 96,          // for a thread to have rows of its own
  ALIGNMENT = 64,
};

typedef struct products {
  int8_kernel_t base;
  int input;
  bool copies, flip;  // signed bytes: 128 is added
  uint8_t padding;
  // A line of the output: so many places, for which `places` rows of the input lie `step` bytes
  // apart; `even`: those of all lines do.
  int64_t samples, lines, places, step, line_step, in_sample;
  bool even;
  assay_window_axis_t across, along;  // where lines are copied; else of one place
  int64_t channels, capacity;         // of a place; bytes that they have in a copy
  int64_t copied_columns;
  int64_t n, k, units, n_pieces;
  int64_t pieces[PIECES];
  int64_t tile_lines, columns, near;  // near: bytes of a panel that are taken at once
  int max_parts;
  size_t copy_bytes, part_scratch;
  int8_t *weights, *weights_memory;  // whole lines of the cache, in their room
  int32_t* start;
  int32_t* column_sums;  // where the zero point of x is a value of the run
} products_t;

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- running -----------------------------------------------------------------------------------

typedef struct job {
  const products_t* k;
  const void* const* in;
  void* out;
  uint8_t* copy;
  int32_t* sums;
} job_t;

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void copy_bytes(const uint8_t* restrict from, int64_t n, uint8_t flip,
                       uint8_t* restrict to) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) to[i] = from[i] ^ flip;
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void copy_threes(const uint8_t* restrict from, int64_t n, uint8_t flip,
                        uint8_t* restrict to) {
  for (int64_t i = 0; i < n; i++) {
    to[4 * i] = from[3 * i] ^ flip;
    to[4 * i + 1] = from[3 * i + 1] ^ flip;
    to[4 * i + 2] = from[3 * i + 2] ^ flip;
    to[4 * i + 3] = 0;
  }
}

// n places of a line; what lies after the channels of a place meets weights of 0.
static void copy_places(const products_t* k, const uint8_t* from, int64_t n, uint8_t* to) {
  const uint8_t flip = k->flip ? 128 : 0;
  if (k->channels == k->capacity) {
    copy_bytes(from, n * k->capacity, flip, to);
  } else if (k->channels == 3) {
    copy_threes(from, n, flip, to);
  } else {
    for (int64_t i = 0; i < n; i++) {
      copy_bytes(from + i * k->channels, k->channels, flip, to + i * k->capacity);
      memset(to + i * k->capacity + k->channels, 0, (size_t)(k->capacity - k->channels));
    }
  }
}

// The lines of the input under `lines` lines of the output.
static void copy_lines(const job_t* j, int64_t sample, int64_t line, int64_t lines) {
  const products_t* k = j->k;
  const assay_window_axis_t *a = &k->across, *b = &k->along;
  const int64_t first = line * a->stride - a->pads[0], width = k->copied_columns * k->capacity;
  const int64_t n = (lines - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
  const int64_t before = min(b->pads[0], k->copied_columns);
  const int64_t inside = min(b->in, k->copied_columns - before);
  const uint8_t* x = (const uint8_t*)j->in[k->input] + sample * k->in_sample;
  for (int64_t i = 0; i < n; i++) {
    uint8_t* to = j->copy + i * width;
    if (first + i < 0 || first + i >= a->in) {
      memset(to, k->padding, (size_t)width);
      continue;
    }
    memset(to, k->padding, (size_t)(before * k->capacity));
    copy_places(k, x + (first + i) * b->in * k->channels, inside, to + before * k->capacity);
    memset(to + (before + inside) * k->capacity, k->padding,
           (size_t)((k->copied_columns - before - inside) * k->capacity));
  }
}

// A row of a panel that the shorter way left.
static void finish_row(const void* user, uint8_t* row, const int32_t* sums, int64_t width) {
  const job_t* j = user;
  const int8_part_t part = {
      .sums = sums, .from = row - (const uint8_t*)j->out, .n = width, .runs = 1, .step = width};
  int8_kernel_finish_part(&j->k->base, j->in, &part, j->out);
}

// Channels [c, c + n), at most a panel, of some lines, from `x` on. A long panel is taken in parts
// that stay in the first cache while lines go by, and sums wait where they are made. Where that is
// all of a row, and not whole vectors, a row would write over the next one's.
//
// Where the layer has the shorter way to its bytes, those of the first row go to `out`.
static void run_panel(const job_t* j, const uint8_t* x, int64_t lines, int64_t c, int64_t n,
                      int32_t* to, int64_t step, uint8_t* out) {
  const products_t* k = j->k;
  const int64_t rows = k->even ? lines * k->places : k->places, calls = k->even ? 1 : lines;
  const int64_t vectors = min((n + INT8_LANES - 1) / INT8_LANES, INT8_PANEL / INT8_LANES);
  const int64_t unit = vectors * INT8_LANES * 4, near = k->near / unit;
  const bool parts = lines * k->places > SHORT && k->n_pieces * k->units > near + near / 2 &&
                     (step > INT8_PANEL || step % INT8_LANES == 0);
  const int64_t at_once = parts && k->units > near ? near : k->units;
  const int64_t pieces = !parts ? k->n_pieces : k->units < near ? near / k->units : 1;
  bool goes_on = false;
  int8_quick_t quick = k->base.quick;
  if (out) {
    quick.factor = k->base.quick_factor + c;
    quick.shift = k->base.quick_shift + c;
  }
  for (int64_t p = 0; p < k->n_pieces; p += pieces)
    for (int64_t u = 0; u < k->units; u += at_once, goes_on = true) {
      int8_block_t b = {.rows = rows,
                        .units = min(at_once, k->units - u),
                        .a = x + u * 4,
                        .a_step = k->step,
                        .n_pieces = min(pieces, k->n_pieces - p),
                        .pieces = k->pieces + p,
                        .panel = k->weights + c * k->k + (p * k->units + u) * unit,
                        .vectors = (int)vectors,
                        .start = goes_on ? to : k->start + c,
                        .start_step = goes_on ? step : 0,
                        .c = to,
                        .c_step = step,
                        .width = min(n, INT8_PANEL),
                        .out = out,
                        .out_step = k->n,
                        .unsure = finish_row,
                        .user = j};
      if (out && p + pieces >= k->n_pieces && u + at_once >= k->units) b.quick = &quick;
      for (int64_t l = 0; l < calls; l++) {
        int8_block_run(&b);
        b.a += k->line_step;
        b.c += rows * step;
        if (out) b.out += rows * k->n;
        if (goes_on) b.start += rows * step;
      }
    }
}

// Channels [c, c + n) of some lines of a sample.
static void run_tile(const job_t* j, int64_t sample, int64_t line, int64_t lines, int64_t c,
                     int64_t n) {
  const products_t* k = j->k;
  const uint8_t* x = (const uint8_t*)j->in[k->input] + sample * k->in_sample;
  if (k->copies)
    copy_lines(j, sample, line, lines);
  else
    x += line * k->line_step;
  // From the last panel to the first, rows in order, so that what the last vector of a row writes
  // after it is written over.
  const int64_t from = (sample * k->lines + line) * k->places * k->n + c;
  const bool quick = k->base.quick_shift != NULL;
  for (int64_t i = (n - 1) / INT8_PANEL * INT8_PANEL; i >= 0; i -= INT8_PANEL)
    run_panel(j, k->copies ? j->copy : x, lines, c + i, n - i, j->sums + i, n,
              quick ? (uint8_t*)j->out + from + i : NULL);
  if (quick) return;
  const int8_part_t part = {
      .sums = j->sums, .from = from, .n = n, .runs = lines * k->places, .step = k->n};
  int8_kernel_finish_part(&k->base, j->in, &part, j->out);
}

// Lines [line, last) of all samples. Channels stay while lines go by.
static void run_part(const job_t* j, int64_t line, int64_t last, int64_t column,
                     int64_t last_column) {
  const products_t* k = j->k;
  for (int64_t c = column; c < last_column; c += k->columns)
    for (int64_t l = line, some; l < last; l += some) {
      some = min(min(k->tile_lines, last - l), k->lines - l % k->lines);
      run_tile(j, l / k->lines, l % k->lines, some, c, min(k->columns, last_column - c));
    }
}

static void run_share(const products_t* k, const void* const* in, void* out, char* scratch, int p,
                      int parts) {
  const int64_t lines = k->samples * k->lines, panels = (k->n + INT8_PANEL - 1) / INT8_PANEL;
  const bool by_lines =
      panels < parts || (lines >= 2 * parts && lines * k->places >= MANY_ROWS * parts);
  char* own = scratch + (size_t)p * k->part_scratch;
  const job_t j = {k, in, out, (uint8_t*)own, (int32_t*)(void*)(own + k->copy_bytes)};
  if (by_lines)
    run_part(&j, lines * p / parts, lines * (p + 1) / parts, 0, k->n);
  else
    run_part(&j, 0, lines, panels * p / parts * INT8_PANEL,
             min(panels * (p + 1) / parts * INT8_PANEL, k->n));
}

// Weights that multiply few rows take longer to come, four bytes at a time, than to be multiplied.
static int64_t far_weights(const products_t* k) { return k->n * k->k / 4; }

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const products_t* k = (const products_t*)base;
  char* capacity = cpu_scratch(scratch);
  if (k->column_sums)
    int8_kernel_restart(&k->base, int8_kernel_zero(&k->base, in) + (k->flip ? 128 : 0),
                        k->column_sums, k->start);
  const int64_t work = k->samples * k->lines * k->places * k->n * (k->k / 64 + 2);
  int parts = cpu_threads(work > far_weights(k) ? work : far_weights(k));
  if (parts > k->max_parts) parts = k->max_parts;
  if (parts == 1) {
    run_share(k, in, out[0], capacity, 0, 1);
    return NULL;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; p++) run_share(k, in, out[0], capacity, p, parts);
  return NULL;
}

static void close_products(int8_kernel_t* base) {
  products_t* k = (products_t*)base;
  assay_free(k->weights_memory);
  assay_free(k->start);
  assay_free(k->column_sums);
}

// ---- making ------------------------------------------------------------------------------------

static assay_window_axis_t one_place(int64_t size) {
  return (assay_window_axis_t){.kernel = 1, .stride = 1, .dilation = 1, .in = size, .out = size};
}

// Geometry where lines lie as they are, or copied.
static bool lay_out(products_t* k, bool copies, bool pointwise) {
  const assay_window_axis_t *a = &k->across, *b = &k->along;
  k->copies = copies;
  k->capacity = copies ? (k->channels + 3) / 4 * 4 : k->channels;
  const int64_t last = (b->out - 1) * b->stride + (b->kernel - 1) * b->dilation + 1;
  k->copied_columns = copies ? last : b->in;
  // Neighbours along a line are one piece.
  const bool joined = b->dilation == 1;
  const int64_t along = joined ? 1 : b->kernel, row = k->copied_columns * k->capacity;
  if (a->kernel > PIECES / along) return false;
  k->n_pieces = a->kernel * along;
  k->units = k->capacity * (joined ? b->kernel : 1) / 4;
  for (int64_t i = 0; i < k->n_pieces; i++)
    k->pieces[i] = i / along * a->dilation * row + i % along * b->dilation * k->capacity;
  k->k = k->n_pieces * k->units * 4;
  k->step = b->stride * k->capacity;
  k->line_step = a->stride * row;
  k->places = b->out;
  if (k->places == 1) k->step = k->line_step;
  k->even = k->line_step == k->places * k->step;
  if (pointwise && !copies) {
    // Places of all samples, one a line.
    k->lines = k->samples * a->out * b->out;
    k->samples = k->places = 1;
    k->line_step = k->step;
    k->even = true;
  } else {
    k->lines = a->out;
  }
  return true;
}

static bool is_padded(const assay_window_axis_t* a) {
  return a->pads[0] > 0 || (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 > a->in;
}

static bool is_single(const assay_window_axis_t* a) { return a->kernel == 1 && a->stride == 1; }

static assay_status_t read_conv(products_t* k, const int8_job_t* j, bool* out_ok) {
  assay_conv_t s;
  *out_ok = (j->x->rank == 3 || j->x->rank == 4) && j->rank == j->x->rank;
  if (*out_ok) ASSAY_TRY(int8_conv_read(j, &s, out_ok));
  if (!*out_ok) return NULL;
  k->across = s.w.rank == 2 ? s.w.axis[0] : one_place(1);
  k->along = s.w.axis[s.w.rank - 1];
  k->samples = s.n;
  k->channels = s.c;
  k->n = s.m;
  k->in_sample = s.in_size * s.c;
  const bool padded = is_padded(&k->across) || is_padded(&k->along);
  *out_ok = s.group == 1 && k->across.pads[0] >= 0 && k->along.pads[0] >= 0;
  // Lines far apart would be copied with all that lie between.
  *out_ok &= (k->across.kernel - 1) * k->across.dilation <= MAX_APART;
  if (*out_ok)
    *out_ok = lay_out(k, padded || k->flip || s.c % 4 != 0,
                      !padded && is_single(&k->across) && is_single(&k->along));
  return NULL;
}

static bool read_product(products_t* k, const int8_job_t* j, int8_product_t* p) {
  if (!int8_is_product(j->anchor) || !int8_product_read(j, p) || !p->shared) return false;
  k->across = one_place(p->m * p->batch);
  k->along = one_place(1);
  k->samples = 1;
  k->channels = p->k;
  k->n = p->n;
  k->in_sample = 0;
  return lay_out(k, k->flip || p->k % 4 != 0, false);
}

// Weights in the order in which a row of the input has them: pieces, places of a piece, channels up
// to `room`.
static assay_status_t pack(products_t* k, const int8_job_t* j, const int8_product_t* p) {
  const bool conv = int8_is_conv(j->anchor);
  const int64_t taps = conv ? k->across.kernel * k->along.kernel : 1;
  const int64_t row = conv ? k->channels * taps : p->swapped ? p->k : 1;
  const int64_t column = conv || p->swapped ? 1 : p->n;
  int16_t* w = NULL;
  int32_t* sums = NULL;
  int64_t count;
  if (!assay_mul_i64(k->n, k->k, &count)) return assay_status_no_memory();
  assay_status_t st = assay_new_array((size_t)count, sizeof *w, &w);
  if (!st) st = assay_new_array((size_t)k->n, sizeof *sums, &sums);
  for (int64_t n = 0; !st && n < k->n; n++)
    for (int64_t t = 0; t < taps; t++)
      for (int64_t c = 0; c < k->channels; c++) {
        const int16_t x = j->weights[n * row + (conv ? c * taps + t : c * column)];
        w[n * k->k + t * k->capacity + c] = x;
        sums[n] += x;
      }
  if (!st)
    st = assay_new_array((size_t)int8_panels_bytes(k->k, k->n) + ALIGNMENT, 1, &k->weights_memory);
  if (!st) {
    k->weights =
        k->weights_memory + (ALIGNMENT - (uintptr_t)k->weights_memory % ALIGNMENT) % ALIGNMENT;
    int8_panels_pack(w, 1, k->k, k->k, k->n, k->weights);
  }
  if (!st)
    st = int8_kernel_start(&k->base, j->zero_x + (k->flip ? 128 : 0), sums, k->n + INT8_PANEL,
                           &k->start);
  assay_free(w);
  if (!st && j->zero_input >= 0)
    k->column_sums = sums;
  else
    assay_free(sums);
  return st;
}

static int64_t bytes_at_once(void) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (sysconf(_SC_LEVEL2_CACHE_SIZE) >= LARGE_SECOND) return INT64_MAX;
#endif
  return NEAR;
}

static void find_tile(products_t* k) {
  k->near = bytes_at_once();
  const int64_t fit = CACHED / k->k / INT8_PANEL * INT8_PANEL;
  k->columns = fit < MIN_COLUMNS ? MIN_COLUMNS : fit > MAX_COLUMNS ? MAX_COLUMNS : fit;
  if (k->columns > k->n) k->columns = k->n;
  int64_t rows = TILE_SUMS / k->columns;
  if (rows < MIN_ROWS) rows = MIN_ROWS;
  k->tile_lines = rows < k->places ? 1 : rows / k->places;
  if (k->tile_lines > k->lines) k->tile_lines = k->lines;
  const int64_t copied =
      (k->tile_lines - 1) * k->across.stride + (k->across.kernel - 1) * k->across.dilation + 1;
  k->copy_bytes = k->copies ? aligned((size_t)(copied * k->copied_columns * k->capacity)) : 0;
  k->part_scratch =
      k->copy_bytes +
      aligned((size_t)(k->tile_lines * k->places * k->columns + INT8_LANES) * sizeof(int32_t));
  const int64_t sums = k->samples * k->lines * k->places * k->n;
  const int64_t parts = (sums / 16 * k->k + far_weights(k)) / 100000 + 1;
  k->max_parts = parts < PARTS ? (int)parts : PARTS;
  k->base.base.scratch = ALIGNMENT + (size_t)k->max_parts * k->part_scratch;
}

// A zero point of the run is taken off where sums begin; padding would have to be it.
static bool wants(const int8_job_t* j) { return j->zero_input < 0 || int8_is_product(j->anchor); }

static assay_status_t build(int8_kernel_t* base, int8_job_t* j, bool* out_ok) {
  products_t* k = (products_t*)base;
  const bool conv = int8_is_conv(j->anchor);
  int8_product_t p = {0};
  *out_ok = j->weights && j->fits_int8;
  if (!*out_ok) return NULL;
  k->flip = j->x_type == ASSAY_TYPE_INT8;
  k->padding = (uint8_t)(j->zero_x + (k->flip ? 128 : 0));
  if (conv)
    ASSAY_TRY(read_conv(k, j, out_ok));
  else
    *out_ok = read_product(k, j, &p);
  if (!*out_ok) return NULL;
  k->input = (int)(j->x - j->l->in);
  ASSAY_TRY(int8_kernel_init(&k->base, j, conv ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN,
                             out_ok));
  *out_ok = *out_ok && k->base.m == k->n;
  if (!*out_ok) return NULL;
  ASSAY_TRY(pack(k, j, &p));
  k->base.base.run = run;
  find_tile(k);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return int8_has_vnni() ? int8_make(l, sizeof(products_t), wants, build, close_products, out)
                         : NULL;
}

const assay_tactic_t cpu_tactic_int8_gemm_weights = {
    .name = "int8_gemm_weights",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .rounding = INT8_ROUNDING,
};
