// Runs convolutions by Winograd's minimal filtering (winograd.h).
#include <omp.h>
#include <string.h>

#include "backends/cpu/conv/direct_kernel.h"
#include "backends/cpu/conv/winograd.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/target.h"

enum {
  KERNEL = 3,
  MAX_PLACES = 36,
  LINE = 16,        // floats of a cache line
  BLOCK = 224,      // tiles of a block at most,
  MIN_BLOCK = 28,   // and at least, where there are so many
  NARROW_ROWS = 6,  // that products for vectors of 8 take at a time
  COLUMNS = 2 * CPU_PANEL,
  ALIAS = 512,  // floats: rows of a multiple of these share few sets of the first cache
};

typedef struct job {
  const cpu_winograd_t* k;
  const void* const* in;
  void* out;
} job_t;

// Memory of one thread. `widened`: the places that a tile reads, and `made`: what a block makes of
// some channels, where these are not float32 in memory.
typedef struct buffers {
  float *sums, *patch, *panel, *direct, *widened, *made;
  int64_t column;  // of the output's channels, with which `made` begins
} buffers_t;

// Tiles [first, first + n), whose transformed inputs lie at `inputs`, and whether each is in range.
typedef struct block {
  int64_t first, n;
  float* inputs;
  bool* plain;
} block_t;

static bool widens(const cpu_winograd_t* k) { return k->type != ASSAY_TYPE_FLOAT; }
static bool narrows(const cpu_winograd_t* k) { return k->base.out[0].type != ASSAY_TYPE_FLOAT; }

// ---- tiles --------------------------------------------------------------------------------------

typedef struct place {
  int64_t sample, row, column;  // of the output
} place_t;

static place_t place_of(const cpu_winograd_t* k, int64_t tile) {
  const int64_t row = tile / k->tiles_wide;
  return (place_t){
      row / k->tiles_high,
      assay_conv_winograd_tile(row % k->tiles_high, k->apart[0], k->out),
      assay_conv_winograd_tile(tile % k->tiles_wide, k->apart[1], k->out),
  };
}

// Where the channels of the places lie that a tile reads.
static void input_places(const job_t* j, int64_t tile, const buffers_t* r, const float** from) {
  const cpu_winograd_t* k = j->k;
  const void* x = j->in[k->input];
  const place_t p = place_of(k, tile);
  float* wide = r->widened;
  for (int i = 0; i < k->in; i++) {
    const int64_t y = p.row - k->top + i * k->apart[0];
    for (int l = 0; l < k->in; l++, wide += k->channels) {
      const int64_t z = p.column - k->left + l * k->apart[1];
      const bool inside = y >= 0 && y < k->height && z >= 0 && z < k->width;
      const int64_t at = ((p.sample * k->height + y) * k->width + z) * k->channels;
      if (inside && widens(k)) cpu_widen(x, k->type, at, k->channels, wide);
      *from++ = !inside ? k->zeros : widens(k) ? wide : (const float*)x + at;
    }
  }
}

// Where tile t of a block puts what it makes, from channel `column` on: to the output, or, row of
// places by row, to memory of the thread. NULL: after the output's end.
static void output_places(const job_t* j, const block_t* b, int64_t t, int64_t column,
                          const buffers_t* r, float** to) {
  const cpu_winograd_t* k = j->k;
  const place_t p = place_of(k, b->first + t);
  for (int i = 0; i < k->out; i++)
    for (int l = 0; l < k->out; l++, to++) {
      const int64_t y = p.row + i * k->apart[0], x = p.column + l * k->apart[1];
      const int64_t at = ((p.sample * k->out_height + y) * k->out_width + x) * k->outputs + column;
      *to = y >= k->out_height || x >= k->out_width ? NULL
            : narrows(k) ? r->made + ((i * b->n + t) * k->out + l) * COLUMNS + column - r->column
                         : (float*)j->out + at;
    }
}

static void transform_inputs(const job_t* j, const block_t* b, int64_t from, int64_t to,
                             const buffers_t* r) {
  const cpu_winograd_t* k = j->k;
  const float* places[MAX_PLACES];
  for (int64_t t = from; t < to; t++) {
    input_places(j, b->first + t, r, places);
    b->plain[t] = !k->transform_in(k->channels, places, k->range, b->inputs + t * k->row_step,
                                   k->inputs_step);
  }
}

// ---- plain tiles --------------------------------------------------------------------------------

// An element of the model's weights, rounded as the layer has them.
static float weight_at(const cpu_winograd_t* k, int64_t i) {
  const assay_tensor_t* w = k->model;
  float x;
  if (w->store == ASSAY_STORE_PACKED || w->store == ASSAY_STORE_NARROW)
    cpu_widen(w->data, assay_tensor_lies_as(w), i, 1, &x);
  else
    x = (float)assay_f64(w)[i];
  uint32_t rounded;  // room for any type
  cpu_narrow(&x, 1, k->type, 0, &rounded);
  cpu_widen(&rounded, k->type, 0, 1, &x);
  return x;
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
            weight_at(k, ((column + o) * k->channels + c) * size + q);
}

// The places of a block's tile with a panel's columns.
static void plain_tile(const job_t* j, const block_t* b, int64_t t, int64_t column,
                       const buffers_t* r) {
  const cpu_winograd_t* k = j->k;
  const int64_t terms = KERNEL * KERNEL * k->channels;
  const int64_t n = k->outputs - column < CPU_PANEL ? k->outputs - column : CPU_PANEL;
  const float* from[MAX_PLACES];
  float* to[MAX_PLACES];
  input_places(j, b->first + t, r, from);
  output_places(j, b, t, column, r, to);
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
                        const buffers_t* r) {
  for (int64_t c = column; c < end; c += CPU_PANEL) {
    pack_plain(j->k, c, r->panel);
    for (int64_t t = 0; t < b->n; t++)
      if (b->plain[t]) plain_tile(j, b, t, c, r);
  }
}

// ---- blocks -------------------------------------------------------------------------------------

// Rows of a block's inputs, times a panel of weights.
typedef struct product {
  int64_t rows;
  const float *in, *panel, *next;  // next: the panel that comes then; NULL: all stay near
  int vectors;
  float* to;
  int64_t step;
} product_t;

// On CPUs with vectors of 8, six rows and half a panel are what their registers hold. The same
// sums.
static void multiply_narrow(const cpu_winograd_t* k, const product_t* p) {
  for (int half = 0; half < 2; half++)
    for (int64_t row = 0; row < p->rows; row += NARROW_ROWS) {
      const cpu_gemm_block_t b = {.m = p->rows - row < NARROW_ROWS ? p->rows - row : NARROW_ROWS,
                                  .k = k->channels,
                                  .vectors = 1,
                                  .a = p->in + row * k->row_step,
                                  .a_step = k->row_step,
                                  .panels = p->panel + half * CPU_PANEL / 2,
                                  .c = p->to + row * p->step + half * CPU_PANEL / 2,
                                  .c_step = p->step};
      cpu_gemm_block(&b);
    }
}

// The next weights come near meanwhile, where not all of them stay there.
static void multiply_wide(const cpu_winograd_t* k, const product_t* p) {
  const int64_t parts = (p->rows + DIRECT_ROWS - 1) / DIRECT_ROWS;
  const uint32_t* at[DIRECT_ROWS];
  const int32_t tap = 0;
  const char* fetch = (const char*)p->next;
  for (int64_t i = 0; i < parts; i++) {
    const int64_t from = p->rows * i / parts, end = p->rows * (i + 1) / parts;
    for (int64_t r = from; r < end; r++)
      at[r - from] = (const uint32_t*)(const void*)(p->in + r * k->row_step);
    direct_block_t b = {.rows = (int)(end - from),
                        .vectors = p->vectors,
                        .n_taps = 1,
                        .taps = &tap,
                        .at = at,
                        .units = k->channels,
                        .panel = (const uint32_t*)(const void*)p->panel,
                        .sums = p->to + from * p->step,
                        .step = p->step,
                        .fetch = fetch,
                        .fetch_every = parts};
    cpu_direct_floats.block(&b);
    fetch = b.fetch;
  }
}

// Columns [column, column + n) of all products.
static void multiply(const cpu_winograd_t* k, const block_t* b, int64_t column, int64_t n,
                     float* sums) {
  const int64_t width = cpu_panel_padded(n), all = cpu_panel_padded(k->outputs);
  for (int p = 0; p < k->points; p++)
    for (int64_t c = 0; c < width; c += CPU_PANEL) {
      const float* w = k->weights + (p * all + column + c) * k->channels;
      const int64_t next = c + CPU_PANEL < width ? CPU_PANEL : all - c;
      const product_t product = {.rows = b->n,
                                 .in = b->inputs + p * k->inputs_step,
                                 .panel = w,
                                 .next = k->far ? w + next * k->channels : NULL,
                                 .vectors = n - c > DIRECT_LANES ? 2 : 1,
                                 .to = sums + p * k->sums_step + c,
                                 .step = width};
      (k->narrow ? multiply_narrow : multiply_wide)(k, &product);
    }
}

static void transform_sums(const job_t* j, const block_t* b, int64_t column, int64_t n,
                           const buffers_t* r) {
  const cpu_winograd_t* k = j->k;
  float* places[MAX_PLACES];
  for (int64_t t = 0; t < b->n; t++) {
    if (b->plain[t]) continue;
    output_places(j, b, t, column, r, places);
    k->transform_out(n, r->sums + t * cpu_panel_padded(n), k->sums_step,
                     k->bias ? k->bias + column : NULL, k->relu, places);
  }
}

// Places [from, ...) of the output, which lie there already, or at `made`: what the layer does to
// each element, and rounding.
static void finish(const job_t* j, const cpu_program_part_t* part) {
  const cpu_winograd_t* k = j->k;
  const assay_type_t type = k->base.out[0].type;
  if (k->program) {
    cpu_program_run_part(k->program, j->in, type, j->out, part);
    return;
  }
  for (int64_t i = 0; i < part->runs; i++)
    cpu_narrow(part->result + i * part->result_step, part->n, type, part->from + i * part->step,
               j->out);
}

// The same for channels [column, end) of a block: tiles that lie side by side make runs of places.
static void finish_block(const job_t* j, const block_t* b, int64_t column, int64_t end,
                         const buffers_t* r) {
  const cpu_winograd_t* k = j->k;
  for (int64_t t = 0; t < b->n;) {
    const place_t p = place_of(k, b->first + t);
    int64_t n = k->tiles_wide - (b->first + t) % k->tiles_wide;
    if (n > b->n - t) n = b->n - t;
    if (k->apart[1] > 1) n = 1;
    const int64_t left = (k->out_width - p.column + k->apart[1] - 1) / k->apart[1];
    for (int i = 0; i < k->out && p.row + i * k->apart[0] < k->out_height; i++) {
      const int64_t row = p.sample * k->out_height + p.row + i * k->apart[0];
      const int64_t from = (row * k->out_width + p.column) * k->outputs + column;
      cpu_program_part_t part = {.from = from,
                                 .n = end - column,
                                 .runs = n * k->out < left ? n * k->out : left,
                                 .step = k->outputs * k->apart[1],
                                 .result = (const float*)j->out + from,
                                 .result_step = k->outputs * k->apart[1]};
      if (narrows(k)) {
        part.result = r->made + (i * b->n + t) * k->out * COLUMNS;
        part.result_step = COLUMNS;
      }
      finish(j, &part);
    }
    t += n;
  }
}

static bool has_plain(const block_t* b) {
  bool any = false;
  for (int64_t t = 0; t < b->n; t++) any |= b->plain[t];
  return any;
}

static void make_columns(const job_t* j, const block_t* b, int64_t column, int64_t end,
                         buffers_t* r) {
  const cpu_winograd_t* k = j->k;
  const bool plain = has_plain(b);
  for (int64_t c = column; c < end; c += k->columns) {
    const int64_t n = end - c < k->columns ? end - c : k->columns;
    r->column = c;
    multiply(k, b, c, n, r->sums);
    transform_sums(j, b, c, n, r);
    if (plain) plain_tiles(j, b, c, c + n, r);
    if (narrows(k)) finish_block(j, b, c, c + n, r);
  }
  // To limit once more what the transform has limited changes nothing.
  if (!narrows(k) && k->program && (plain || !k->relu)) finish_block(j, b, column, end, r);
}

// ---- threads ------------------------------------------------------------------------------------

static int64_t whole_lines(int64_t n) { return (n + LINE - 1) / LINE * LINE; }

static int64_t widened_size(const cpu_winograd_t* k) {
  return widens(k) ? whole_lines(k->points * k->channels) + LINE : 0;
}
static int64_t made_size(const cpu_winograd_t* k) {
  return narrows(k) ? k->block * k->out * k->out * COLUMNS : 0;
}

static buffers_t buffers_of(const cpu_winograd_t* k, float* memory) {
  const int64_t terms = KERNEL * KERNEL * k->channels;
  buffers_t r = {.sums = memory};
  r.patch = r.sums + k->points * k->sums_step;
  r.panel = r.patch + (terms + LINE) / LINE * LINE;
  r.direct = r.panel + terms * CPU_PANEL;
  r.widened = r.direct + CPU_PANEL;
  r.made = r.widened + widened_size(k);
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
    buffers_t r = buffers_of(k, mine + k->inputs);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < blocks; i++) {
      block_t b = {
          .first = i * k->block, .n = k->block, .inputs = mine, .plain = flags_of(k, mine)};
      if (b.n > k->tiles - b.first) b.n = k->tiles - b.first;
      transform_inputs(j, &b, 0, b.n, &r);
      make_columns(j, &b, 0, k->outputs, &r);
    }
  }
}

// All threads transform a block's inputs; then each takes some channels of the output.
static void run_by_columns(const job_t* j, float* memory, int threads) {
  const cpu_winograd_t* k = j->k;
  const int64_t panels = (k->outputs + CPU_PANEL - 1) / CPU_PANEL;
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    buffers_t r =
        buffers_of(k, memory + k->inputs + (size_t)omp_get_thread_num() * k->thread_scratch);
    for (int64_t first = 0; first < k->tiles; first += k->block) {
      block_t b = {.first = first, .n = k->block, .inputs = memory, .plain = flags_of(k, memory)};
      if (b.n > k->tiles - b.first) b.n = k->tiles - b.first;
#pragma omp for schedule(static)
      for (int64_t t = 0; t < b.n; t++) transform_inputs(j, &b, t, t + 1, &r);
#pragma omp for schedule(static, 1)
      for (int i = 0; i < threads; i++) {
        const int64_t end = panels * (i + 1) / threads * CPU_PANEL;
        make_columns(j, &b, panels * i / threads * CPU_PANEL, end < k->outputs ? end : k->outputs,
                     &r);
      }
    }
  }
}

assay_status_t cpu_winograd_run(assay_kernel_t* base, const void* const* in, void* const* out,
                                void* scratch) {
  const cpu_winograd_t* k = (const cpu_winograd_t*)base;
  const job_t j = {k, in, out[0]};
  float* memory = cpu_scratch(scratch);
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

// Whether threads share out the channels rather than the tiles: where that reads less. Blocks of
// tiles read all weights for each, and of those that do not stay near most comes from far.
static bool shares_columns(const cpu_winograd_t* k, int64_t blocks) {
  const int64_t panels = (k->outputs + CPU_PANEL - 1) / CPU_PANEL, threads = k->n_threads;
  const int64_t weights = k->points * panels * CPU_PANEL * k->channels;
  const int64_t inputs = k->points * k->tiles * k->channels;
  return threads > 1 && k->far && panels >= threads &&
         weights + inputs < weights * ((blocks + threads - 1) / threads);
}

// How tiles are taken together changes no bits: it may depend on the batch and on the threads.
void cpu_winograd_plan(cpu_winograd_t* k) {
  const int64_t near = cpu_second_cache() / 5 * 2;
  const int64_t fit = near / (k->points * (k->channels + COLUMNS) * (int64_t)sizeof(float));
  const int64_t max = fit < MIN_BLOCK ? MIN_BLOCK : fit > BLOCK ? BLOCK : fit;
  k->n_threads = omp_get_max_threads();
  k->far = k->points * cpu_panel_padded(k->outputs) * k->channels * (int64_t)sizeof(float) > near;
  const int64_t share = (k->tiles + k->n_threads - 1) / k->n_threads;
  const int64_t blocks = (share + max - 1) / max;
  k->block = (share + blocks - 1) / blocks;
  k->by_columns = shares_columns(k, (k->tiles + k->block - 1) / k->block);
  if (k->by_columns) {
    const int64_t all = (k->tiles + 2 * max - 1) / (2 * max);
    k->block = (k->tiles + all - 1) / all;
  }
  // Rows that lie apart by a multiple of the first cache's ways push each other out of it.
  k->row_step = k->channels % ALIAS ? k->channels : k->channels + LINE;
  k->columns = COLUMNS;
  // An odd number of lines between products: else all of a tile's lie in one place of the cache.
  k->inputs_step = whole_lines(k->block * k->row_step) / LINE / 2 * 2 * LINE + 3 * LINE;
  k->sums_step = k->block * k->columns / LINE / 2 * 2 * LINE + 3 * LINE;
  const int64_t terms = KERNEL * KERNEL * k->channels;
  const int64_t own = k->points * k->sums_step + whole_lines(terms + LINE) +
                      (terms + 1) * CPU_PANEL + LINE + widened_size(k) + made_size(k);
  k->inputs = (size_t)(k->points * k->inputs_step + whole_lines(k->block));
  k->thread_scratch = (size_t)own + (k->by_columns ? 0 : k->inputs);
  k->base.scratch = sizeof(float) * ((k->by_columns ? k->inputs : 0) + LINE +
                                     (size_t)k->n_threads * k->thread_scratch);
}
