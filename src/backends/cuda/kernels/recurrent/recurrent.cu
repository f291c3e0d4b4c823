// LSTM, GRU and RNN: a step at a time, after the input's share of all gates (a product).
//
// A warp makes a hidden unit of ROWS batch elements: each lane sums up every 32nd term of the
// state's products, then the lanes' sums are joined in pairs. So a sum has one order, whatever else
// is in the batch. States are float32 from step to step.
//
// Options: CELL_RNN, CELL_GRU or CELL_LSTM; F0, F1, F2, its functions (activations.h); T, the type
// of the weights; Y, Y_H, Y_C, those of the outputs; COUPLED: the forget gate is 1 - input gate;
// TF32: weights and the first states are rounded to tf32; states that are made are not.
// Source: the equations of ONNX LSTM, GRU and RNN; gates are in their order (i o f c, z r h).
#include "activations.h"
#include "recurrent_args.h"

#if defined(CELL_LSTM)
#define GATES 4
#elif defined(CELL_GRU)
#define GATES 3
#else
#define GATES 1
#endif
#ifdef TF32
#define FACTOR(x) round_tf32(x)
#else
#define FACTOR(x) (x)
#endif
#define ACTIVATE(which, d, x) JOINED(activate_, JOINED(F, which))(x, a->parameters[d][which])

// ---- where a warp works -------------------------------------------------------------------------

typedef struct place {
  int64_t unit, b;  // the unit; the batch element of lane 0, and the next ones
  int d;            // the direction
} place_t;

DEVICE bool find_place(const recurrent_args_t* a, place_t* p) {
  const int64_t warp = BLOCK * (THREADS / WARP) + THREAD / WARP;
  const int64_t tiles = (a->batch + ROWS - 1) / ROWS, rest = warp / a->hidden;
  p->unit = warp % a->hidden;
  p->b = rest % tiles * ROWS;
  p->d = (int)(rest / tiles);
  return p->d < a->directions;
}

DEVICE int64_t length_of(const recurrent_args_t* a, int64_t b) {
  if (!a->lengths) return a->length;
  const int64_t n = GLOBAL(const int32_t, a->lengths)[b];
  return n < 0 ? 0 : n > a->length ? a->length : n;  // the host says so where it is neither
}

DEVICE int64_t state_at(const recurrent_args_t* a, const place_t* p, int64_t b) {
  return (p->d * a->batch + b) * a->hidden + p->unit;
}

// A step of one batch element: when it is, and what its gates had from the input.
typedef struct moment {
  int64_t b, time, share, state;
  bool over;  // its sequence is
} moment_t;

DEVICE moment_t find_moment(const recurrent_args_t* a, const place_t* p, int64_t b) {
  moment_t m;
  const int64_t length = length_of(a, b);
  const bool reverse = a->reverse || p->d == 1;
  m.b = b;
  m.over = a->step >= length;
  m.time = reverse && !m.over ? length - 1 - a->step : a->step;
  const int64_t row = a->batch_first ? b * a->length + m.time : m.time * a->batch + b;
  m.share = (row * a->directions + p->d) * GATES * a->hidden + p->unit;
  m.state = state_at(a, p, b);
  return m;
}

// ---- the state's share --------------------------------------------------------------------------

// Of `count` gates from `first` on, for ROWS batch elements; all lanes get all sums.
DEVICE void multiply(const recurrent_args_t* a, const place_t* p, address_t states, int first,
                     int count, float (*sums)[ROWS]) {
  const float* h = GLOBAL(const float, states) + (p->d * a->batch + p->b) * a->hidden;
  const ELEMENT(T)* r = GLOBAL(const ELEMENT(T), a->r);
  const int64_t from = ((p->d * GATES + first) * a->hidden + p->unit) * a->hidden;
  UNROLL
  for (int g = 0; g < count; g++) UNROLL
  for (int i = 0; i < ROWS; i++) sums[g][i] = 0;
  const int n = (int)a->hidden;  // of which ROWS fit 32 bits (cuda/recurrent/read.c)
  const int64_t left = a->batch - p->b;
  const int rows = left < ROWS ? (int)left : ROWS;
  for (int k = LANE; k < n; k += WARP) {
    float v[ROWS];
    UNROLL
    for (int i = 0; i < ROWS; i++) v[i] = i < rows ? h[i * n + k] : 0;
    UNROLL
    for (int g = 0; g < count; g++) {
      const float w = FACTOR(LOAD(T)(r, from + g * a->hidden * a->hidden + k));
      UNROLL
      for (int i = 0; i < ROWS; i++) sums[g][i] = FMA(w, v[i], sums[g][i]);
    }
  }
  UNROLL
  for (int mask = WARP / 2; mask; mask /= 2) UNROLL
  for (int g = 0; g < count; g++) UNROLL
  for (int i = 0; i < ROWS; i++) sums[g][i] += shuffle_xor_f32(sums[g][i], mask);
}

// What lane i goes on with: the sums of batch element i.
DEVICE void take_own(int count, float (*sums)[ROWS], float* own) {
  UNROLL
  for (int g = 0; g < count; g++) {
    own[g] = sums[g][0];
    UNROLL
    for (int i = 1; i < ROWS; i++) own[g] = LANE == i ? sums[g][i] : own[g];
  }
}

// ---- gates --------------------------------------------------------------------------------------

DEVICE float share_of(const recurrent_args_t* a, const moment_t* m, int g) {
  return GLOBAL(const float, a->from_x)[m->share + g * a->hidden];
}
// The bias of the input's product (part 0) or of the state's (1); 0: there is none.
DEVICE float bias_of(const recurrent_args_t* a, const place_t* p, int part, int g) {
  const int64_t at = ((p->d * 2 + part) * GATES + g) * a->hidden + p->unit;
  return a->bias ? GLOBAL(const float, a->bias)[at] : 0;
}
DEVICE float with_biases(const recurrent_args_t* a, const place_t* p, int g, float x) {
  return x + bias_of(a, p, 0, g) + bias_of(a, p, 1, g);
}
DEVICE float clip(const recurrent_args_t* a, float x) {
  return x > a->clip ? a->clip : x < -a->clip ? -a->clip : x;
}

DEVICE void put_state(const recurrent_args_t* a, const place_t* p, const moment_t* m, float h) {
  GLOBAL(float, a->after)[m->state] = h;
  if (!a->y) return;
  const int64_t row = a->batch_first ? (m->b * a->length + m->time) * a->directions + p->d
                                     : (m->time * a->directions + p->d) * a->batch + m->b;
  STORE(Y)(GLOBAL(ELEMENT(Y), a->y), row * a->hidden + p->unit, m->over ? 0 : h);
}

// Behind its end a sequence keeps its state, and the output is 0.
DEVICE void stay(const recurrent_args_t* a, const place_t* p, const moment_t* m) {
  put_state(a, p, m, GLOBAL(const float, a->before)[m->state]);
}

#if defined(CELL_LSTM)
DEVICE float peep(const recurrent_args_t* a, const place_t* p, int which, float cell) {
  const int64_t at = (p->d * 3 + which) * a->hidden + p->unit;
  return a->peepholes ? GLOBAL(const float, a->peepholes)[at] * cell : 0;
}
DEVICE void make_state(const recurrent_args_t* a, const place_t* p, const moment_t* m,
                       const float* sums) {
  float* cells = GLOBAL(float, a->cells);
  const float c = cells[m->state];
  float gates[GATES];
  UNROLL
  for (int g = 0; g < GATES; g++) gates[g] = share_of(a, m, g) + sums[g];
  const float i = ACTIVATE(0, p->d, clip(a, with_biases(a, p, 0, gates[0] + peep(a, p, 0, c))));
#ifdef COUPLED
  const float f = 1 - i;
#else
  const float f = ACTIVATE(0, p->d, clip(a, with_biases(a, p, 2, gates[2] + peep(a, p, 2, c))));
#endif
  const float candidate = ACTIVATE(1, p->d, clip(a, with_biases(a, p, 3, gates[3])));
  const float cell = f * c + i * candidate;
  const float o = ACTIVATE(0, p->d, clip(a, with_biases(a, p, 1, gates[1] + peep(a, p, 1, cell))));
  cells[m->state] = cell;
  put_state(a, p, m, o * ACTIVATE(2, p->d, cell));
}
#elif defined(CELL_GRU)
DEVICE float gate_of(const recurrent_args_t* a, const place_t* p, const moment_t* m, int g,
                     float sum) {
  return ACTIVATE(0, p->d, clip(a, with_biases(a, p, g, share_of(a, m, g) + sum)));
}
DEVICE void put_mixed(const recurrent_args_t* a, const place_t* p, const moment_t* m, float z,
                      float sum) {
  const float made = ACTIVATE(1, p->d, clip(a, sum));
  put_state(a, p, m, (1 - z) * made + z * GLOBAL(const float, a->before)[m->state]);
}
DEVICE void make_state(const recurrent_args_t* a, const place_t* p, const moment_t* m,
                       const float* sums) {
  const float r = gate_of(a, p, m, 1, sums[1]);
  const float inner = sums[2] + bias_of(a, p, 1, 2);
  put_mixed(a, p, m, gate_of(a, p, m, 0, sums[0]),
            share_of(a, m, 2) + r * inner + bias_of(a, p, 0, 2));
}
#else
DEVICE void make_state(const recurrent_args_t* a, const place_t* p, const moment_t* m,
                       const float* sums) {
  put_state(a, p, m, ACTIVATE(0, p->d, clip(a, with_biases(a, p, 0, share_of(a, m, 0) + sums[0]))));
}
#endif

// ---- kernels ------------------------------------------------------------------------------------

// A step: all of it, but of a GRU that resets its state before it multiplies it.
KERNEL(recurrent_step, recurrent_args_t, 128) {
  place_t p;
  float sums[GATES][ROWS], own[GATES];
  WAIT_FOR_INPUTS();
  if (!find_place(&a, &p)) return;
  multiply(&a, &p, a.before, 0, GATES, sums);
  LAUNCH_NEXT();
  take_own(GATES, sums, own);
  const int64_t b = p.b + LANE;
  if (LANE >= ROWS || b >= a.batch) return;
  const moment_t m = find_moment(&a, &p, b);
  if (m.over)
    stay(&a, &p, &m);
  else
    make_state(&a, &p, &m, own);
}

#if defined(CELL_GRU)
// Such a step in two: the update gate and the state to multiply, and what becomes of these.
KERNEL(recurrent_gates, recurrent_args_t, 128) {
  place_t p;
  float sums[2][ROWS], own[2];
  WAIT_FOR_INPUTS();
  if (!find_place(&a, &p)) return;
  multiply(&a, &p, a.before, 0, 2, sums);
  LAUNCH_NEXT();
  take_own(2, sums, own);
  const int64_t b = p.b + LANE;
  if (LANE >= ROWS || b >= a.batch) return;
  const moment_t m = find_moment(&a, &p, b);
  const float h = GLOBAL(const float, a.before)[m.state];
  GLOBAL(float, a.update)[m.state] = m.over ? 0 : gate_of(&a, &p, &m, 0, own[0]);
  GLOBAL(float, a.restated)[m.state] = m.over ? 0 : gate_of(&a, &p, &m, 1, own[1]) * h;
}
KERNEL(recurrent_states, recurrent_args_t, 128) {
  place_t p;
  float sums[1][ROWS], own[1];
  WAIT_FOR_INPUTS();
  if (!find_place(&a, &p)) return;
  multiply(&a, &p, a.restated, 2, 1, sums);
  LAUNCH_NEXT();
  take_own(1, sums, own);
  const int64_t b = p.b + LANE;
  if (LANE >= ROWS || b >= a.batch) return;
  const moment_t m = find_moment(&a, &p, b);
  if (m.over)
    stay(&a, &p, &m);
  else
    put_mixed(&a, &p, &m, GLOBAL(const float, a.update)[m.state],
              with_biases(&a, &p, 2, share_of(&a, &m, 2) + own[0]));
}
#endif

// Element i of [directions, batch, hidden], which fits 32 bits, where the layer's states have it.
DEVICE int64_t outside(const recurrent_args_t* a, int64_t i) {
  const uint32_t hidden = (uint32_t)a->hidden, batch = (uint32_t)a->batch;
  const uint32_t unit = (uint32_t)i % hidden, row = (uint32_t)i / hidden;
  const uint32_t b = row % batch, d = row / batch;
  return a->batch_first ? (b * (uint32_t)a->directions + d) * hidden + unit : (uint32_t)i;
}

// The states that it begins with, and those that are left.
KERNEL(recurrent_begin, recurrent_args_t, 256) {
  const int64_t n = a.directions * a.batch * a.hidden;
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < n; i += BLOCKS * THREADS) {
    const int64_t at = outside(&a, i);
    GLOBAL(float, a.before)[i] = a.initial_h ? FACTOR(GLOBAL(const float, a.initial_h)[at]) : 0;
    if (a.cells) GLOBAL(float, a.cells)[i] = a.initial_c ? GLOBAL(const float, a.initial_c)[at] : 0;
  }
}
KERNEL(recurrent_end, recurrent_args_t, 256) {
  const int64_t n = a.directions * a.batch * a.hidden;
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < n; i += BLOCKS * THREADS) {
    const int64_t at = outside(&a, i);
    if (a.y_h) STORE(Y_H)(GLOBAL(ELEMENT(Y_H), a.y_h), at, GLOBAL(const float, a.before)[i]);
    if (a.y_c) STORE(Y_C)(GLOBAL(ELEMENT(Y_C), a.y_c), at, GLOBAL(const float, a.cells)[i]);
  }
}
