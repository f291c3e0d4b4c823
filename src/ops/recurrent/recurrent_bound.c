// Rounding bounds of recurrent layers: a running error through the cells, step by step, with the
// functions' actual slopes.
//
// Guaranteed: limits of absolute values go through each step: of a gate's sum, |R_j|_2 |limits of
// h|_2 (Cauchy-Schwarz) and what rounding adds; of a function, its largest slope within the
// argument's limit, and no more than its range allows. Where a layer forgets slowly, they grow with
// every step until the functions' ranges end them: signs cancel in R h, and limits do not know.
//
// Probable: what independent rounding errors do to the outputs is linear in them. The derivative is
// carried along for a few random draws of signs: in each, every rounding is off by one standard
// deviation up or down. The mean square over the draws estimates the output's variance without
// bias, correlations between hidden units and steps included.
// Sources: ONNX RNN, GRU, LSTM; Higham (2002), 3.3; M. F. Hutchinson, A stochastic estimator of the
// trace, Commun. Stat. Simul. 19 (1990), for the draws.
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/quant/dynamic_quantize.h"
#include "ops/recurrent/recurrent.h"
#include "ops/running_bound.h"

enum { DRAWS = 8, SIGMAS = 6 };
enum { SQUARES, COUNT, STRAINS };

// A number, its guaranteed limit, and its derivatives: errors in units of u.
typedef struct number {
  double x, g;
  float t[DRAWS];
} number_t;

// What one direction works with; rows are batch elements, of `draws` draws.
typedef struct pass {
  const assay_eval_t* c;
  const assay_recurrent_t* n;
  int direction;
  const assay_rounding_t* r;
  assay_steps_t steps;
  assay_factor_t sum;  // of a gate's sum
  double range;
  assay_matrix_t recurrent;
  double *from_x, *gates, *h, *h_limit, *cells, *cells_limit;
  // Where the states are quantized, or rounded as operands: what is multiplied, and its limits. The
  // same of the input where it is quantized.
  double *made_x, *made_x_limit, *made, *made_limit, *made_probable;
  double *work, *inner;               // GRU: r * h, or R h of the hidden gate
  double* work_limit;                 // limits of `work`
  double *w_norm, *r_norm;            // [gates * hidden]: |W_j|_2, |R_j|_2
  double* lost;                       // [batch]: not 0: errors are no longer small
  double* strain;                     // [batch, STRAINS]: of the step
  double *x_guaranteed, *x_probable;  // of the input's rows
  float* r_narrow;                    // R, [gates * hidden, hidden]
  float *r_abs, *h_abs;               // |R|, and the state's magnitudes
  float *w_abs, *x_abs;               // |W|, [gates * hidden, inputs], and |x|
  float* made_draws;
  float *x_size, *r_size;  // [rows or batch, gates * hidden]: |x||W|, |h||R|
  float *h_draws, *cell_draws, *work_draws, *gate_draws, *inner_draws;
} pass_t;

static double norm_of(const double* x, int64_t n, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i * step] * x[i * step];
  return sqrt(sum) * (1 + 0x1p-40);
}

// Magnitudes as floats.
static void narrow_abs(const double* x, int64_t n, int64_t step, float* out) {
  for (int64_t i = 0; i < n; i++) out[i] = (float)fabs(x[i * step]);
}

// ---- numbers with derivatives ------------------------------------------------------------------

// 64 random bits of a hidden unit at a step: 8 a rounding. Source: Vigna's splitmix64.
static uint64_t bits_of(const pass_t* p, int64_t s, int64_t b, int64_t j) {
  uint64_t z = ((uint64_t)s * (uint64_t)p->n->batch + (uint64_t)b) * (uint64_t)p->n->hidden;
  z = (2 * (z + (uint64_t)j) + (uint64_t)p->direction + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

// A rounding of standard deviation `sigma` more. Truncation has errors of one sign: half of the
// draws go with it.
static void add_noise(const pass_t* p, number_t* a, double sigma, uint64_t* bits) {
  const float s = (float)(sigma / p->steps.u);
  for (int k = 0; k < DRAWS; k++) {
    bool up = *bits >> k & 1;
    if (p->r->truncates && k % 2) up = a->x < 0;
    a->t[k] += up ? s : -s;
  }
  *bits >>= DRAWS;
}

static number_t times(const number_t* a, const number_t* b) {
  const double x = fabs(a->x), y = fabs(b->x);
  number_t out = {.x = a->x * b->x, .g = x * b->g + y * a->g + a->g * b->g};
  for (int k = 0; k < DRAWS; k++) out.t[k] = (float)a->x * b->t[k] + (float)b->x * a->t[k];
  return out;
}

static number_t plus(const number_t* a, const number_t* b) {
  number_t out = {.x = a->x + b->x, .g = a->g + b->g};
  for (int k = 0; k < DRAWS; k++) out.t[k] = a->t[k] + b->t[k];
  return out;
}

static number_t one_minus(const number_t* a) {
  number_t out = {.x = 1 - a->x, .g = a->g};
  for (int k = 0; k < DRAWS; k++) out.t[k] = -a->t[k];
  return out;
}

// A rounding of the result itself, and of `products` beside it (magnitudes that are rounded once).
static void add_rounding(const pass_t* p, number_t* a, double products, uint64_t* bits) {
  const double u = p->steps.u, size = fabs(a->x) + products;
  a->g += u * (size + 2 * a->g) * (1 + 4 * u) + 3 * p->steps.tiny;
  add_noise(p, a, u * size + p->steps.tiny, bits);
}

// Mean square of draws, in units of u.
static double mean_square(const float* t, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)t[i] * (double)t[i];
  return sum / (double)n;
}

// One batch element at one step.
typedef struct place {
  const pass_t* p;
  int64_t b;
  double x_guaranteed, x_probable, h_limit;  // norms of the limits of the input and of the state
  const float *x_size, *r_size;              // [gates * hidden]; r_size NULL: no state
} place_t;

// Which activation reads the cell, which no clip bounds (recurrent_run.c).
enum { CELL = 2 };

// The activation of a gate's sum or of a cell. sigma: of the argument's own rounding errors.
static number_t activate(const place_t* at, int which, number_t a, double sigma, uint64_t* bits) {
  const pass_t* p = at->p;
  const assay_recurrent_t* n = p->n;
  const assay_activation_t* f = &n->activations[3 * p->direction + which];
  const double u = p->steps.u;
  double x = a.x, here = 1;
  if (n->clips && which != CELL && fabs(x) > n->clip) {
    here = fabs(x) - a.g > n->clip ? 0 : 1;  // cut whatever the error
    x = copysign(n->clip, x);
  }
  const double y = f->function(x, f->alpha, f->beta);
  const double reach = a.g + 2 * u * fabs(x);
  const double maximum = here * f->slope(x, reach, f->alpha, f->beta);
  // Over six standard deviations, so that what bends counts, too.
  const double carried = u * sqrt(mean_square(a.t, DRAWS)), near = SIGMAS * (carried + sigma);
  const double slope = here * f->slope(x, fmin(reach, near), f->alpha, f->beta);
  // What it bends is no longer correlated with anything.
  const double straight = fmin(slope, here * f->slope(x, 0, f->alpha, f->beta));
  const double bends = carried * sqrt((slope - straight) * (slope + straight));
  if (f->range) {
    double* strain = p->strain + at->b * STRAINS;
    strain[SQUARES] += slope * near * slope * near;
    strain[COUNT] += 1;
  }
  const double local = (p->steps.function + 2 * u) * fabs(y) +
                       2 * p->steps.definition * fmax(1, f->has_alpha ? fabs(f->alpha) : 1) +
                       2 * p->steps.tiny;
  number_t out = {.x = y, .g = maximum * reach * (1 + 8 * u) + local};
  // What may overflow may be NaN after it, which has no range.
  if (!(a.g < (double)INFINITY)) {
    out.g = INFINITY;
  } else if (f->range) {
    // Neither truth nor an engine's value leaves the range, but for its own rounding.
    double low, high;
    f->range(f->alpha, &low, &high);
    out.g = fmin(out.g, fmax(high - y, y - low) + 2 * local);
  }
  for (int k = 0; k < DRAWS; k++) out.t[k] = (float)straight * a.t[k];
  // All local errors as one.
  const double in = slope * (sigma + 2 * u * fabs(x));
  add_noise(p, &out, sqrt(in * in + local * local + bends * bends), bits);
  return out;
}

// ---- sums of gates -----------------------------------------------------------------------------

static number_t stored(const double* x, const double* g, const float* t, int64_t b, int64_t j,
                       int64_t width) {
  number_t out = {.x = x[b * width + j], .g = g ? g[b * width + j] : 0};
  for (int k = 0; k < DRAWS; k++) out.t[k] = t[(b * DRAWS + k) * width + j];
  return out;
}

static void store(number_t a, double* x, double* g, float* t, int64_t b, int64_t j, int64_t width) {
  x[b * width + j] = a.x;
  g[b * width + j] = a.g;
  for (int k = 0; k < DRAWS; k++) t[(b * DRAWS + k) * width + j] = a.t[k];
}

static const double* bias_of(const pass_t* p, int64_t g, int64_t j) {
  const int64_t all = p->n->gates * p->n->hidden;
  return p->n->bias ? p->n->bias + 2 * all * p->direction + g * p->n->hidden + j : NULL;
}

// What adding up terms may do whose magnitudes are `size`, with limits `limit` on the magnitudes;
// in z's limit, and as a standard deviation.
static double round_sum(const pass_t* p, double size, double limit, number_t* z) {
  const double n = (double)p->n->inputs + (double)p->n->hidden + 4;
  const double tiny = (double)p->n->hidden * p->steps.tiny;
  const assay_factor_t widest = assay_bound_sum_of(p->r, n, size + limit, fabs(z->x) + limit);
  // Weights that are dequantized are rounded, but for the documented engine.
  const double weights = p->n->prepare && !p->r->documented ? 2 * p->steps.u : 0;
  // A sum that may pass the range on its way has no limit.
  const bool fits = (size + limit) * (1 + p->sum.guaranteed) <= p->range;
  z->g = fits ? z->g + widest.guaranteed + weights * (size + limit) + tiny : (double)INFINITY;
  return (assay_bound_sum_of(p->r, n, size, z->x).probable + weights * size + tiny) / SIGMAS;
}

// Sums in fp32 as they are at most.
static double raised(const float* sizes, int64_t k, int64_t terms) {
  return (double)sizes[k] * (1 + (double)(terms + 4) * 0x1p-23) + (double)terms * 0x1p-126;
}

// The sum of gate g for hidden unit j with its limit, and the standard deviation of its own
// rounding. other: what else is added, rounded alike.
static number_t gate_sum(const place_t* at, int64_t g, int64_t j, const number_t* other,
                         double* sigma) {
  const pass_t* p = at->p;
  const int64_t hidden = p->n->hidden, all = p->n->gates * hidden, k = g * hidden + j;
  number_t z = stored(p->gates, NULL, p->gate_draws, at->b, k, all);
  double size = raised(at->x_size, k, p->n->inputs);
  if (at->r_size) size += raised(at->r_size, k, hidden);
  const double* bias = bias_of(p, g, j);
  if (bias) {
    z.x += bias[0] + bias[all];
    size += fabs(bias[0]) + fabs(bias[all]);
  }
  double limit = p->w_norm[k] * at->x_guaranteed + (at->r_size ? p->r_norm[k] * at->h_limit : 0);
  z.g = limit;
  if (other) {
    z = plus(&z, other);
    size += fabs(other->x);
    limit += other->g;
  }
  const double own = round_sum(p, size, limit, &z), in = p->w_norm[k] * at->x_probable / SIGMAS;
  *sigma = sqrt(in * in + own * own);
  return z;
}

// A gate: the activation of its sum.
static number_t gate(const place_t* at, int which, int64_t g, int64_t j, const number_t* other,
                     uint64_t* bits) {
  double sigma;
  const number_t z = gate_sum(at, g, j, other, &sigma);
  return activate(at, which, z, sigma, bits);
}

// ---- cells -------------------------------------------------------------------------------------

static void rnn_row(const place_t* at, int64_t s) {
  const pass_t* p = at->p;
  for (int64_t j = 0; j < p->n->hidden; j++) {
    uint64_t bits = bits_of(p, s, at->b, j);
    store(gate(at, 0, 0, j, NULL, &bits), p->h, p->h_limit, p->h_draws, at->b, j, p->n->hidden);
  }
}

static number_t peep(const pass_t* p, int64_t which, int64_t j, const number_t* cell) {
  const double w = p->n->peepholes[(3 * p->direction + which) * p->n->hidden + j];
  const number_t weight = {.x = w};
  return times(&weight, cell);
}

static void lstm_row(const place_t* at, int64_t s) {
  const pass_t* p = at->p;
  const int64_t hidden = p->n->hidden;
  const bool peeps = p->n->peepholes != NULL;
  for (int64_t j = 0; j < hidden; j++) {
    uint64_t bits = bits_of(p, s, at->b, j);
    number_t c = stored(p->cells, p->cells_limit, p->cell_draws, at->b, j, hidden), other = {0};
    if (peeps) other = peep(p, 0, j, &c);
    const number_t i = gate(at, 0, 0, j, peeps ? &other : NULL, &bits);
    number_t f = one_minus(&i);
    if (p->n->couples_forget) {
      add_rounding(p, &f, 0, &bits);
    } else {
      if (peeps) other = peep(p, 2, j, &c);
      f = gate(at, 0, 2, j, peeps ? &other : NULL, &bits);
    }
    const number_t candidate = gate(at, 1, 3, j, NULL, &bits);
    const number_t kept = times(&f, &c), fresh = times(&i, &candidate);
    c = plus(&kept, &fresh);
    add_rounding(p, &c, fabs(kept.x) + fabs(fresh.x), &bits);
    if (peeps) other = peep(p, 1, j, &c);
    const number_t o = gate(at, 0, 1, j, peeps ? &other : NULL, &bits);
    uint64_t more = bits_of(p, ~s, at->b, j);
    const number_t y = activate(at, CELL, c, 0, &more);
    number_t h = times(&o, &y);
    add_rounding(p, &h, 0, &more);
    store(c, p->cells, p->cells_limit, p->cell_draws, at->b, j, hidden);
    store(h, p->h, p->h_limit, p->h_draws, at->b, j, hidden);
  }
}

// z and r into the gates' places; r * h into `work`, or r alone where R h comes first.
static void gru_gates(const place_t* at, int64_t s, number_t* z) {
  const pass_t* p = at->p;
  const int64_t hidden = p->n->hidden;
  for (int64_t j = 0; j < hidden; j++) {
    uint64_t bits = bits_of(p, s, at->b, j);
    z[j] = gate(at, 0, 0, j, NULL, &bits);
    number_t r = gate(at, 0, 1, j, NULL, &bits);
    if (!p->n->linear_before_reset) {
      const number_t h = stored(p->h, p->h_limit, p->h_draws, at->b, j, hidden);
      r = times(&r, &h);
      add_rounding(p, &r, 0, &bits);
    }
    store(r, p->work, p->work_limit, p->work_draws, at->b, j, hidden);
  }
}

// The hidden gate's sum where r multiplies R h + its bias: W x + r (R h + b_R) + b_W.
static number_t linear_hidden(const place_t* at, int64_t j, double* sigma, uint64_t* bits) {
  const pass_t* p = at->p;
  const int64_t hidden = p->n->hidden, k = 2 * hidden + j;
  const double* bias = bias_of(p, 2, j);
  const number_t r = stored(p->work, p->work_limit, p->work_draws, at->b, j, hidden);
  number_t inner = stored(p->inner, NULL, p->inner_draws, at->b, j, hidden);
  double size = raised(at->r_size, k, hidden);
  if (bias) inner.x += bias[3 * hidden], size += fabs(bias[3 * hidden]);
  inner.g = p->r_norm[k] * at->h_limit;
  const double own = round_sum(p, size, inner.g, &inner);
  add_noise(p, &inner, own, bits);
  number_t product = times(&r, &inner);
  add_rounding(p, &product, 0, bits);
  place_t input = *at;
  input.r_size = NULL;
  number_t z = gate_sum(&input, 2, j, &product, sigma);
  if (bias) z.x -= bias[3 * hidden];  // it is within R h already
  return z;
}

// (1 - z) y + z h with z from 0 to 1 lies between y and h, in truth and in any engine.
static double between_limit(const place_t* at, const number_t* out, const number_t* y,
                            const number_t* h) {
  const assay_activation_t* f = &at->p->n->activations[3 * at->p->direction];
  double low = 0, high = 0;
  if (!f->range) return INFINITY;
  f->range(f->alpha, &low, &high);
  if (low < 0 || high > 1) return INFINITY;
  const double top = fmax(y->x + y->g, h->x + h->g), bottom = fmin(y->x - y->g, h->x - h->g);
  return fmax(top - out->x, out->x - bottom);
}

static void gru_row(const place_t* at, int64_t s, const number_t* gates) {
  const pass_t* p = at->p;
  const int64_t hidden = p->n->hidden;
  for (int64_t j = 0; j < hidden; j++) {
    uint64_t bits = bits_of(p, ~s, at->b, j);
    double sigma;
    const number_t sum = p->n->linear_before_reset ? linear_hidden(at, j, &sigma, &bits)
                                                   : gate_sum(at, 2, j, NULL, &sigma);
    const number_t y = activate(at, 1, sum, sigma, &bits), z = gates[j];
    const number_t h = stored(p->h, p->h_limit, p->h_draws, at->b, j, hidden);
    // (1 - z) y + z h: an error of z counts times h - y.
    const number_t rest = one_minus(&z);
    number_t out = {.x = rest.x * y.x + z.x * h.x};
    out.g = (fabs(rest.x) + z.g) * y.g + (fabs(z.x) + z.g) * h.g + z.g * fabs(h.x - y.x);
    for (int k = 0; k < DRAWS; k++)
      out.t[k] = (float)rest.x * y.t[k] + (float)z.x * h.t[k] + (float)(h.x - y.x) * z.t[k];
    if (z.g < (double)INFINITY) out.g = fmin(out.g, between_limit(at, &out, &y, &h));
    add_rounding(p, &out, 2 * fabs(rest.x * y.x) + fabs(z.x * h.x) + fabs(y.x), &bits);
    store(out, p->h, p->h_limit, p->h_draws, at->b, j, hidden);
  }
}

// ---- one step of the batch ---------------------------------------------------------------------

// What is multiplied with R: numbers, their limits and their draws.
typedef struct operand {
  const double *x, *limit;
  const float* draws;
} operand_t;

// gates[first ..] += x R[first gate ..], of the numbers and of their draws.
static assay_status_t multiply(const pass_t* p, const operand_t* by, int64_t first, int64_t count,
                               double* gates, float* gate_draws, int64_t width, bool add) {
  const assay_recurrent_t* n = p->n;
  const assay_matrix_t a = {by->x, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, n->hidden, 1};
  assay_matrix_t b = p->recurrent;
  b.offset += first * n->hidden * b.col_stride;
  ASSAY_TRY(assay_gemm(p->c, n->batch, count * n->hidden, n->hidden, &a, &b, gates, width, add));
  narrow_abs(by->x, n->batch * n->hidden, 1, p->h_abs);
  const int64_t square = n->hidden * n->hidden;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n->batch, (int)(count * n->hidden),
              (int)n->hidden, 1.0F, p->h_abs, (int)n->hidden, p->r_abs + first * square,
              (int)n->hidden, 0.0F, p->r_size + first * n->hidden, (int)(n->gates * n->hidden));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)(n->batch * DRAWS),
              (int)(count * n->hidden), (int)n->hidden, 1.0F, by->draws, (int)n->hidden,
              p->r_narrow + first * n->hidden * n->hidden, (int)n->hidden, 0.0F, gate_draws,
              (int)width);
  return NULL;
}

// ---- quantized states -------------------------------------------------------------------------

// Derivatives of the scale: those of the largest number and of the smallest one, 0 among them.
static void scale_draws(const pass_t* p, const double* x, const float* draws, float* out) {
  const int64_t hidden = p->n->hidden, n = p->n->batch * hidden;
  int64_t largest = -1, smallest = -1;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] > (largest < 0 ? 0 : x[largest])) largest = i;
    if (x[i] < (smallest < 0 ? 0 : x[smallest])) smallest = i;
  }
  for (int k = 0; k < DRAWS; k++) {
    const float* t = draws + k * hidden;
    out[k] = 0;
    if (largest >= 0) out[k] += t[largest / hidden * DRAWS * hidden + largest % hidden] / 255;
    if (smallest >= 0) out[k] -= t[smallest / hidden * DRAWS * hidden + smallest % hidden] / 255;
  }
}

// The state as it is quantized. Where rounding errors do not reach the next step, they are gone,
// but for those of the scale; where they do, they come through, and the error of rounding to a
// step.
static void quantize_state(const pass_t* p, int64_t s) {
  const assay_recurrent_t* n = p->n;
  const int64_t hidden = n->hidden, size = n->batch * hidden;
  double low = 0, high = 0, *limit = p->made_probable;
  float scale[DRAWS];
  n->prepare(p->c, size, p->h, p->made);
  for (int64_t i = 0; i < size; i++) limit[i] = 2 * p->h_limit[i];
  assay_dynamic_quantize_bound(p->r, size, p->h, limit, p->made_limit);
  scale_draws(p, p->h, p->h_draws, scale);
  for (int64_t b = 0; b < n->batch; b++) {
    const float* t = p->h_draws + b * DRAWS * hidden;
    const double mean = mean_square(t, DRAWS * hidden);
    for (int64_t j = 0; j < hidden; j++) {
      const number_t h = stored(p->h, p->h_limit, p->h_draws, b, j, hidden);
      const double likely = SIGMAS * p->steps.u * sqrt(fmax(mean_square(h.t, DRAWS), mean));
      limit[b * hidden + j] = p->lost[b] != 0 ? h.g : fmin(likely, h.g);
      low = fmin(low, h.x), high = fmax(high, h.x);
    }
  }
  double* made_probable = limit + size;
  assay_dynamic_quantize_bound(p->r, size, p->h, limit, made_probable);
  const double step = (high - low) / 255;
  for (int64_t b = 0; b < n->batch; b++) {
    for (int64_t j = 0; j < hidden; j++) {
      uint64_t bits = bits_of(p, s + INT64_C(0x100000000), b, j);
      number_t a = stored(p->h, p->made_limit, p->h_draws, b, j, hidden);
      a.x = p->made[b * hidden + j];
      const bool stays = made_probable[b * hidden + j] < step / 2;
      const double steps = step > 0 ? a.x / step : 0;
      for (int k = 0; stays && k < DRAWS; k++) a.t[k] = (float)steps * scale[k];
      add_noise(p, &a, stays ? 4 * p->steps.u * fabs(a.x) : step / 2, &bits);
      store(a, p->made, p->made_limit, p->made_draws, b, j, hidden);
    }
  }
}

// A state as it is multiplied: rounded once more, where operands are. turn: of the products of a
// step.
static operand_t operand_of(const pass_t* p, int64_t s, int turn, const double* x,
                            const double* limit, const float* draws) {
  const int64_t hidden = p->n->hidden;
  const double u = assay_bound_operands(p->r);
  const double tiny = p->steps.tiny + assay_bound_operand_tiny(p->r);
  if (u == 0) return (operand_t){x, limit, draws};
  for (int64_t b = 0; b < p->n->batch; b++)
    for (int64_t j = 0; j < hidden; j++) {
      uint64_t bits = bits_of(p, s + (turn + 2) * INT64_C(0x100000000), b, j);
      number_t a = stored(x, limit, draws, b, j, hidden);
      a.g += u * (fabs(a.x) + a.g) + tiny;
      add_noise(p, &a, u * fabs(a.x) + tiny, &bits);
      store(a, p->made, p->made_limit, p->made_draws, b, j, hidden);
    }
  return (operand_t){p->made, p->made_limit, p->made_draws};
}

// The input as it is quantized.
static void quantize_input(const pass_t* p) {
  const assay_recurrent_t* n = p->n;
  const int64_t size = n->length * n->batch * n->inputs;
  n->prepare(p->c, size, n->x, p->made_x);
  assay_dynamic_quantize_bound(p->r, size, n->x, NULL, p->made_x_limit);
}

static place_t place_of(const pass_t* p, int64_t s, int64_t b, const double* limit) {
  const assay_recurrent_t* n = p->n;
  const int64_t row = assay_recurrent_x_row(n, assay_recurrent_time(n, p->direction, s, b), b);
  const int64_t all = n->gates * n->hidden;
  return (place_t){.p = p,
                   .b = b,
                   .x_guaranteed = p->x_guaranteed[row],
                   .x_probable = p->x_probable[row],
                   .h_limit = norm_of(limit + b * n->hidden, n->hidden, 1),
                   .x_size = p->x_size + row * all,
                   .r_size = p->r_size + b * all};
}

// Where six standard deviations change what the functions give by so much, what is linear in them
// says nothing any more, now and from then on: only guaranteed limits are left. A root of a mean
// square over the functions of a step that have a range.
static void note_lost(const pass_t* p, int64_t b) {
  const double LINEAR = 0.5;
  double* strain = p->strain + b * STRAINS;
  if (!(strain[SQUARES] <= LINEAR * LINEAR * strain[COUNT])) p->lost[b] = 1;
  strain[SQUARES] = strain[COUNT] = 0;
}

// Puts the limits of a row of numbers x that is row `at` of an output. Probable: the draws' mean
// square, or that of all units where it is larger (few draws may all be small). Where errors grow
// from step to step, those of float64 may, too: truth need not be x.
static void put(const pass_t* p, int64_t b, const double* x, const double* g, const float* t,
                const double* at) {
  const int64_t n = p->n->hidden;
  const assay_span_t to = assay_running_bound_of(p->c, at);
  const double *truth = assay_running_bound_truth(p->c, at), mean = mean_square(t, DRAWS * n);
  for (int64_t j = 0; j < n; j++) {
    double square = 0;
    for (int k = 0; k < DRAWS; k++) square += (double)t[k * n + j] * (double)t[k * n + j];
    const double probable = SIGMAS * p->steps.u * sqrt(fmax(square / DRAWS, mean));
    const double apart = truth && isfinite(truth[j]) ? fabs(truth[j] - x[j]) : 0;
    to.guaranteed[j] = g[j] + apart;
    to.probable[j] = (p->lost[b] != 0 || !(probable < g[j]) ? g[j] : probable) + apart;
  }
}

static assay_status_t run_step(const pass_t* p, int64_t s, number_t* z) {
  const assay_recurrent_t* n = p->n;
  const int64_t hidden = n->hidden, all = n->gates * hidden;
  for (int64_t b = 0; b < n->batch; b++) {
    double* to = p->gates + b * all;
    memset(to, 0, (size_t)all * sizeof *to);
    if (s >= assay_recurrent_length(n, b)) continue;
    const int64_t t = assay_recurrent_time(n, p->direction, s, b);
    memcpy(to, p->from_x + assay_recurrent_x_row(n, t, b) * all, (size_t)all * sizeof *to);
  }
  const bool gru = n->cell == ASSAY_CELL_GRU, quantized = n->prepare != NULL;
  if (quantized) quantize_state(p, s);
  operand_t by = quantized ? (operand_t){p->made, p->made_limit, p->made_draws}
                           : operand_of(p, s, 0, p->h, p->h_limit, p->h_draws);
  ASSAY_TRY(multiply(p, &by, 0, gru ? 2 : n->gates, p->gates, p->gate_draws, all, true));
  if (gru && n->linear_before_reset)
    ASSAY_TRY(multiply(p, &by, 2, 1, p->inner, p->inner_draws, hidden, false));
  for (int64_t b = 0; gru && b < n->batch; b++) {
    if (s >= assay_recurrent_length(n, b)) continue;
    const place_t at = place_of(p, s, b, by.limit);
    gru_gates(&at, s, z + b * hidden);
  }
  if (gru && !n->linear_before_reset) {
    by = operand_of(p, s, 1, p->work, p->work_limit, p->work_draws);
    ASSAY_TRY(multiply(p, &by, 2, 1, p->gates + 2 * hidden, p->gate_draws + 2 * hidden, all, true));
  } else if (gru) {
    for (int64_t i = 0; i < n->batch * DRAWS; i++)
      memset(p->gate_draws + i * all + 2 * hidden, 0, (size_t)hidden * sizeof *p->gate_draws);
  }
  for (int64_t b = 0; b < n->batch; b++) {
    if (s >= assay_recurrent_length(n, b)) continue;
    const place_t at = place_of(p, s, b, by.limit);
    if (n->cell == ASSAY_CELL_RNN) rnn_row(&at, s);
    if (n->cell == ASSAY_CELL_LSTM) lstm_row(&at, s);
    if (gru) gru_row(&at, s, z + b * hidden);
    note_lost(p, b);
    if (!n->y) continue;
    const int64_t t = assay_recurrent_time(n, p->direction, s, b);
    put(p, b, p->h + b * hidden, p->h_limit + b * hidden, p->h_draws + b * DRAWS * hidden,
        n->y + assay_recurrent_y_row(n, p->direction, t, b) * hidden);
  }
  return NULL;
}

// ---- one direction -----------------------------------------------------------------------------

// A state that the layer starts from, with the limits that it came with.
static void read_state(const pass_t* p, const double* from, double* x, double* limit,
                       float* draws) {
  const assay_recurrent_t* n = p->n;
  for (int64_t b = 0; from && b < n->batch; b++) {
    const double* row = from + assay_recurrent_state_row(n, p->direction, b) * n->hidden;
    const assay_span_t s = assay_running_bound_of(p->c, row);
    for (int64_t j = 0; j < n->hidden; j++) {
      number_t a = {.x = row[j], .g = s.guaranteed ? s.guaranteed[j] : 0};
      uint64_t bits = bits_of(p, INT64_MAX, b, j);
      if (s.probable) add_noise(p, &a, s.probable[j] / SIGMAS, &bits);
      store(a, x, limit, draws, b, j, n->hidden);
    }
  }
}

// |x||W| for every row of the input.
static void read_sizes(const pass_t* p, const double* w) {
  const assay_recurrent_t* n = p->n;
  const int64_t all = n->gates * n->hidden, rows = n->length * n->batch;
  if (n->inputs == 0 || rows == 0) return;
  for (int64_t j = 0; j < all; j++)
    narrow_abs(w + j * n->w.col_stride, n->inputs, n->w.row_stride, p->w_abs + j * n->inputs);
  narrow_abs(n->prepare ? p->made_x : n->x, rows * n->inputs, 1, p->x_abs);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)all, (int)n->inputs, 1.0F,
              p->x_abs, (int)n->inputs, p->w_abs, (int)n->inputs, 0.0F, p->x_size, (int)all);
}

static void read_norms(pass_t* p) {
  const assay_recurrent_t* n = p->n;
  const int64_t all = n->gates * n->hidden;
  const double* w = (const double*)n->w.data + p->direction * n->w_step;
  const double* r = (const double*)n->r.data + p->direction * n->r_step;
  for (int64_t j = 0; j < all; j++) {
    p->w_norm[j] = norm_of(w + j * n->w.col_stride, n->inputs, n->w.row_stride);
    p->r_norm[j] = norm_of(r + j * n->r.col_stride, n->hidden, n->r.row_stride);
    narrow_abs(r + j * n->r.col_stride, n->hidden, n->r.row_stride, p->r_abs + j * n->hidden);
    for (int64_t i = 0; i < n->hidden; i++)
      p->r_narrow[j * n->hidden + i] = (float)r[j * n->r.col_stride + i * n->r.row_stride];
  }
  read_sizes(p, w);
  for (int64_t i = 0; i < n->length * n->batch && n->inputs > 0; i++) {
    const double* x = n->x + i * n->inputs;
    const assay_span_t s = assay_running_bound_of(p->c, x);
    if (s.guaranteed) p->x_guaranteed[i] = norm_of(s.guaranteed, n->inputs, 1);
    if (s.probable) p->x_probable[i] = norm_of(s.probable, n->inputs, 1);
    if (n->prepare)
      p->x_guaranteed[i] = p->x_probable[i] =
          norm_of(p->made_x_limit + i * n->inputs, n->inputs, 1);
  }
}

static void put_states(const pass_t* p, const double* state, const double* x, const double* limit,
                       const float* draws) {
  const assay_recurrent_t* n = p->n;
  for (int64_t b = 0; state && b < n->batch; b++) {
    const int64_t row = assay_recurrent_state_row(n, p->direction, b);
    put(p, b, x + b * n->hidden, limit + b * n->hidden, draws + b * DRAWS * n->hidden,
        state + row * n->hidden);
  }
}

static assay_status_t run_direction(pass_t* p, number_t* z) {
  const assay_recurrent_t* n = p->n;
  const int64_t all = n->gates * n->hidden;
  if (n->prepare) quantize_input(p);
  read_norms(p);
  read_state(p, n->initial_h, p->h, p->h_limit, p->h_draws);
  read_state(p, n->initial_c, p->cells, p->cells_limit, p->cell_draws);
  const double* x = n->prepare ? p->made_x : n->x;
  const assay_matrix_t a = {x, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, n->inputs, 1};
  assay_matrix_t b = n->w;
  b.offset += p->direction * n->w_step;
  ASSAY_TRY(assay_gemm(p->c, n->length * n->batch, all, n->inputs, &a, &b, p->from_x, all, false));
  const int64_t steps = assay_recurrent_steps(n);
  for (int64_t s = 0; s < steps; s++) ASSAY_TRY(run_step(p, s, z));
  put_states(p, n->y_h, p->h, p->h_limit, p->h_draws);
  put_states(p, n->y_c, p->cells, p->cells_limit, p->cell_draws);
  return NULL;
}

// Room for a direction, zeroed; what is not used has none of it.
static assay_status_t reserve(pass_t* p, double** out_doubles, float** out_floats,
                              number_t** out_z) {
  const assay_recurrent_t* n = p->n;
  const int64_t all = n->gates * n->hidden, state = n->batch * n->hidden;
  const int64_t rows = n->length * n->batch;
  const int64_t made = n->prepare || assay_bound_operands(p->r) > 0 ? state : 0;
  const int64_t made_x = n->prepare ? rows * n->inputs : 0;
  struct part {
    double** to;
    int64_t n;
  } parts[] = {
      {&p->from_x, rows * all}, {&p->gates, n->batch * all},  {&p->h, state},
      {&p->h_limit, state},     {&p->cells, state},           {&p->cells_limit, state},
      {&p->work, state},        {&p->work_limit, state},      {&p->inner, state},
      {&p->w_norm, all},        {&p->lost, n->batch},         {&p->strain, n->batch * STRAINS},
      {&p->r_norm, all},        {&p->x_guaranteed, rows},     {&p->x_probable, rows},
      {&p->made_x, made_x},     {&p->made_x_limit, made_x},   {&p->made, made},
      {&p->made_limit, made},   {&p->made_probable, 2 * made}};
  struct narrow {
    float** to;
    int64_t n;
  } narrow[] = {{&p->r_narrow, all * n->hidden},
                {&p->r_abs, all * n->hidden},
                {&p->h_abs, state},
                {&p->made_draws, made * DRAWS},
                {&p->w_abs, all * n->inputs},
                {&p->x_abs, rows * n->inputs},
                {&p->x_size, rows * all},
                {&p->r_size, n->batch * all},
                {&p->h_draws, state * DRAWS},
                {&p->cell_draws, state * DRAWS},
                {&p->work_draws, state * DRAWS},
                {&p->inner_draws, state * DRAWS},
                {&p->gate_draws, n->batch * all * DRAWS}};
  int64_t doubles = 0, floats = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) doubles += parts[i].n;
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) floats += narrow[i].n;
  ASSAY_TRY(assay_new_array((size_t)doubles, sizeof **out_doubles, out_doubles));
  ASSAY_TRY(assay_new_array((size_t)floats, sizeof **out_floats, out_floats));
  ASSAY_TRY(assay_new_array((size_t)state, sizeof **out_z, out_z));
  double* d = *out_doubles;
  float* f = *out_floats;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; d += parts[i++].n) *parts[i].to = d;
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; f += narrow[i++].n) *narrow[i].to = f;
  return NULL;
}

assay_status_t assay_recurrent_limits(const assay_eval_t* c, const assay_recurrent_t* n) {
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  assay_gemm_prepare();
  for (int d = 0; d < n->directions; d++) {
    pass_t p = {.c = c,
                .n = n,
                .direction = d,
                .r = r,
                .steps = assay_rounding_steps(r),
                .sum = assay_bound_sum(r, (double)n->inputs + (double)n->hidden + 4),
                .range = assay_format_info(r->accumulator)->max,
                .recurrent = n->r};
    p.recurrent.offset += d * n->r_step;
    double* doubles = NULL;
    float* floats = NULL;
    number_t* z = NULL;
    assay_status_t st = reserve(&p, &doubles, &floats, &z);
    if (!st) st = run_direction(&p, z);
    assay_free(doubles);
    assay_free(floats);
    assay_free(z);
    if (st) return st;
  }
  return NULL;
}
