// The rule of LSTM: back through time.
//
// Source: ONNX LSTM-14, with the default activations: gates in the order i o f c,
//   i, o, f = sigmoid(...), g = tanh(...), C = f C' + i g, H = o tanh(C).
// Other activations, clipping, peepholes, coupled gates, sequences of different lengths, and all
// inputs but X, numerically, where that is little work.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "eval/gradients/vjp.h"
#include "ops/matmul/gemm.h"

typedef struct lstm {
  const assay_vjp_t* c;
  int64_t t, n, i, h, directions;
  int64_t direction;  // at work
  bool backwards;
  double* gates;   // [t, n, 4h]: first what goes into them, then what they are
  double* cells;   // [t + 1, n, h]; the first: as given, or 0
  double* hidden;  // [n, h]
  double *dgates, *dh, *dc;
} lstm_t;

static const double* input(const lstm_t* s, size_t k, int64_t block) {
  const assay_tensor_t* x = k < s->c->n_in ? s->c->in[k] : NULL;
  return x ? assay_f64(x) + s->direction * block : NULL;
}

static assay_matrix_t matrix(const double* data, int64_t row, int64_t col) {
  return (assay_matrix_t){.data = data,
                          .store = ASSAY_STORE_F64,
                          .type = ASSAY_TYPE_DOUBLE,
                          .row_stride = row,
                          .col_stride = col};
}

static double sigmoid(double x) { return 1 / (1 + assay_exp(-x)); }

// Element `step` of the way through time.
static int64_t time_of(const lstm_t* s, int64_t step) {
  return s->backwards ? s->t - 1 - step : step;
}

static void run_cell(const lstm_t* s, int64_t step) {
  double* gates = s->gates + time_of(s, step) * s->n * 4 * s->h;
  for (int64_t k = 0; k < s->n * s->h; k++) {
    double* z = gates + k / s->h * 4 * s->h + k % s->h;
    z[0] = sigmoid(z[0]);
    z[s->h] = sigmoid(z[s->h]);
    z[2 * s->h] = sigmoid(z[2 * s->h]);
    z[3 * s->h] = assay_tanh(z[3 * s->h]);
    const double cell = z[2 * s->h] * s->cells[step * s->n * s->h + k] + z[0] * z[3 * s->h];
    s->cells[(step + 1) * s->n * s->h + k] = cell;
    s->hidden[k] = z[s->h] * assay_tanh(cell);
  }
}

// All gates and cells once more: LSTM does not hand them out.
static assay_status_t run_forward(lstm_t* s) {
  const assay_eval_t e = {.node = s->c->node};
  const int64_t h = s->h, rows = s->t * s->n;
  const assay_matrix_t x = matrix(assay_f64(s->c->in[0]), s->i, 1);
  const assay_matrix_t w = matrix(input(s, 1, 4 * h * s->i), 1, s->i);
  const assay_matrix_t r = matrix(input(s, 2, 4 * h * h), 1, h);
  const double *bias = input(s, 3, 8 * h), *h0 = input(s, 5, s->n * h), *c0 = input(s, 6, s->n * h);
  ASSAY_TRY(assay_gemm(&e, rows, 4 * h, s->i, &x, &w, s->gates, 4 * h, false));
  for (int64_t k = 0; bias && k < rows * 4 * h; k++)
    s->gates[k] += bias[k % (4 * h)] + bias[4 * h + k % (4 * h)];
  for (int64_t k = 0; k < s->n * h; k++) {
    s->hidden[k] = h0 ? h0[k] : 0;
    s->cells[k] = c0 ? c0[k] : 0;
  }
  for (int64_t step = 0; step < s->t; step++) {
    const assay_matrix_t last = matrix(s->hidden, h, 1);
    double* gates = s->gates + time_of(s, step) * s->n * 4 * h;
    ASSAY_TRY(assay_gemm(&e, s->n, 4 * h, h, &last, &r, gates, 4 * h, true));
    run_cell(s, step);
  }
  return NULL;
}

static void back_cell(const lstm_t* s, int64_t step) {
  const int64_t h = s->h, at = time_of(s, step) * s->n * 4 * h;
  for (int64_t k = 0; k < s->n * h; k++) {
    const double* z = s->gates + at + k / h * 4 * h + k % h;
    double* d = s->dgates + at + k / h * 4 * h + k % h;
    const double i = z[0], o = z[h], f = z[2 * h], g = z[3 * h];
    const double before = s->cells[step * s->n * h + k];
    const double tanh_cell = assay_tanh(s->cells[(step + 1) * s->n * h + k]);
    const double dc = s->dc[k] + s->dh[k] * o * (1 - tanh_cell * tanh_cell);
    d[0] = dc * g * i * (1 - i);
    d[h] = s->dh[k] * tanh_cell * o * (1 - o);
    d[2 * h] = dc * before * f * (1 - f);
    d[3 * h] = dc * i * (1 - g * g);
    s->dc[k] = dc * f;
  }
}

// Block `direction` of what output k has for this probe, or NULL.
static const double* wanted(const lstm_t* s, size_t k, int64_t probe) {
  if (k >= s->c->n_out || !s->c->out_g[k]) return NULL;
  return s->c->out_g[k] + probe * s->c->out[k]->size + s->direction * s->n * s->h;
}

static assay_status_t run_back(lstm_t* s, int64_t probe) {
  const assay_eval_t e = {.node = s->c->node};
  const int64_t h = s->h, nh = s->n * h, rows = s->t * s->n;
  const double *y = wanted(s, 0, probe), *yh = wanted(s, 1, probe), *yc = wanted(s, 2, probe);
  const assay_matrix_t w = matrix(input(s, 1, 4 * h * s->i), s->i, 1);
  const assay_matrix_t r = matrix(input(s, 2, 4 * h * h), h, 1);
  for (int64_t k = 0; k < nh; k++) {
    s->dh[k] = yh ? yh[k] : 0;
    s->dc[k] = yc ? yc[k] : 0;
  }
  for (int64_t step = s->t; step-- > 0;) {
    const int64_t t = time_of(s, step);
    for (int64_t k = 0; y && k < nh; k++) s->dh[k] += y[t * s->directions * nh + k];
    back_cell(s, step);
    const assay_matrix_t d = matrix(s->dgates + t * s->n * 4 * h, 4 * h, 1);
    ASSAY_TRY(assay_gemm(&e, s->n, h, 4 * h, &d, &r, s->dh, h, false));
  }
  const assay_matrix_t all = matrix(s->dgates, 4 * h, 1);
  double* to = s->c->in_g[0] + probe * s->c->in[0]->size;
  return assay_gemm(&e, rows, s->i, 4 * h, &all, &w, to, s->i, true);
}

static bool has_rule(const assay_vjp_t* c) {
  static const char* const others[] = {"activations", "clip", NULL};
  for (size_t i = 0; others[i]; i++)
    if (assay_attr_has(c->node, others[i])) return false;
  if (assay_attr_i64(c->node, "input_forget", 0) || assay_attr_i64(c->node, "layout", 0))
    return false;
  if ((c->n_in > 4 && c->in[4]) || (c->n_in > 7 && c->in[7])) return false;
  return !assay_vjp_wants_from(c, 1) && c->in[0]->store == ASSAY_STORE_F64;
}

assay_status_t assay_vjp_lstm(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t *x = c->in[0], *r = c->in[2];
  *out_known = false;
  if (x->size == 0 || r->size == 0) return NULL;
  if (!has_rule(c)) return assay_vjp_small(c, out_known);
  lstm_t s = {.c = c, .t = x->dims[0], .n = x->dims[1], .i = x->dims[2]};
  s.h = r->dims[2];
  s.directions = r->dims[0];
  const int64_t nh = s.n * s.h, all = s.t * nh * 4;
  double* scratch = NULL;
  ASSAY_TRY(
      assay_new_array((size_t)(2 * all + (s.t + 1) * nh + 3 * nh), sizeof *scratch, &scratch));
  s.gates = scratch;
  s.dgates = s.gates + all;
  s.cells = s.dgates + all;
  s.hidden = s.cells + (s.t + 1) * nh;
  s.dh = s.hidden + nh;
  s.dc = s.dh + nh;
  assay_status_t st = NULL;
  for (s.direction = 0; !st && s.direction < s.directions; s.direction++) {
    s.backwards = s.direction == 1 || assay_attr_is(c->node, "direction", "reverse");
    st = run_forward(&s);
    for (int64_t p = 0; !st && p < c->probes; p++) st = run_back(&s, p);
  }
  assay_free(scratch);
  *out_known = !st;
  return st;
}
