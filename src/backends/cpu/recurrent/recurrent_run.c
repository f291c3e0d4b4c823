// Runs recurrent layers: the input's share of all gates first, then step by step the state's, a
// block of hidden units at a time. Blocks are shared out among the threads; no sum crosses them.
#include <string.h>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/recurrent/recurrent.h"
#include "backends/cpu/threads.h"
#include "backends/vmath/vmath.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { ROWS = 16, ALIGN = 16 };  // batch elements at a time; floats that pieces of memory start at

// A run: pieces of the scratch memory, all by direction.
typedef struct run {
  const recurrent_t* k;
  const void* const* in;
  void* const* out;
  const uint32_t* x;                      // as it is multiplied
  uint32_t* wide;                         // [length * batch, input_row]
  float* from_x;                          // [length * batch, blocks * RECURRENT_BLOCK]
  float *h[2], *c, *update, *restated;    // [batch, hidden]: states before and after a step, ...
  uint32_t *narrow[2], *narrow_restated;  // [batch, state_row]: as they are multiplied in bf16
  const int32_t* lengths;
  int64_t steps;
} run_t;

static int64_t aligned(int64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static int64_t share_size(const recurrent_t* k) {
  return k->length * k->batch * k->blocks * RECURRENT_BLOCK;
}

static int64_t narrow_size(const recurrent_t* k) {
  return k->bf16 ? aligned(k->directions * k->batch * k->state_row) : 0;
}

size_t recurrent_scratch(const recurrent_t* k) {
  const int64_t states = aligned(k->directions * k->batch * k->hidden);
  return (size_t)(aligned(k->length * k->batch * k->input_row) +
                  aligned(k->directions * share_size(k)) + 5 * states + 3 * narrow_size(k) +
                  ALIGN) *
         sizeof(float);
}

static void lay_out(run_t* r, void* scratch) {
  const recurrent_t* k = r->k;
  const int64_t states = aligned(k->directions * k->batch * k->hidden);
  float* at = scratch;
  float** const pieces[] = {&r->h[0], &r->h[1], &r->c, &r->update, &r->restated};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++, at += states) *pieces[i] = at;
  r->from_x = at;
  uint32_t* next = (uint32_t*)(void*)(at + aligned(k->directions * share_size(k)));
  uint32_t** const narrow[] = {&r->narrow[0], &r->narrow[1], &r->narrow_restated};
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++, next += narrow_size(k))
    *narrow[i] = next;
  r->wide = next;
}

// ---- where rows are ----------------------------------------------------------------------------

static int64_t length_of(const run_t* r, int64_t b) {
  return r->lengths ? r->lengths[b] : r->k->length;
}

static int64_t time_of(const run_t* r, int d, int64_t s, int64_t b) {
  return r->k->reverse || d == 1 ? length_of(r, b) - 1 - s : s;
}

static const float* share_of(const run_t* r, int d, int64_t block, int64_t s, int64_t b) {
  const recurrent_t* k = r->k;
  const int64_t t = time_of(r, d, s, b);
  const int64_t row = k->batch_first ? b * k->length + t : t * k->batch + b;
  return r->from_x + d * share_size(k) + (row * k->blocks + block) * RECURRENT_BLOCK;
}

static int64_t y_row(const recurrent_t* k, int d, int64_t t, int64_t b) {
  return k->batch_first ? (b * k->length + t) * k->directions + d
                        : (t * k->directions + d) * k->batch + b;
}

static int64_t state_row(const recurrent_t* k, int d, int64_t b) {
  return k->batch_first ? b * k->directions + d : d * k->batch + b;
}

// ---- cells -------------------------------------------------------------------------------------
//
// x: a row of the input's share, p: of the state's; for n units of the block. Source: the equations
// of ONNX LSTM, GRU and RNN with their default functions.

enum { UNITS = 16 };  // of a block: where the next gate's share begins

static void sigmoids(float* x, int64_t n) {
  cpu_vmath()->function[CPU_V_FLOAT32][CPU_V_SIGMOID](x, NULL, NULL, n, x);
}
static void tangents(float* x, int64_t n) {
  cpu_vmath()->function[CPU_V_FLOAT32][CPU_V_TANH](x, NULL, NULL, n, x);
}
// The sums of `gates` gates from `first` on; units that are not there are 0.
static void add_gates(const float* x, const float* p, int first, int gates, int64_t n, float* g) {
  memset(g, 0, (size_t)gates * UNITS * sizeof *g);
  for (int k = 0; k < gates; k++)
    for (int64_t j = 0; j < n; j++)
      g[k * UNITS + j] = x[(first + k) * UNITS + j] + p[(first + k) * UNITS + j];
}

static void lstm_units(const float* x, const float* p, int64_t n, float* c, float* h) {
  enum { I, O, F, C, GATES };
  float g[GATES * UNITS], cell[UNITS];
  add_gates(x, p, I, GATES, n, g);
  sigmoids(g, C * UNITS);
  tangents(g + C * UNITS, n);
  for (int64_t j = 0; j < n; j++)
    cell[j] = c[j] = g[F * UNITS + j] * c[j] + g[I * UNITS + j] * g[C * UNITS + j];
  tangents(cell, n);
  for (int64_t j = 0; j < n; j++) h[j] = g[O * UNITS + j] * cell[j];
}

static void rnn_units(const float* x, const float* p, int64_t n, float* h) {
  for (int64_t j = 0; j < n; j++) h[j] = x[j] + p[j];
  tangents(h, n);
}

// The gate that resets after the product with the state; bias: what that product gets besides.
static void gru_units(const float* x, const float* p, const float* bias, int64_t n,
                      const float* before, float* h) {
  enum { Z, R, H };
  float g[2 * UNITS], made[UNITS];
  add_gates(x, p, Z, 2, n, g);
  sigmoids(g, 2 * UNITS);
  for (int64_t j = 0; j < n; j++)
    made[j] = x[H * UNITS + j] + g[R * UNITS + j] * (p[H * UNITS + j] + bias[j]);
  tangents(made, n);
  for (int64_t j = 0; j < n; j++) h[j] = (1 - g[j]) * made[j] + g[j] * before[j];
}

// The same in two steps, where the state is reset before: z and the state to multiply, then h.
static void gru_gates(const float* x, const float* p, int64_t n, const float* before, float* z,
                      float* restated) {
  enum { Z, R };
  float g[2 * UNITS];
  add_gates(x, p, Z, 2, n, g);
  sigmoids(g, 2 * UNITS);
  for (int64_t j = 0; j < n; j++) {
    z[j] = g[j];
    restated[j] = g[R * UNITS + j] * before[j];
  }
}
static void gru_states(const float* x, const float* p, int64_t n, const float* before,
                       const float* z, float* h) {
  enum { H = 2 * UNITS };
  float made[UNITS];
  for (int64_t j = 0; j < n; j++) made[j] = x[H + j] + p[j];
  tangents(made, n);
  for (int64_t j = 0; j < n; j++) h[j] = (1 - z[j]) * made[j] + z[j] * before[j];
}

// ---- steps -------------------------------------------------------------------------------------

static void store(const run_t* r, int d, int64_t s, int64_t b, int64_t unit, int64_t n,
                  const float* h) {
  const recurrent_t* k = r->k;
  if (k->y < 0) return;
  const int64_t row = y_row(k, d, time_of(r, d, s, b), b);
  cpu_narrow(h, n, k->base.out[k->y].type, row * k->hidden + unit, r->out[k->y]);
}

// c = a . panels, of one panel or two; in the form in which the kernel multiplies.
static void multiply(const recurrent_t* k, int panels, int64_t m, int64_t n, const uint32_t* a,
                     const uint32_t* w, float* c, int64_t c_step, bool adds) {
  if (k->bf16) {
    (panels == 1 ? cpu_gemm_panel_bf16 : cpu_gemm_panels_bf16)(m, n, a, n, w, c, c_step, adds);
    return;
  }
  (panels == 1 ? cpu_gemm_panel : cpu_gemm_panels)(m, n, (const float*)(const void*)a, n,
                                                   (const float*)(const void*)w, c, c_step, adds);
}

// The state's share of a block's gates, for some batch elements.
static void multiply_states(const run_t* r, int64_t s, bool second, int d, int64_t block, int64_t b,
                            int64_t rows, float* tile) {
  const recurrent_t* k = r->k;
  const float* wide = second ? r->restated : r->h[s & 1];
  const uint32_t* states =
      k->bf16 ? second ? r->narrow_restated : r->narrow[s & 1] : (const uint32_t*)(const void*)wide;
  const int panels = second ? 1 : 2;
  multiply(k, panels, rows, k->state_row, states + (d * k->batch + b) * k->state_row,
           (second ? k->reset : k->r) + (d * k->blocks + block) * panels * k->state_row * CPU_PANEL,
           tile, RECURRENT_BLOCK, false);
}

// One step of a block. second: the half of a GRU's step after the reset.
static void run_block(const run_t* r, int d, int64_t block, int64_t s, bool second) {
  const recurrent_t* k = r->k;
  const int64_t unit = block * k->units;
  const int64_t n = k->hidden - unit < k->units ? k->hidden - unit : k->units;
  const float *before = r->h[s & 1], *bias = k->state_bias + d * k->hidden + unit;
  _Alignas(64) float tile[ROWS][RECURRENT_BLOCK];
  float* after = r->h[~s & 1];
  for (int64_t b0 = 0; b0 < k->batch; b0 += ROWS) {
    const int64_t rows = k->batch - b0 < ROWS ? k->batch - b0 : ROWS;
    multiply_states(r, s, second, d, block, b0, rows, tile[0]);
    for (int64_t i = 0; i < rows; i++) {
      const int64_t b = b0 + i, at = (d * k->batch + b) * k->hidden + unit;
      if (s >= length_of(r, b)) {  // its sequence is over: the state stays
        memcpy(after + at, before + at, (size_t)n * sizeof *after);
        continue;
      }
      const float* x = share_of(r, d, block, s, b);
      if (k->cell == RECURRENT_LSTM)
        lstm_units(x, tile[i], n, r->c + at, after + at);
      else if (k->cell == RECURRENT_RNN)
        rnn_units(x, tile[i], n, after + at);
      else if (second)
        gru_states(x, tile[i], n, before + at, r->update + at, after + at);
      else if (k->reset_first)
        gru_gates(x, tile[i], n, before + at, r->update + at, r->restated + at);
      else
        gru_units(x, tile[i], bias, n, before + at, after + at);
    }
  }
}

// One step of blocks [from, to) of a direction, and their states as they are needed next.
static void run_blocks(const run_t* r, int d, int64_t from, int64_t to, int64_t s, bool second) {
  const recurrent_t* k = r->k;
  const bool done = second || !k->reset_first;
  const int64_t unit = from * k->units, end = to * k->units < k->hidden ? to * k->units : k->hidden;
  const float* made = done ? r->h[~s & 1] : r->restated;
  uint32_t* narrow = done ? r->narrow[~s & 1] : r->narrow_restated;
  for (int64_t i = from; i < to; i++) run_block(r, d, i, s, second);
  for (int64_t b = 0; b < k->batch; b++) {
    const int64_t row = d * k->batch + b;
    const float* h = made + row * k->hidden + unit;
    if (k->bf16)
      cpu_narrow(h, end - unit, ASSAY_TYPE_BFLOAT16, row * k->state_row * 2 + unit, narrow);
    if (done && s < length_of(r, b)) store(r, d, s, b, unit, end - unit, h);
  }
}

// The input's share of a block's gates, over all times.
static void share_block(const run_t* r, int d, int64_t block) {
  const recurrent_t* k = r->k;
  const int64_t step = k->blocks * RECURRENT_BLOCK, at = d * k->blocks + block,
                rows = k->length * k->batch;
  float* to = r->from_x + d * share_size(k) + block * RECURRENT_BLOCK;
  for (int64_t i = 0; i < rows; i++)
    memcpy(to + i * step, k->bias + at * RECURRENT_BLOCK, RECURRENT_BLOCK * sizeof *to);
  multiply(k, 2, rows, k->input_row, r->x, k->w + at * 2 * k->input_row * CPU_PANEL, to, step,
           true);
}

// A direction by itself: nobody else to wait for.
static void run_direction(const run_t* r, int d) {
  const recurrent_t* k = r->k;
  for (int64_t i = 0; i < k->blocks; i++) share_block(r, d, i);
  for (int64_t s = 0; s < r->steps; s++)
    for (int half = 0; half <= k->reset_first; half++) run_blocks(r, d, 0, k->blocks, s, half);
}

// Blocks of all directions are shared out, neighbours together.
static void run_together(const run_t* r, int threads) {
  const recurrent_t* k = r->k;
  const int64_t tasks = k->directions * k->blocks;
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = omp_get_num_threads(), own = omp_get_thread_num();
    const int64_t from = tasks * own / team, to = tasks * (own + 1) / team;
    for (int64_t i = from; i < to; i++) share_block(r, (int)(i / k->blocks), i % k->blocks);
#pragma omp barrier
    for (int64_t s = 0; s < r->steps; s++)
      for (int half = 0; half <= k->reset_first; half++) {
        for (int64_t i = from; i < to;) {
          const int64_t d = i / k->blocks, first = i % k->blocks;
          const int64_t end = to < (d + 1) * k->blocks ? to - d * k->blocks : k->blocks;
          run_blocks(r, (int)d, first, end, s, half);
          i += end - first;
        }
#pragma omp barrier
      }
  }
}

// ---- before and after -------------------------------------------------------------------------

static void first_states(const run_t* r, int input, float* to) {
  const recurrent_t* k = r->k;
  if (input < 0) {
    memset(to, 0, (size_t)(k->directions * k->batch * k->hidden) * sizeof *to);
    return;
  }
  for (int d = 0; d < k->directions; d++)
    for (int64_t b = 0; b < k->batch; b++)
      cpu_widen(r->in[input], k->base.in[input].type, state_row(k, d, b) * k->hidden, k->hidden,
                to + (d * k->batch + b) * k->hidden);
}

static void last_states(const run_t* r, int output, const float* from) {
  const recurrent_t* k = r->k;
  for (int d = 0; output >= 0 && d < k->directions; d++)
    for (int64_t b = 0; b < k->batch; b++)
      cpu_narrow(from + (d * k->batch + b) * k->hidden, k->hidden, k->base.out[output].type,
                 state_row(k, d, b) * k->hidden, r->out[output]);
}

// Steps beyond the end of a sequence give 0.
static assay_status_t read_lengths(run_t* r) {
  const recurrent_t* k = r->k;
  r->steps = k->length;
  if (k->lengths < 0) return NULL;
  r->lengths = r->in[k->lengths];
  r->steps = 0;
  for (int64_t b = 0; b < k->batch; b++) {
    const int32_t n = r->lengths[b];
    if (n < 0 || n > k->length)
      return ASSAY_NODE_ERROR(k->node, ASSAY_INVALID_ARGUMENT,
                              "sequence_lens[%lld] is %d; expected one of [0, %lld]", (long long)b,
                              (int)n, (long long)k->length);
    if (n > r->steps) r->steps = n;
  }
  if (k->y >= 0)
    memset(r->out[k->y], 0,
           (size_t)(k->length * k->directions * k->batch * k->hidden) *
               (size_t)assay_type_bits(k->base.out[k->y].type) / 8);
  return NULL;
}

// The input as it is multiplied: in float32, or rows of whole pairs.
static void fetch_inputs(run_t* r) {
  const recurrent_t* k = r->k;
  const int64_t rows = k->length * k->batch;
  const assay_type_t type = k->base.in[k->x].type;
  const void* x = r->in[k->x];
  r->x = r->wide;
  if (k->bf16 ? k->inputs % 2 == 0 : type == ASSAY_TYPE_FLOAT) {
    r->x = x;
  } else if (!k->bf16) {
    cpu_widen(x, type, 0, rows * k->inputs, (float*)(void*)r->wide);
  } else {
    for (int64_t i = 0; i < rows; i++) {
      r->wide[(i + 1) * k->input_row - 1] = 0;
      memcpy(r->wide + i * k->input_row, (const uint16_t*)x + i * k->inputs,
             (size_t)k->inputs * sizeof(uint16_t));
    }
  }
}

// All that is multiplied in bf16, with zeros where a pair is not whole.
static void narrow_states(const run_t* r) {
  const recurrent_t* k = r->k;
  const int64_t rows = k->directions * k->batch;
  memset(r->narrow[0], 0, (size_t)(3 * narrow_size(k)) * sizeof(uint32_t));
  for (int64_t i = 0; i < rows; i++)
    cpu_narrow(r->h[0] + i * k->hidden, k->hidden, ASSAY_TYPE_BFLOAT16, i * k->state_row * 2,
               r->narrow[0]);
}

assay_status_t recurrent_run(assay_kernel_t* base, const void* const* in, void* const* out,
                             void* scratch) {
  const recurrent_t* k = (const recurrent_t*)base;
  run_t r = {.k = k, .in = in, .out = out};
  lay_out(&r, scratch);
  ASSAY_TRY(read_lengths(&r));
  fetch_inputs(&r);
  first_states(&r, k->initial_h, r.h[0]);
  first_states(&r, k->initial_c, r.c);
  if (k->bf16) narrow_states(&r);
  const int64_t terms = k->length * k->batch * (k->inputs + k->hidden);
  const int threads = cpu_threads(k->directions * k->blocks * RECURRENT_BLOCK * terms);
  if (threads > k->directions) {
    run_together(&r, threads);
  } else {
#pragma omp parallel for schedule(static, 1) num_threads(threads) if (threads > 1)
    for (int d = 0; d < k->directions; d++) run_direction(&r, d);
  }
  last_states(&r, k->y_h, r.h[r.steps & 1]);
  last_states(&r, k->y_c, r.c);
  return NULL;
}
