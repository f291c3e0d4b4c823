// Runs products and convolutions by bf16 parts (split.h).
#include <omp.h>
#include <string.h>

#include "backends/cpu/gemm/bf16_split.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

enum {
  LINE = 64,  // bytes
  ROWS = CPU_BF16_SPLIT_ROWS,
  COLUMNS = CPU_BF16_SPLIT_COLUMNS,
  CHUNK = 256,  // terms of a plain sum at a time
  GROUP = 64,   // places with plain sums at a time
  BLOCK_BYTES = CPU_BF16_SPLIT_BLOCK_BYTES,
  WEIGHTS_BYTES = 400000,  // of weights that are multiplied with it: parts of the second cache
  MAX_PLACES = 768,        // of a block
  MAX_PANELS = 4,          // that are multiplied before what the layer does to them
};
_Static_assert((int)COLUMNS == (int)CPU_PANEL, "plain sums come in panels of as many columns");

typedef struct job {
  const cpu_bf16_split_t* k;
  const void* const* in;
  const float* x;
  float* y;
} job_t;

// Memory of one thread.
typedef struct buffers {
  float *tile, *weights, *sums;
  int64_t* places;  // [GROUP]
} buffers_t;

// Lines [line, line + n) of a sample, whose split input lies at `places`, and for each of those
// whether it is out of range.
typedef struct block {
  int64_t sample, line, n;
  char* places;
  unsigned char* out_of_range;
} block_t;

static int64_t padded(int64_t n) { return (n + COLUMNS - 1) / COLUMNS * COLUMNS; }
static int64_t whole_lines(int64_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

// ---- blocks -------------------------------------------------------------------------------------

static int64_t input_lines(const cpu_bf16_split_t* k, int64_t lines) {
  return (lines - 1) * k->y.stride + (k->y.kernel - 1) * k->y.dilation + 1;
}

// Places after the last line that rows of tiles may read.
static int64_t places_behind(const cpu_bf16_split_t* k) {
  return ROWS * k->x.stride + (k->x.kernel - 1) * k->x.dilation;
}

static int64_t block_places(const cpu_bf16_split_t* k) {
  return input_lines(k, k->lines) * k->width + places_behind(k);
}

static block_t block_of(const cpu_bf16_split_t* k, int64_t i, char* memory) {
  block_t b = {.sample = i / k->blocks, .line = i % k->blocks * k->lines, .places = memory};
  b.n = k->y.out - b.line < k->lines ? k->y.out - b.line : k->lines;
  b.out_of_range = (unsigned char*)memory + block_places(k) * k->pitch;
  return b;
}

// ---- splitting ----------------------------------------------------------------------------------

static void split_zeros(const cpu_bf16_split_t* k, const block_t* b, int64_t place, int64_t n) {
  memset(b->places + place * k->pitch, 0, (size_t)(n * k->pitch));
  memset(b->out_of_range + place, 0, (size_t)n);
}

// Line i of a block's input.
static void split_line(const job_t* j, const block_t* b, int64_t i) {
  const cpu_bf16_split_t* k = j->k;
  const int64_t row = b->line * k->y.stride - k->y.before + i;
  int64_t at = i * k->width;
  if (row < 0 || row >= k->y.in) {
    split_zeros(k, b, at, k->width);
    return;
  }
  const float* x =
      j->x + (b->sample * k->source_size + row * k->y.step * k->source_width) * k->channels;
  split_zeros(k, b, at, k->x.before);
  at += k->x.before;
  for (int64_t p = 0; p < k->x.in; p++, at++)
    b->out_of_range[at] =
        !cpu_bf16_split_row(k->parts, k->channels, x + p * k->x.step * k->channels, k->range,
                            (uint16_t*)(void*)(b->places + at * k->pitch));
  split_zeros(k, b, at, (i + 1) * k->width - at);
}

// Windows at the end of the last line may see padding that is the next line's.
static void split_end(const cpu_bf16_split_t* k, const block_t* b) {
  split_zeros(k, b, input_lines(k, b->n) * k->width, k->x.before);
}

// ---- products -----------------------------------------------------------------------------------

// Sums of rows of tiles, from place `at` of a run that begins with line `line` on, with columns
// [column, column + n).
typedef struct sums {
  float* at;
  int64_t step;  // from one row to the next
  int64_t line, place, rows, column, n;
} sums_t;

// Rows [r, r + n) of these, which are places that lie side by side in the output, `to` the first of
// them: with the bias, and with the program, or as they are.
static void put_places(const job_t* j, const sums_t* s, int64_t r, int64_t n, int64_t to,
                       bool finishes) {
  const cpu_bf16_split_t* k = j->k;
  float* sums = s->at + r * s->step;
  float* y = finishes ? sums : j->y + to * k->outputs + s->column;
  const int64_t y_step = finishes ? s->step : k->outputs;
  for (int64_t i = 0; i < n; i++)
    if (k->bias)
      _Pragma("omp simd") for (int64_t c = 0; c < s->n; c++) y[i * y_step + c] =
          sums[i * s->step + c] + k->bias[s->column + c];
    else if (!finishes)
      memcpy(y + i * y_step, sums + i * s->step, (size_t)s->n * sizeof *y);
  if (!finishes) return;
  const cpu_program_part_t part = {.from = to * k->outputs + s->column,
                                   .n = s->n,
                                   .runs = n,
                                   .step = k->outputs,
                                   .result = sums,
                                   .result_step = s->step};
  cpu_program_run_part(k->program, j->in, ASSAY_TYPE_FLOAT, j->y, &part);
}

// Places beside the image are dropped.
static void put_sums(const job_t* j, const block_t* b, const sums_t* s, bool finishes) {
  const cpu_bf16_split_t* k = j->k;
  const int64_t first = (b->sample * k->y.out + b->line + s->line) * k->x.out;
  int64_t y = s->place / k->width, x = s->place % k->width;
  if (k->width == k->x.out) {  // there are none
    put_places(j, s, 0, s->rows, first + s->place, finishes);
    return;
  }
  for (int64_t r = 0; r < s->rows; y++) {
    const int64_t left = s->rows - r, n = k->x.out - x < left ? k->x.out - x : left;
    if (n > 0) put_places(j, s, r, n, first + y * k->x.out + x, finishes);
    r += k->width - x;
    x = 0;
  }
}

// Columns [column, end) of all lines of a block.
static void multiply(const job_t* j, const block_t* b, int64_t column, int64_t end, float* tile,
                     bool finishes) {
  const cpu_bf16_split_t* k = j->k;
  const int64_t runs = k->flat ? 1 : b->n;
  const int64_t length = k->flat ? (b->n - 1) * k->width + k->x.out : k->x.out;
  cpu_bf16_split_block_t m = {.parts = k->parts,
                              .step = k->x.stride * k->pitch,
                              .n_pieces = k->n_pieces,
                              .pieces = k->pieces,
                              .units = k->units,
                              .c_step = padded(end - column)};
  sums_t s = {.at = tile, .step = m.c_step, .column = column, .n = end - column};
  for (s.line = 0; s.line < runs; s.line++)
    for (s.place = 0; s.place < length; s.place += ROWS) {
      m.rows = s.rows = length - s.place < ROWS ? length - s.place : ROWS;
      m.a = b->places + (s.line * k->y.stride * k->width + s.place * k->x.stride) * k->pitch;
      for (int64_t c = 0; c < m.c_step; c += COLUMNS) {
        m.panel = k->weights + (column + c) / COLUMNS * k->panel;
        m.c = tile + c;
        cpu_bf16_split_multiply(&m);
      }
      put_sums(j, b, &s, finishes);
    }
}

// ---- plain sums ---------------------------------------------------------------------------------

// The place of a block's input that place q of the kernel meets at (y, x).
static int64_t place_of(const cpu_bf16_split_t* k, int64_t y, int64_t x, int64_t q) {
  return (y * k->y.stride + q / k->x.kernel * k->y.dilation) * k->width + x * k->x.stride +
         q % k->x.kernel * k->x.dilation;
}

static bool sees_out_of_range(const cpu_bf16_split_t* k, const block_t* b, int64_t y, int64_t x) {
  bool out = false;
  for (int64_t q = 0; q < k->n_pieces; q++) out |= b->out_of_range[place_of(k, y, x, q)];
  return out;
}

static float weight_at(const assay_tensor_t* w, int64_t i) {
  return w->store == ASSAY_STORE_PACKED ? ((const float*)w->data)[i]
                                        : (float)assay_tensor_element(w, i);
}

// The model's weights of one place of the kernel, for channels [c, c + n) and a panel.
static void pack_plain(const cpu_bf16_split_t* k, int64_t column, int64_t q, int64_t c, int64_t n,
                       float* to) {
  const int64_t columns = k->outputs - column < COLUMNS ? k->outputs - column : COLUMNS;
  memset(to, 0, (size_t)(n * COLUMNS) * sizeof *to);
  for (int64_t i = 0; i < n; i++)
    for (int64_t o = 0; o < columns; o++)
      to[i * COLUMNS + o] = weight_at(
          k->model, (column + o) * k->column_step + (c + i) * k->channel_step + q * k->piece_step);
}

// The input's channels at a place of the kernel; NULL: padding.
static const float* input_at(const job_t* j, const block_t* b, int64_t place, int64_t q) {
  const cpu_bf16_split_t* k = j->k;
  const int64_t y =
      (b->line + place / k->x.out) * k->y.stride - k->y.before + q / k->x.kernel * k->y.dilation;
  const int64_t x = place % k->x.out * k->x.stride - k->x.before + q % k->x.kernel * k->x.dilation;
  if (y < 0 || y >= k->y.in || x < 0 || x >= k->x.in) return NULL;
  return j->x + (b->sample * k->source_size + y * k->y.step * k->source_width + x * k->x.step) *
                    k->channels;
}

// So many places of a block (numbers among its output's) with a panel's columns.
static void plain_places(const job_t* j, const block_t* b, const buffers_t* r, int64_t places,
                         int64_t column) {
  const cpu_bf16_split_t* k = j->k;
  memset(r->sums, 0, (size_t)(places * COLUMNS) * sizeof *r->sums);
  for (int64_t q = 0; q < k->n_pieces; q++)
    for (int64_t c = 0; c < k->channels; c += CHUNK) {
      const int64_t n = k->channels - c < CHUNK ? k->channels - c : CHUNK;
      pack_plain(k, column, q, c, n, r->weights);
      for (int64_t i = 0; i < places; i++) {
        const float* x = input_at(j, b, r->places[i], q);
        if (x) cpu_gemm_panel(1, n, x + c, n, r->weights, r->sums + i * COLUMNS, COLUMNS, true);
      }
    }
  for (int64_t i = 0; i < places; i++) {
    const sums_t s = {.at = r->sums + i * COLUMNS,
                      .step = COLUMNS,
                      .line = r->places[i] / k->x.out,
                      .place = r->places[i] % k->x.out,
                      .rows = 1,
                      .column = column,
                      .n = k->outputs - column < COLUMNS ? k->outputs - column : COLUMNS};
    put_sums(j, b, &s, false);
  }
}

static bool any_out_of_range(const cpu_bf16_split_t* k, const block_t* b) {
  return memchr(b->out_of_range, 1, (size_t)(input_lines(k, b->n) * k->width));
}

static void make_plain(const job_t* j, const block_t* b, const buffers_t* r, int64_t column,
                       int64_t end) {
  const cpu_bf16_split_t* k = j->k;
  int64_t n = 0;
  for (int64_t i = 0; i < b->n * k->x.out; i++) {
    if (sees_out_of_range(k, b, i / k->x.out, i % k->x.out)) r->places[n++] = i;
    if (n < GROUP && (i + 1 < b->n * k->x.out || !n)) continue;
    for (int64_t c = column; c < end; c += COLUMNS) plain_places(j, b, r, n, c);
    n = 0;
  }
}

// ---- threads ------------------------------------------------------------------------------------

static buffers_t buffers_of(char* memory) {
  buffers_t r = {.tile = (float*)(void*)memory};
  r.weights = r.tile + ROWS * MAX_PANELS * COLUMNS;
  r.sums = r.weights + CHUNK * COLUMNS;
  r.places = (int64_t*)(void*)(r.sums + GROUP * COLUMNS);
  return r;
}

static int64_t scratch_bytes(void) {
  return (ROWS * MAX_PANELS + CHUNK + GROUP) * COLUMNS * (int64_t)sizeof(float) + GROUP * 8;
}

// What the layer does to each element of columns [column, end) of a block, where they lie.
static void run_program(const job_t* j, const block_t* b, int64_t column, int64_t end) {
  const cpu_bf16_split_t* k = j->k;
  const int64_t from = (b->sample * k->y.out + b->line) * k->x.out * k->outputs + column;
  const cpu_program_part_t part = {.from = from,
                                   .n = end - column,
                                   .runs = b->n * k->x.out,
                                   .step = k->outputs,
                                   .result = j->y + from,
                                   .result_step = k->outputs};
  cpu_program_run_part(k->program, j->in, ASSAY_TYPE_FLOAT, j->y, &part);
}

static void make_columns(const job_t* j, const block_t* b, const buffers_t* r, int64_t column,
                         int64_t end) {
  const cpu_bf16_split_t* k = j->k;
  const bool any = any_out_of_range(k, b);
  for (int64_t c = column; c < end; c += k->wide)
    multiply(j, b, c, end - c < k->wide ? end : c + k->wide, r->tile, k->program && !any);
  if (any) make_plain(j, b, r, column, end);
  if (any && k->program) run_program(j, b, column, end);
}

static void run_shares(const job_t* j, char* memory, int threads) {
  const cpu_bf16_split_t* k = j->k;
  const int64_t parts = (k->outputs + k->columns - 1) / k->columns;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    char* mine = memory + (size_t)omp_get_thread_num() * k->thread_bytes;
    const buffers_t r = buffers_of(mine + k->block_bytes);
    int64_t last = -1;
    cpu_bf16_split_state_t state;
    cpu_bf16_split_begin(&state);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < k->samples * k->blocks * parts; i++) {
      const int64_t column = i % parts * k->columns;
      const block_t b = block_of(k, i / parts, mine);
      for (int64_t l = 0; last != i / parts && l < input_lines(k, b.n); l++) split_line(j, &b, l);
      if (last != i / parts) split_end(k, &b);
      last = i / parts;
      make_columns(j, &b, &r, column,
                   k->outputs - column < k->columns ? k->outputs : column + k->columns);
    }
    cpu_bf16_split_end(&state);
  }
}

assay_status_t cpu_bf16_split_run(assay_kernel_t* base, const void* const* in, void* const* out,
                                  void* scratch) {
  const cpu_bf16_split_t* k = (const cpu_bf16_split_t*)base;
  const job_t j = {k, in, in[k->input], out[0]};
  char* memory = cpu_scratch(scratch);
  const int64_t sums = k->samples * k->y.out * k->x.out * k->outputs;
  int threads = cpu_threads(sums * k->channels / 32 * k->n_pieces);
  if (threads > k->n_threads) threads = k->n_threads;
  run_shares(&j, memory, threads);
  return NULL;
}

// ---- sizes --------------------------------------------------------------------------------------

// Padding that windows see after a line.
static int64_t padding_behind(const cpu_bf16_split_axis_t* a) {
  const int64_t n =
      (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->in - a->before;
  return n > 0 ? n : 0;
}

// The most lines of a block.
static int64_t max_lines(const cpu_bf16_split_t* k) {
  int64_t lines = (MAX_PLACES + k->width - 1) / k->width;
  while (lines > 1 && input_lines(k, lines) * k->width * k->pitch > BLOCK_BYTES) lines--;
  return lines < k->y.out ? lines : k->y.out;
}

// The time that shares take, in that of a unit of terms with a row and a column of tiles. To split
// a unit of a place takes as long as 40 columns, to fetch one of a column's weights as long as 25
// rows. Threads are not all as fast: the last share ends when half of it is all that is left.
static double time_of(const cpu_bf16_split_t* k, int64_t lines, int64_t columns) {
  const double threads = (double)k->n_threads;
  const double blocks = (double)(k->samples * ((k->y.out + lines - 1) / lines));
  const double shares = blocks * (double)((k->outputs + columns - 1) / columns);
  const int64_t tall = ROWS / 2, run = k->flat ? lines * k->width : k->x.out;
  const double rows = (double)((run + tall - 1) / tall * tall * (k->flat ? 1 : lines));
  const double splitting = 40 * (double)(input_lines(k, lines) * k->width);
  const double share = (rows + 25) * (double)(k->n_pieces * columns);
  const double some = shares / threads, split = some < blocks ? some : blocks;
  return (some < 1 ? 1 : some + (some > 1 && threads > 1 ? 0.5 : 0)) * share +
         (split < 1 ? 1 : split) * splitting;
}

// Blocks and columns of the shares.
static void share_out(cpu_bf16_split_t* k) {
  const int64_t max = max_lines(k), min = (k->y.out + max - 1) / max;
  const int64_t panels = padded(k->outputs) / COLUMNS;
  double best = -1;
  for (int64_t n = min; n <= k->y.out && n <= min + 4 * k->n_threads; n++) {
    int64_t lines = (k->y.out + n - 1) / n;
    if (k->width == 1 && (lines + ROWS - 1) / ROWS * ROWS <= max)  // no tiles are half full
      lines = (lines + ROWS - 1) / ROWS * ROWS;
    for (int64_t parts = 1; parts <= panels && parts <= 4 * k->n_threads; parts++) {
      const int64_t columns = (panels + parts - 1) / parts * COLUMNS;
      const double time = time_of(k, lines, columns);
      if (best >= 0 && time >= 0.98 * best) continue;
      best = time;
      k->lines = lines;
      k->columns = columns;
    }
    if (k->n_threads == 1) break;  // all columns of the largest blocks
  }
  k->blocks = (k->y.out + k->lines - 1) / k->lines;
}

// How work is shared out changes no bits: it may depend on the batch and on the threads.
assay_status_t cpu_bf16_split_plan(cpu_bf16_split_t* k) {
  const int64_t behind = padding_behind(&k->x);
  k->flat = k->x.stride == 1 && k->y.stride == 1;
  // In one run a line's padding after it is what lies before the next line.
  k->width = k->x.before + k->x.in +
             (k->flat ? (behind > k->x.before ? behind - k->x.before : 0) : behind);
  // An odd number of lines: else all rows of a tile lie in one place of the cache.
  k->pitch = LINE * (k->units * k->parts / 2 * 2 + 1);
  ASSAY_TRY(assay_new_array((size_t)k->n_pieces, sizeof *k->pieces, &k->pieces));
  for (int64_t q = 0; q < k->n_pieces; q++)
    k->pieces[q] =
        (q / k->x.kernel * k->y.dilation * k->width + q % k->x.kernel * k->x.dilation) * k->pitch;
  k->n_threads = omp_get_max_threads();
  share_out(k);
  const int64_t fit = WEIGHTS_BYTES / (k->panel * 2), max = k->columns / COLUMNS;
  k->wide = COLUMNS * (fit < 1 ? 1 : fit < MAX_PANELS ? fit : MAX_PANELS);
  if (k->wide > max * COLUMNS) k->wide = max * COLUMNS;
  k->block_bytes = (size_t)(block_places(k) * k->pitch + whole_lines(block_places(k)));
  k->thread_bytes = (size_t)whole_lines(scratch_bytes()) + k->block_bytes;
  k->base.scratch = LINE + (size_t)k->n_threads * k->thread_bytes;
  return NULL;
}
