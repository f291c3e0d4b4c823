// One direction of a recurrent layer, step by step.
#include <string.h>

#include "base/alloc.h"
#include "ops/recurrent/recurrent.h"

// What one direction works with. Rows of `states`, `cells` and `work` are batch elements.
typedef struct pass {
  const assay_eval_t* c;
  const assay_recurrent_t* n;
  int direction;
  assay_matrix_t r;
  double* from_x;  // [rows of x, gates * hidden]: the input's share of the gates
  double* gates;   // [batch, gates * hidden]
  double *states, *cells, *work, *prepared;  // [batch, hidden]
} pass_t;

static assay_matrix_t rows_of(const double* data, int64_t stride) {
  return (assay_matrix_t){data, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, stride, 1};
}

// ---- one batch element, one step --------------------------------------------------------------

// The activation of a gate's sum. `clip` bounds those sums alone, not the cell that h reads: ONNX
// says 'the input of activations', and ONNX Runtime 1.31 and OpenVINO 2026.4 leave the cell as it
// is.
static double activate(const pass_t* p, int which, double x) {
  const assay_recurrent_t* n = p->n;
  if (n->clips) x = x > n->clip ? n->clip : x < -n->clip ? -n->clip : x;
  return assay_activate(p->c, &n->activations[3 * p->direction + which], x);
}

static double activate_cell(const pass_t* p, double cell) {
  return assay_activate(p->c, &p->n->activations[3 * p->direction + 2], cell);
}

// The sum that gate g gets for hidden unit j, with both biases.
static double with_bias(const pass_t* p, int64_t g, int64_t j, double sum) {
  const assay_recurrent_t* n = p->n;
  if (!n->bias) return sum;
  const int64_t all = n->gates * n->hidden;
  const double* b = n->bias + 2 * all * p->direction + g * n->hidden + j;
  return assay_acc(p->c, assay_acc(p->c, sum + b[0]) + b[all]);
}

static void rnn_row(const pass_t* p, int64_t b) {
  const int64_t hidden = p->n->hidden;
  for (int64_t j = 0; j < hidden; j++) {
    p->states[b * hidden + j] = activate(p, 0, with_bias(p, 0, j, p->gates[b * hidden + j]));
  }
}

static double peep(const pass_t* p, int64_t which, int64_t j, double cell, double sum) {
  const assay_recurrent_t* n = p->n;
  if (!n->peepholes) return sum;
  const double w = n->peepholes[(3 * p->direction + which) * n->hidden + j];
  return assay_acc(p->c, sum + assay_acc(p->c, w * cell));
}

static void lstm_row(const pass_t* p, int64_t b) {
  const assay_eval_t* c = p->c;
  const int64_t hidden = p->n->hidden;
  const double* g = p->gates + b * 4 * hidden;
  for (int64_t j = 0; j < hidden; j++) {
    double* cell = &p->cells[b * hidden + j];
    const double i = activate(p, 0, with_bias(p, 0, j, peep(p, 0, j, *cell, g[j])));
    const double f =
        p->n->couples_forget
            ? assay_acc(c, 1 - i)
            : activate(p, 0, with_bias(p, 2, j, peep(p, 2, j, *cell, g[2 * hidden + j])));
    const double candidate = activate(p, 1, with_bias(p, 3, j, g[3 * hidden + j]));
    *cell = assay_acc(c, assay_acc(c, f * *cell) + assay_acc(c, i * candidate));
    const double o = activate(p, 0, with_bias(p, 1, j, peep(p, 1, j, *cell, g[hidden + j])));
    p->states[b * hidden + j] = assay_acc(c, o * activate_cell(p, *cell));
  }
}

// z and r into the gates; what the hidden gate's product needs into `work`.
static void gru_gates(const pass_t* p, int64_t b) {
  const int64_t hidden = p->n->hidden;
  double* g = p->gates + b * 3 * hidden;
  for (int64_t j = 0; j < hidden; j++) {
    g[j] = activate(p, 0, with_bias(p, 0, j, g[j]));
    g[hidden + j] = activate(p, 0, with_bias(p, 1, j, g[hidden + j]));
    if (!p->n->linear_before_reset) {
      p->work[b * hidden + j] = assay_acc(p->c, g[hidden + j] * p->states[b * hidden + j]);
    }
  }
}

static void gru_row(const pass_t* p, int64_t b) {
  const assay_eval_t* c = p->c;
  const assay_recurrent_t* n = p->n;
  const int64_t hidden = n->hidden;
  const double* g = p->gates + b * 3 * hidden;
  for (int64_t j = 0; j < hidden; j++) {
    double sum = g[2 * hidden + j];
    if (n->linear_before_reset) {
      const double* bias = n->bias ? n->bias + 6 * hidden * p->direction + 2 * hidden + j : NULL;
      double inner = p->work[b * hidden + j];
      if (bias) inner = assay_acc(c, inner + bias[3 * hidden]);
      sum = assay_acc(c, sum + assay_acc(c, g[hidden + j] * inner));
      if (bias) sum = assay_acc(c, sum + bias[0]);
    } else {
      sum = with_bias(p, 2, j, sum);
    }
    const double h = activate(p, 1, sum), z = g[j];
    double* state = &p->states[b * hidden + j];
    *state = assay_acc(c, assay_acc(c, assay_acc(c, 1 - z) * h) + assay_acc(c, z * *state));
  }
}

// ---- one step of the batch --------------------------------------------------------------------

// Adds x R[first gate .. first gate + count) to the gates.
static assay_status_t multiply(const pass_t* p, const double* x, int64_t first, int64_t count) {
  const assay_recurrent_t* n = p->n;
  const int64_t all = n->gates * n->hidden;
  const assay_matrix_t a = rows_of(x, n->hidden);
  assay_matrix_t b = p->r;
  b.offset += first * n->hidden * b.col_stride;
  return assay_gemm(p->c, n->batch, count * n->hidden, n->hidden, &a, &b,
                    p->gates + first * n->hidden, all, true);
}

static const double* prepared(const pass_t* p, const double* states) {
  if (!p->n->prepare) return states;
  p->n->prepare(p->c, p->n->batch * p->n->hidden, states, p->prepared);
  return p->prepared;
}

static assay_status_t gru_products(const pass_t* p, int64_t s) {
  const assay_recurrent_t* n = p->n;
  const double* h = prepared(p, p->states);
  ASSAY_TRY(multiply(p, h, 0, 2));
  if (n->linear_before_reset) {
    const assay_matrix_t a = rows_of(h, n->hidden);
    assay_matrix_t b = p->r;
    b.offset += 2 * n->hidden * b.col_stride;
    ASSAY_TRY(assay_gemm(p->c, n->batch, n->hidden, n->hidden, &a, &b, p->work, n->hidden, false));
  } else {
    memset(p->work, 0, (size_t)(n->batch * n->hidden) * sizeof *p->work);
  }
  for (int64_t b = 0; b < n->batch; b++) {
    if (s < assay_recurrent_length(n, b)) gru_gates(p, b);
  }
  return n->linear_before_reset ? NULL : multiply(p, prepared(p, p->work), 2, 1);
}

static void store_row(const pass_t* p, int64_t s, int64_t b) {
  const assay_recurrent_t* n = p->n;
  if (!n->y) return;
  const int64_t t = assay_recurrent_time(n, p->direction, s, b);
  const int64_t at = assay_recurrent_y_row(n, p->direction, t, b);
  memcpy(n->y + at * n->hidden, p->states + b * n->hidden, (size_t)n->hidden * sizeof(double));
}

static assay_status_t run_step(const pass_t* p, int64_t s) {
  const assay_recurrent_t* n = p->n;
  const int64_t all = n->gates * n->hidden;
  for (int64_t b = 0; b < n->batch; b++) {
    double* to = p->gates + b * all;
    if (s < assay_recurrent_length(n, b)) {
      const int64_t t = assay_recurrent_time(n, p->direction, s, b);
      const int64_t row = assay_recurrent_x_row(n, t, b);
      memcpy(to, p->from_x + row * all, (size_t)all * sizeof *to);
    } else {
      memset(to, 0, (size_t)all * sizeof *to);
    }
  }
  if (n->cell == ASSAY_CELL_GRU) {
    ASSAY_TRY(gru_products(p, s));
  } else {
    ASSAY_TRY(multiply(p, prepared(p, p->states), 0, n->gates));
  }
  const double work = (double)n->batch * (double)all;
#pragma omp parallel for schedule(static) if (n->batch > 1 && work > 1e4)
  for (int64_t b = 0; b < n->batch; b++) {
    if (s >= assay_recurrent_length(n, b)) continue;  // its sequence is over: the state stays
    if (n->cell == ASSAY_CELL_RNN) rnn_row(p, b);
    if (n->cell == ASSAY_CELL_GRU) gru_row(p, b);
    if (n->cell == ASSAY_CELL_LSTM) lstm_row(p, b);
    store_row(p, s, b);
  }
  return NULL;
}

// ---- one direction ----------------------------------------------------------------------------

static void copy_states(const assay_recurrent_t* n, int direction, const double* from, double* to,
                        bool out) {
  for (int64_t b = 0; b < n->batch; b++) {
    const int64_t there = assay_recurrent_state_row(n, direction, b) * n->hidden,
                  here = b * n->hidden;
    memcpy(to + (out ? there : here), from + (out ? here : there), (size_t)n->hidden * sizeof *to);
  }
}

static assay_status_t multiply_input(const pass_t* p) {
  const assay_recurrent_t* n = p->n;
  const int64_t rows = n->length * n->batch, all = n->gates * n->hidden;
  assay_matrix_t b = n->w;
  b.offset += p->direction * n->w_step;
  assay_tensor_t* made = NULL;
  const double* x = n->x;
  if (n->prepare) {
    const int64_t dims[2] = {rows, n->inputs};
    ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, dims, &made));
    n->prepare(p->c, rows * n->inputs, n->x, assay_f64(made));
    x = assay_f64(made);
  }
  const assay_matrix_t a = rows_of(x, n->inputs);
  assay_status_t st = assay_gemm(p->c, rows, all, n->inputs, &a, &b, p->from_x, all, false);
  assay_tensor_release(made);
  return st;
}

static assay_status_t run_direction(const assay_eval_t* c, const assay_recurrent_t* n,
                                    int direction, double* from_x, double* scratch) {
  const int64_t all = n->gates * n->hidden, state = n->batch * n->hidden;
  pass_t p = {
      .c = c, .n = n, .direction = direction, .r = n->r, .from_x = from_x, .gates = scratch};
  p.states = scratch + n->batch * all;
  p.cells = p.states + state;
  p.work = p.cells + state;
  p.prepared = p.work + state;
  p.r.offset += direction * n->r_step;
  memset(p.states, 0, (size_t)(2 * state) * sizeof *p.states);
  if (n->initial_h) copy_states(n, direction, n->initial_h, p.states, false);
  if (n->initial_c) copy_states(n, direction, n->initial_c, p.cells, false);
  ASSAY_TRY(multiply_input(&p));
  const int64_t steps = assay_recurrent_steps(n);
  for (int64_t s = 0; s < steps; s++) ASSAY_TRY(run_step(&p, s));
  if (n->y_h) copy_states(n, direction, p.states, n->y_h, true);
  if (n->y_c) copy_states(n, direction, p.cells, n->y_c, true);
  return NULL;
}

int64_t assay_recurrent_steps(const assay_recurrent_t* n) {
  int64_t steps = n->lengths ? 0 : n->length;
  for (int64_t b = 0; n->lengths && b < n->batch; b++) {
    if (n->lengths[b] > steps) steps = n->lengths[b];
  }
  return steps;
}

assay_status_t assay_recurrent_run(const assay_eval_t* c, const assay_recurrent_t* n) {
  if (n->batch == 0 || n->hidden == 0) return NULL;
  if (c->running) return assay_recurrent_limits(c, n);
  const int64_t all = n->gates * n->hidden;
  const int64_t x_dims[2] = {n->length * n->batch, all};
  const int64_t capacity_dims[2] = {n->batch, all + 4 * n->hidden};
  assay_tensor_t *from_x = NULL, *scratch = NULL;
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, x_dims, &from_x);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, capacity_dims, &scratch);
  for (int d = 0; !st && d < n->directions; d++) {
    st = run_direction(c, n, d, assay_f64(from_x), assay_f64(scratch));
  }
  assay_tensor_release(from_x);
  assay_tensor_release(scratch);
  return st;
}
