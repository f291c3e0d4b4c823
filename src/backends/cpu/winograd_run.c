#include <omp.h>
#include <string.h>

#include "backends/cpu/threads.h"
#include "backends/cpu/winograd.h"
#include "base/target.h"

enum {
  KERNEL = 3,
  MOST_PLACES = 36,
  LINE = 16,              // floats of a cache line
  BLOCK = 48,             // tiles
  ROWS = 6,               // that products take at a time
  INPUTS_BYTES = 400000,  // of a block's transformed inputs: most of the second cache
  COLUMNS = 2 * CPU_PANEL,
};

typedef struct job {
  const cpu_winograd_t* k;
  const void* const* in;
  const float* x;
  float* y;
} job_t;

// Memory of one thread.
typedef struct room {
  float *sums, *patch, *panel, *direct;
} room_t;

// Tiles [first, first + n), whose transformed inputs lie at `inputs`, and whether each is in range.
typedef struct block {
  int64_t first, n;
  float* inputs;
  bool* plain;
} block_t;

static int64_t padded(int64_t n) { return (n + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL; }

// ---- tiles --------------------------------------------------------------------------------------

typedef struct place {
  int64_t sample, row, column;  // of the output
} place_t;

static place_t place_of(const cpu_winograd_t* k, int64_t tile) {
  const int64_t row = tile / k->tiles_wide;
  return (place_t){row / k->tiles_high, row % k->tiles_high * k->out,
                   tile % k->tiles_wide * k->out};
}

// Where the channels of the places lie that a tile reads.
static void input_places(const job_t* j, int64_t tile, const float** from) {
  const cpu_winograd_t* k = j->k;
  const place_t p = place_of(k, tile);
  for (int i = 0; i < k->in; i++) {
    const int64_t y = p.row - k->top + i;
    for (int l = 0; l < k->in; l++) {
      const int64_t x = p.column - k->left + l;
      const bool inside = y >= 0 && y < k->height && x >= 0 && x < k->width;
      *from++ =
          inside ? j->x + ((p.sample * k->height + y) * k->width + x) * k->channels : k->zeros;
    }
  }
}

// Where those lie that it makes, from channel `column` on; NULL: behind the output's end.
static void output_places(const job_t* j, int64_t tile, int64_t column, float** to) {
  const cpu_winograd_t* k = j->k;
  const place_t p = place_of(k, tile);
  for (int i = 0; i < k->out; i++)
    for (int l = 0; l < k->out; l++) {
      const int64_t y = p.row + i, x = p.column + l;
      const bool inside = y < k->out_height && x < k->out_width;
      *to++ = inside
                  ? j->y + ((p.sample * k->out_height + y) * k->out_width + x) * k->outputs + column
                  : NULL;
    }
}

static void transform_inputs(const job_t* j, const block_t* b, int64_t from, int64_t to) {
  const cpu_winograd_t* k = j->k;
  const float* places[MOST_PLACES];
  for (int64_t t = from; t < to; t++) {
    input_places(j, b->first + t, places);
    b->plain[t] = !k->transform_in(k->channels, places, k->range, b->inputs + t * k->channels,
                                   k->inputs_step);
  }
}

// ---- plain tiles --------------------------------------------------------------------------------

static float weight_at(const assay_tensor_t* w, int64_t i) {
  return w->store == ASSAY_STORE_PACKED ? ((const float*)w->data)[i] : (float)assay_f64(w)[i];
}

// A panel of the model's weights: a row for each place of the kernel and channel of the input.
static void pack_plain(const cpu_winograd_t* k, int64_t column, float* to) {
  const int64_t n = k->outputs - column < CPU_PANEL ? k->outputs - column : CPU_PANEL;
  const int64_t size = KERNEL * KERNEL;
  memset(to, 0, (size_t)(size * k->channels * CPU_PANEL) * sizeof *to);
  for (int64_t o = 0; o < n; o++)
    for (int64_t c = 0; c < k->channels; c++)
      for (int64_t q = 0; q < size; q++)
        to[(q * k->channels + c) * CPU_PANEL + o] =
            weight_at(k->model, ((column + o) * k->channels + c) * size + q);
}

// The tile's places with a panel's columns.
static void plain_tile(const job_t* j, int64_t tile, int64_t column, const room_t* r) {
  const cpu_winograd_t* k = j->k;
  const int64_t terms = KERNEL * KERNEL * k->channels;
  const int64_t n = k->outputs - column < CPU_PANEL ? k->outputs - column : CPU_PANEL;
  const float* from[MOST_PLACES];
  float* to[MOST_PLACES];
  input_places(j, tile, from);
  output_places(j, tile, column, to);
  for (int i = 0; i < k->out * k->out; i++) {
    if (!to[i]) continue;
    for (int q = 0; q < KERNEL * KERNEL; q++)
      memcpy(r->patch + q * k->channels,
             from[(i / k->out + q / KERNEL) * k->in + i % k->out + q % KERNEL],
             (size_t)k->channels * sizeof *r->patch);
    cpu_gemm_panel(1, terms, r->patch, terms, r->panel, r->direct, CPU_PANEL, false);
    for (int64_t c = 0; c < n; c++)
      to[i][c] = k->bias ? r->direct[c] + k->bias[column + c] : r->direct[c];
  }
}

static void plain_tiles(const job_t* j, const block_t* b, int64_t column, int64_t end,
                        const room_t* r) {
  bool any = false;
  for (int64_t t = 0; t < b->n; t++) any |= b->plain[t];
  for (int64_t c = column; any && c < end; c += CPU_PANEL) {
    pack_plain(j->k, c, r->panel);
    for (int64_t t = 0; t < b->n; t++)
      if (b->plain[t]) plain_tile(j, b->first + t, c, r);
  }
}

// ---- blocks -------------------------------------------------------------------------------------

// On CPUs with vectors of 8, six rows and half a panel are what their registers hold. The same
// sums.
static void multiply_narrow(int64_t rows, int64_t channels, const float* v, const float* w,
                            float* to, int64_t step) {
  for (int half = 0; half < 2; half++)
    for (int64_t row = 0; row < rows; row += ROWS) {
      const cpu_gemm_block_t b = {.m = rows - row < ROWS ? rows - row : ROWS,
                                  .k = channels,
                                  .vectors = 1,
                                  .a = v + row * channels,
                                  .a_step = channels,
                                  .panels = w + half * CPU_PANEL / 2,
                                  .c = to + row * step + half * CPU_PANEL / 2,
                                  .c_step = step};
      cpu_gemm_block(&b);
    }
}

// Columns [column, column + n) of all products.
static void multiply(const cpu_winograd_t* k, const block_t* b, int64_t column, int64_t n,
                     float* sums) {
  const int64_t width = padded(n), all = padded(k->outputs);
  for (int p = 0; p < k->points; p++) {
    const float* w = k->weights + (p * all + column) * k->channels;
    const float* v = b->inputs + p * k->inputs_step;
    float* to = sums + p * k->sums_step;
    for (int64_t c = 0; k->narrow && c < width; c += CPU_PANEL)
      multiply_narrow(b->n, k->channels, v, w + c * k->channels, to + c, width);
    for (int64_t c = 0; !k->narrow && c < width; c += COLUMNS)
      (width - c > CPU_PANEL ? cpu_gemm_panels : cpu_gemm_panel)(
          b->n, k->channels, v, k->channels, w + c * k->channels, to + c, width, false);
  }
}

static void transform_sums(const job_t* j, const block_t* b, int64_t column, int64_t n,
                           const float* sums) {
  const cpu_winograd_t* k = j->k;
  float* places[MOST_PLACES];
  for (int64_t t = 0; t < b->n; t++) {
    if (b->plain[t]) continue;
    output_places(j, b->first + t, column, places);
    k->transform_out(n, sums + t * padded(n), k->sums_step, k->bias ? k->bias + column : NULL,
                     places);
  }
}

// What the layer does to each element, for channels [column, end) of a block: tiles that lie side
// by side make runs of places.
static void run_program(const job_t* j, const block_t* b, int64_t column, int64_t end) {
  const cpu_winograd_t* k = j->k;
  for (int64_t t = 0; k->program && t < b->n;) {
    const place_t p = place_of(k, b->first + t);
    int64_t n = k->tiles_wide - (b->first + t) % k->tiles_wide;
    if (n > b->n - t) n = b->n - t;
    const int64_t last =
        p.column + n * k->out < k->out_width ? p.column + n * k->out : k->out_width;
    for (int64_t y = p.row; y < p.row + k->out && y < k->out_height; y++) {
      const int64_t from =
          ((p.sample * k->out_height + y) * k->out_width + p.column) * k->outputs + column;
      const cpu_program_part_t part = {.from = from,
                                       .n = end - column,
                                       .runs = last - p.column,
                                       .step = k->outputs,
                                       .result = j->y + from,
                                       .result_step = k->outputs};
      cpu_program_run_part(k->program, j->in, ASSAY_TYPE_FLOAT, j->y, &part);
    }
    t += n;
  }
}

static void make_columns(const job_t* j, const block_t* b, int64_t column, int64_t end,
                         const room_t* r) {
  const cpu_winograd_t* k = j->k;
  for (int64_t c = column; c < end; c += k->columns) {
    const int64_t n = end - c < k->columns ? end - c : k->columns;
    multiply(k, b, c, n, r->sums);
    transform_sums(j, b, c, n, r->sums);
  }
  plain_tiles(j, b, column, end, r);
  run_program(j, b, column, end);
}

// ---- threads ------------------------------------------------------------------------------------

static room_t room_of(const cpu_winograd_t* k, float* memory) {
  const int64_t terms = KERNEL * KERNEL * k->channels;
  room_t r = {.sums = memory};
  r.patch = r.sums + k->points * k->sums_step;
  r.panel = r.patch + (terms + LINE) / LINE * LINE;
  r.direct = r.panel + terms * CPU_PANEL;
  return r;
}

static bool* flags_of(const cpu_winograd_t* k, float* inputs) {
  return (bool*)(inputs + k->points * k->inputs_step);
}

// Each thread takes blocks of tiles.
static void run_by_tiles(const job_t* j, float* memory, int threads) {
  const cpu_winograd_t* k = j->k;
  const int64_t blocks = (k->tiles + k->block - 1) / k->block;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    float* mine = memory + (size_t)omp_get_thread_num() * k->thread_scratch;
    const room_t r = room_of(k, mine + k->inputs);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < blocks; i++) {
      block_t b = {
          .first = i * k->block, .n = k->block, .inputs = mine, .plain = flags_of(k, mine)};
      if (b.n > k->tiles - b.first) b.n = k->tiles - b.first;
      transform_inputs(j, &b, 0, b.n);
      make_columns(j, &b, 0, k->outputs, &r);
    }
  }
}

// All threads transform a block's inputs; then each takes some channels of the output.
static void run_by_columns(const job_t* j, float* memory, int threads) {
  const cpu_winograd_t* k = j->k;
  const int64_t parts = (k->outputs + k->columns - 1) / k->columns;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const room_t r =
        room_of(k, memory + k->inputs + (size_t)omp_get_thread_num() * k->thread_scratch);
    for (int64_t first = 0; first < k->tiles; first += k->block) {
      block_t b = {.first = first, .n = k->block, .inputs = memory, .plain = flags_of(k, memory)};
      if (b.n > k->tiles - b.first) b.n = k->tiles - b.first;
#pragma omp for schedule(static)
      for (int64_t t = 0; t < b.n; t++) transform_inputs(j, &b, t, t + 1);
#pragma omp for schedule(dynamic, 1)
      for (int64_t i = 0; i < parts; i++)
        make_columns(j, &b, i * k->columns,
                     (i + 1) * k->columns < k->outputs ? (i + 1) * k->columns : k->outputs, &r);
    }
  }
}

assay_status_t cpu_winograd_run(assay_kernel_t* base, const void* const* in, void* const* out,
                                void* scratch) {
  const cpu_winograd_t* k = (const cpu_winograd_t*)base;
  const job_t j = {k, in, in[k->input], out[0]};
  float* memory = (float*)(((uintptr_t)scratch + 63) / 64 * 64);
  int threads = cpu_threads(k->tiles * k->points * k->channels / 16 * k->outputs);
  if (threads > k->n_threads) threads = k->n_threads;
  (k->by_columns ? run_by_columns : run_by_tiles)(&j, memory, threads);
  return NULL;
}

cpu_winograd_level_t cpu_winograd_level(void) {
#ifdef ASSAY_HAS_CLONES
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    return CPU_WINOGRAD_WIDE;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CPU_WINOGRAD_NARROW;
#endif
  return CPU_WINOGRAD_SLOW;
}

// ---- sizes --------------------------------------------------------------------------------------

static int64_t whole_lines(int64_t n) { return (n + LINE - 1) / LINE * LINE; }

// How tiles are taken together changes no bits: it may depend on the batch and on the threads.
void cpu_winograd_plan(cpu_winograd_t* k) {
  const int64_t fit = INPUTS_BYTES / (k->points * k->channels * 4) / ROWS * ROWS;
  const int64_t most = fit < 2 * ROWS ? 2 * ROWS : fit > BLOCK ? BLOCK : fit;
  const int64_t blocks = (k->tiles + most - 1) / most;
  k->n_threads = omp_get_max_threads();
  k->by_columns = k->n_threads > 1 && blocks < 4 * k->n_threads;
  k->block = (k->tiles + blocks - 1) / blocks;
  if (k->by_columns)
    k->block = k->tiles < 4 * BLOCK ? k->tiles : 4 * BLOCK;
  else if (k->block % ROWS)
    k->block += ROWS - k->block % ROWS;
  k->columns = COLUMNS;
  // An odd number of lines between products: else all of a tile's lie in one place of the cache.
  k->inputs_step = whole_lines(k->block * k->channels) / LINE / 2 * 2 * LINE + 3 * LINE;
  k->sums_step = k->block * k->columns / LINE / 2 * 2 * LINE + 3 * LINE;
  const int64_t terms = KERNEL * KERNEL * k->channels;
  const int64_t own =
      k->points * k->sums_step + whole_lines(terms + LINE) + (terms + 1) * CPU_PANEL + LINE;
  k->inputs = (size_t)(k->points * k->inputs_step + whole_lines(k->block));
  k->thread_scratch = (size_t)own + (k->by_columns ? 0 : k->inputs);
  k->base.scratch = sizeof(float) * ((k->by_columns ? k->inputs : 0) + LINE +
                                     (size_t)k->n_threads * k->thread_scratch);
}
