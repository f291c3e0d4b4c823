#include <omp.h>
#include <string.h>

#include "backends/cpu/gemm.h"
#include "backends/cpu/split.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

enum {
  LINE = 64,  // bytes
  ROWS = CPU_SPLIT_ROWS,
  COLUMNS = CPU_SPLIT_COLUMNS,
  CHUNK = 256,           // terms of a plain sum at a time
  GROUP = 64,            // places with plain sums at a time
  BLOCK_BYTES = 640000,  // of a block's split input: a part of the second cache
  MOST_PLACES = 768,     // of a block
};
_Static_assert((int)COLUMNS == (int)CPU_PANEL, "plain sums come in panels of as many columns");

typedef struct job {
  const cpu_split_t* k;
  const void* const* in;
  const float* x;
  float* y;
} job_t;

// Memory of one thread.
typedef struct room {
  float *tile, *weights, *sums;
  int64_t* places;  // [GROUP]
} room_t;

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

static int64_t input_lines(const cpu_split_t* k, int64_t lines) {
  return (lines - 1) * k->y.stride + (k->y.kernel - 1) * k->y.dilation + 1;
}

// Places behind the last line that rows of tiles may read.
static int64_t places_behind(const cpu_split_t* k) {
  return ROWS * k->x.stride + (k->x.kernel - 1) * k->x.dilation;
}

static int64_t block_places(const cpu_split_t* k) {
  return input_lines(k, k->lines) * k->width + places_behind(k);
}

static block_t block_of(const cpu_split_t* k, int64_t i, char* memory) {
  block_t b = {.sample = i / k->blocks, .line = i % k->blocks * k->lines, .places = memory};
  b.n = k->y.out - b.line < k->lines ? k->y.out - b.line : k->lines;
  b.out_of_range = (unsigned char*)memory + block_places(k) * k->pitch;
  return b;
}

// ---- splitting ----------------------------------------------------------------------------------

static void split_zeros(const cpu_split_t* k, const block_t* b, int64_t place, int64_t n) {
  memset(b->places + place * k->pitch, 0, (size_t)(n * k->pitch));
  memset(b->out_of_range + place, 0, (size_t)n);
}

// Line i of a block's input.
static void split_line(const job_t* j, const block_t* b, int64_t i) {
  const cpu_split_t* k = j->k;
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
    b->out_of_range[at] = !cpu_split_row(k->parts, k->channels, x + p * k->x.step * k->channels,
                                         k->range, (uint16_t*)(void*)(b->places + at * k->pitch));
  split_zeros(k, b, at, (i + 1) * k->width - at);
}

// Windows at the end of the last line may see padding that is the next line's.
static void split_end(const cpu_split_t* k, const block_t* b) {
  split_zeros(k, b, input_lines(k, b->n) * k->width, k->x.before);
}

// ---- products -----------------------------------------------------------------------------------

// Rows of a tile to the places of the output: row r is place `at + r` of line `line`'s run.
static void put_rows(const job_t* j, const block_t* b, int64_t line, int64_t at, int64_t rows,
                     int64_t column, const float* tile) {
  const cpu_split_t* k = j->k;
  const int64_t n = k->outputs - column < COLUMNS ? k->outputs - column : COLUMNS;
  const float* bias = k->bias ? k->bias + column : NULL;
  int64_t y = line + at / k->width, x = at % k->width;
  for (int64_t r = 0; r < rows; r++, tile += COLUMNS) {
    if (x < k->x.out && y < b->n) {
      float* to =
          j->y + (((b->sample * k->y.out + b->line + y) * k->x.out + x) * k->outputs + column);
      if (bias)
        _Pragma("omp simd") for (int64_t c = 0; c < n; c++) to[c] = tile[c] + bias[c];
      else
        memcpy(to, tile, (size_t)n * sizeof *to);
    }
    if (++x == k->width) x = 0, y++;
  }
}

// A panel of columns of all lines of a block.
static void multiply(const job_t* j, const block_t* b, int64_t column, float* tile) {
  const cpu_split_t* k = j->k;
  const int64_t runs = k->flat ? 1 : b->n;
  const int64_t length = k->flat ? (b->n - 1) * k->width + k->x.out : k->x.out;
  cpu_split_block_t m = {.parts = k->parts,
                         .step = k->x.stride * k->pitch,
                         .n_pieces = k->n_pieces,
                         .pieces = k->pieces,
                         .units = k->units,
                         .panel = k->weights + column / COLUMNS * k->panel,
                         .c = tile};
  for (int64_t line = 0; line < runs; line++)
    for (int64_t at = 0; at < length; at += ROWS) {
      m.rows = length - at < ROWS ? length - at : ROWS;
      m.a = b->places + (line * k->y.stride * k->width + at * k->x.stride) * k->pitch;
      cpu_split_multiply(&m);
      put_rows(j, b, line, at, m.rows, column, tile);
    }
}

// ---- plain sums ---------------------------------------------------------------------------------

// The place of a block's input that place q of the kernel meets at (y, x).
static int64_t place_of(const cpu_split_t* k, int64_t y, int64_t x, int64_t q) {
  return (y * k->y.stride + q / k->x.kernel * k->y.dilation) * k->width + x * k->x.stride +
         q % k->x.kernel * k->x.dilation;
}

static bool sees_out_of_range(const cpu_split_t* k, const block_t* b, int64_t y, int64_t x) {
  bool out = false;
  for (int64_t q = 0; q < k->n_pieces; q++) out |= b->out_of_range[place_of(k, y, x, q)];
  return out;
}

static float weight_at(const assay_tensor_t* w, int64_t i) {
  return w->store == ASSAY_STORE_PACKED ? ((const float*)w->data)[i] : (float)assay_f64(w)[i];
}

// The model's weights of one place of the kernel, for channels [c, c + n) and a panel.
static void pack_plain(const cpu_split_t* k, int64_t column, int64_t q, int64_t c, int64_t n,
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
  const cpu_split_t* k = j->k;
  const int64_t y =
      (b->line + place / k->x.out) * k->y.stride - k->y.before + q / k->x.kernel * k->y.dilation;
  const int64_t x = place % k->x.out * k->x.stride - k->x.before + q % k->x.kernel * k->x.dilation;
  if (y < 0 || y >= k->y.in || x < 0 || x >= k->x.in) return NULL;
  return j->x + (b->sample * k->source_size + y * k->y.step * k->source_width + x * k->x.step) *
                    k->channels;
}

// So many places of a block (numbers among its output's) with a panel's columns.
static void plain_places(const job_t* j, const block_t* b, const room_t* r, int64_t places,
                         int64_t column) {
  const cpu_split_t* k = j->k;
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
    const int64_t y = r->places[i] / k->x.out, x = r->places[i] % k->x.out;
    put_rows(j, b, y, x, 1, column, r->sums + i * COLUMNS);
  }
}

static bool any_out_of_range(const cpu_split_t* k, const block_t* b) {
  return memchr(b->out_of_range, 1, (size_t)(input_lines(k, b->n) * k->width));
}

static void make_plain(const job_t* j, const block_t* b, const room_t* r, int64_t column,
                       int64_t end) {
  const cpu_split_t* k = j->k;
  int64_t n = 0;
  for (int64_t i = 0; i < b->n * k->x.out; i++) {
    if (sees_out_of_range(k, b, i / k->x.out, i % k->x.out)) r->places[n++] = i;
    if (n < GROUP && (i + 1 < b->n * k->x.out || !n)) continue;
    for (int64_t c = column; c < end; c += COLUMNS) plain_places(j, b, r, n, c);
    n = 0;
  }
}

// ---- threads ------------------------------------------------------------------------------------

static room_t room_of(char* memory) {
  room_t r = {.tile = (float*)(void*)memory};
  r.weights = r.tile + ROWS * COLUMNS;
  r.sums = r.weights + CHUNK * COLUMNS;
  r.places = (int64_t*)(void*)(r.sums + GROUP * COLUMNS);
  return r;
}

static int64_t room_bytes(void) {
  return (ROWS + CHUNK + GROUP) * COLUMNS * (int64_t)sizeof(float) + GROUP * 8;
}

// Columns [column, end) of a block, and what the layer does to each element of them.
static void make_columns(const job_t* j, const block_t* b, const room_t* r, int64_t column,
                         int64_t end) {
  const cpu_split_t* k = j->k;
  for (int64_t c = column; c < end; c += COLUMNS) multiply(j, b, c, r->tile);
  if (any_out_of_range(k, b)) make_plain(j, b, r, column, end);
  if (!k->program) return;
  const int64_t from = (b->sample * k->y.out + b->line) * k->x.out * k->outputs + column;
  const cpu_program_part_t part = {.from = from,
                                   .n = end - column,
                                   .runs = b->n * k->x.out,
                                   .step = k->outputs,
                                   .result = j->y + from,
                                   .result_step = k->outputs};
  cpu_program_run_part(k->program, j->in, ASSAY_TYPE_FLOAT, j->y, &part);
}

// Each thread takes blocks.
static void run_by_blocks(const job_t* j, char* memory, int threads) {
  const cpu_split_t* k = j->k;
  const int64_t blocks = k->samples * k->blocks;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    char* mine = memory + (size_t)omp_get_thread_num() * k->thread_bytes;
    const room_t r = room_of(mine + k->block_bytes);
    cpu_split_state_t state;
    cpu_split_begin(&state);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < blocks; i++) {
      const block_t b = block_of(k, i, mine);
      for (int64_t l = 0; l < input_lines(k, b.n); l++) split_line(j, &b, l);
      split_end(k, &b);
      make_columns(j, &b, &r, 0, k->outputs);
    }
    cpu_split_end(&state);
  }
}

// All threads split all blocks; then each takes some columns of some block.
static void run_together(const job_t* j, char* memory, int threads) {
  const cpu_split_t* k = j->k;
  const int64_t blocks = k->samples * k->blocks, lines = input_lines(k, k->lines);
  const int64_t parts = (k->outputs + k->columns - 1) / k->columns;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const room_t r = room_of(memory + (size_t)blocks * k->block_bytes +
                             (size_t)omp_get_thread_num() * k->thread_bytes);
    cpu_split_state_t state;
    cpu_split_begin(&state);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < blocks * lines; i++) {
      const block_t b = block_of(k, i / lines, memory + (size_t)(i / lines) * k->block_bytes);
      if (i % lines < input_lines(k, b.n)) split_line(j, &b, i % lines);
      if (i % lines == 0) split_end(k, &b);
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < blocks * parts; i++) {
      const int64_t n = i % blocks, column = i / blocks * k->columns;
      const block_t b = block_of(k, n, memory + (size_t)n * k->block_bytes);
      make_columns(j, &b, &r, column,
                   column + k->columns < k->outputs ? column + k->columns : k->outputs);
    }
    cpu_split_end(&state);
  }
}

assay_status_t cpu_split_run(assay_kernel_t* base, const void* const* in, void* const* out,
                             void* scratch) {
  const cpu_split_t* k = (const cpu_split_t*)base;
  const job_t j = {k, in, in[k->input], out[0]};
  char* memory = (char*)(((uintptr_t)scratch + LINE - 1) / LINE * LINE);
  const int64_t sums = k->samples * k->y.out * k->x.out * k->outputs;
  int threads = cpu_threads(sums * k->channels / 32 * k->n_pieces);
  if (threads > k->n_threads) threads = k->n_threads;
  (k->together ? run_together : run_by_blocks)(&j, memory, threads);
  return NULL;
}

// ---- sizes --------------------------------------------------------------------------------------

// Padding that windows see behind a line.
static int64_t padding_behind(const cpu_split_axis_t* a) {
  const int64_t n =
      (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->in - a->before;
  return n > 0 ? n : 0;
}

// A block's lines: as many as fit, and no fewer blocks than they need.
static int64_t lines_of(const cpu_split_t* k) {
  int64_t lines = (MOST_PLACES + k->width - 1) / k->width;
  while (lines > 1 && input_lines(k, lines) * k->width * k->pitch > BLOCK_BYTES) lines--;
  if (lines > k->y.out) lines = k->y.out;
  const int64_t blocks = (k->y.out + lines - 1) / lines;
  return (k->y.out + blocks - 1) / blocks;
}

// How work is shared out changes no bits: it may depend on the batch and on the threads.
assay_status_t cpu_split_plan(cpu_split_t* k) {
  const int64_t behind = padding_behind(&k->x);
  k->flat = k->x.stride == 1 && k->y.stride == 1;
  // In one run a line's padding behind it is what lies before the next line.
  k->width = k->x.before + k->x.in +
             (k->flat ? (behind > k->x.before ? behind - k->x.before : 0) : behind);
  // An odd number of lines: else all rows of a tile lie in one place of the cache.
  k->pitch = LINE * (k->units * k->parts / 2 * 2 + 1);
  ASSAY_TRY(assay_new_array((size_t)k->n_pieces, sizeof *k->pieces, &k->pieces));
  for (int64_t q = 0; q < k->n_pieces; q++)
    k->pieces[q] =
        (q / k->x.kernel * k->y.dilation * k->width + q % k->x.kernel * k->x.dilation) * k->pitch;
  k->n_threads = omp_get_max_threads();
  k->lines = lines_of(k);
  k->blocks = (k->y.out + k->lines - 1) / k->lines;
  const int64_t blocks = k->samples * k->blocks, panels = padded(k->outputs) / COLUMNS;
  k->together = k->n_threads > 1 && blocks < 4 * k->n_threads;
  const int64_t some = blocks * panels / (4 * k->n_threads);
  k->columns = COLUMNS * (some < 1 ? 1 : some > panels ? panels : some);
  k->block_bytes = (size_t)(block_places(k) * k->pitch + whole_lines(block_places(k)));
  k->thread_bytes = (size_t)whole_lines(room_bytes()) + (k->together ? 0 : k->block_bytes);
  k->base.scratch = LINE + (k->together ? (size_t)blocks * k->block_bytes : 0) +
                    (size_t)k->n_threads * k->thread_bytes;
  return NULL;
}
