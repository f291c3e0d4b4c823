// Rounding bounds of LinearAttention, run token by token: a running error through the state, as
// recurrent_bound.c has it. Guaranteed: limits of absolute values; probable: the derivative for a
// few draws of the roundings' signs, whose mean square estimates the variance. (Under the delta
// rule the state is multiplied by 1 - beta k k^T, whose absolute values grow where it does not.)
// Sources: ONNX LinearAttention 27; as in recurrent_bound.c.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/attention/linear_attention.h"
#include "ops/running_bound.h"

// A third more than 6 standard deviations: heads share the error of a decay, and the mean square of
// few draws of it may be low everywhere.
enum { DRAWS = 16, SIGMAS = 8 };

// Draws in units of u.
typedef struct draws {
  double t[DRAWS];
} draws_t;

// One head's work. State: [d_k, d_v].
typedef struct head {
  const assay_linear_attention_t* l;
  assay_steps_t steps;
  assay_factor_t sum;  // of d_k terms
  double range;
  double *s, *g;   // the state and its guaranteed limits
  draws_t* t;      // and its draws
  double *w, *wg;  // [d_v]: what is written, limits
  draws_t* wt;
  uint64_t bits;  // of the generator
} head_t;

// Source: Vigna's splitmix64.
static uint64_t next_bits(head_t* x) {
  uint64_t z = x->bits += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static void add_noise(uint64_t bits, double sigma, draws_t* a) {
  for (int k = 0; k < DRAWS; k++) a->t[k] += bits >> k & 1 ? sigma : -sigma;
}

// Roundings of `size` in all: to the guaranteed limit, and to the draws one standard deviation.
static void add_rounding(head_t* x, double size, double* g, draws_t* t) {
  // A number that may pass the range on its way has no limit.
  const bool fits = (size + *g) * (1 + x->steps.u) <= x->range;
  *g = fits ? *g + x->steps.u * (size + *g) + x->steps.tiny : (double)INFINITY;
  add_noise(next_bits(x), size + x->steps.tiny / x->steps.u, t);
}

// The state's decay, exp(gate), is one number for a key channel, or for all of them: then its error
// is, too.
static void decay(head_t* x, const double* gate) {
  const assay_linear_attention_t* l = x->l;
  const double e = x->steps.function;
  uint64_t bits = next_bits(x);
  for (int64_t i = 0; i < l->d_k; i++) {
    const double keep = assay_exp(gate[l->decay_width == 1 ? 0 : i]);
    if (l->decay_width != 1) bits = next_bits(x);
    for (int64_t j = 0; j < l->d_v; j++) {
      const int64_t at = i * l->d_v + j;
      const double was = fabs(x->s[at]);
      x->s[at] *= keep;
      x->g[at] = (keep * (1 + e) + x->steps.tiny) * x->g[at] + (keep * e + x->steps.tiny) * was;
      for (int k = 0; k < DRAWS; k++) x->t[at].t[k] *= keep;
      add_noise(bits, keep * was * e / x->steps.u, &x->t[at]);
      add_rounding(x, fabs(x->s[at]), &x->g[at], &x->t[at]);
      if (!(keep * (1 + e) <= x->range)) x->g[at] = INFINITY;
    }
  }
}

// A sum of a[i] * state[i, j] with its limit and draws.
static double read_state(head_t* x, const double* a, int64_t j, double* g, draws_t* t) {
  const assay_linear_attention_t* l = x->l;
  double sum = 0, size = 0;
  *g = 0;
  *t = (draws_t){{0}};
  for (int64_t i = 0; i < l->d_k; i++) {
    const int64_t at = i * l->d_v + j;
    sum += a[i] * x->s[at];
    size += fabs(a[i] * x->s[at]);
    *g += fabs(a[i]) * x->g[at];
    for (int k = 0; k < DRAWS; k++) t->t[k] += a[i] * x->t[at].t[k];
  }
  *g += x->sum.guaranteed * (size + *g) + (double)l->d_k * x->steps.tiny;
  if (!(size * (1 + x->sum.guaranteed) <= x->range)) *g = INFINITY;
  add_noise(next_bits(x), x->sum.probable * size / (SIGMAS * x->steps.u), t);
  return sum;
}

// What is written at a key: v, or beta times what v is more than what is stored there.
static void make_write(head_t* x, const double* key, const double* v, const double* beta) {
  const assay_linear_attention_t* l = x->l;
  for (int64_t j = 0; j < l->d_v; j++) {
    x->w[j] = v[j];
    x->wg[j] = 0;
    x->wt[j] = (draws_t){{0}};
    if (!beta) continue;
    x->w[j] = v[j] - read_state(x, key, j, &x->wg[j], &x->wt[j]);
    for (int k = 0; k < DRAWS; k++) x->wt[j].t[k] *= -1;
    add_rounding(x, fabs(x->w[j]), &x->wg[j], &x->wt[j]);
    x->w[j] *= *beta;
    x->wg[j] *= fabs(*beta);
    for (int k = 0; k < DRAWS; k++) x->wt[j].t[k] *= *beta;
    add_rounding(x, fabs(x->w[j]), &x->wg[j], &x->wt[j]);
  }
}

static void write_state(head_t* x, const double* key) {
  const assay_linear_attention_t* l = x->l;
  for (int64_t i = 0; i < l->d_k; i++) {
    for (int64_t j = 0; j < l->d_v; j++) {
      const int64_t at = i * l->d_v + j;
      const double more = key[i] * x->w[j];
      x->s[at] += more;
      x->g[at] += fabs(key[i]) * x->wg[j];
      for (int k = 0; k < DRAWS; k++) x->t[at].t[k] += key[i] * x->wt[j].t[k];
      add_rounding(x, fabs(more) + fabs(x->s[at]), &x->g[at], &x->t[at]);
    }
  }
}

static double mean_square(const draws_t* t) {
  double sum = 0;
  for (int k = 0; k < DRAWS; k++) sum += t->t[k] * t->t[k];
  return sum / DRAWS;
}

// Probable limits of n numbers: of their own draws or of all, where that is larger.
static void put(const head_t* x, int64_t n, const double* g, const draws_t* t, assay_span_t to) {
  double mean = 0;
  for (int64_t j = 0; j < n; j++) mean += mean_square(&t[j]) / (double)n;
  for (int64_t j = 0; j < n; j++) {
    const double p = SIGMAS * x->steps.u * sqrt(fmax(mean_square(&t[j]), mean)) + x->steps.tiny;
    to.guaranteed[j] = g[j];
    to.probable[j] = p < g[j] ? p : g[j];
  }
}

static void read_queries(const assay_eval_t* c, head_t* x, const double* q, double* y) {
  const assay_linear_attention_t* l = x->l;
  const double scale = fabs(l->scale);
  for (int64_t j = 0; j < l->d_v; j++) {
    const double sum = scale * fabs(read_state(x, q, j, &x->wg[j], &x->wt[j]));
    x->wg[j] *= scale;
    for (int k = 0; k < DRAWS; k++) x->wt[j].t[k] *= scale;
    add_rounding(x, sum, &x->wg[j], &x->wt[j]);
  }
  put(x, l->d_v, x->wg, x->wt, assay_running_bound_of(c, y));
}

static void run_head(const assay_eval_t* c, head_t* x, int64_t b, int64_t h) {
  const assay_linear_attention_t* l = x->l;
  const int64_t group = l->q_heads / l->kv_heads;
  for (int64_t t = 0; t < l->length; t++) {
    const int64_t at = b * l->length + t, row = at * l->kv_heads + h;
    const double* key = l->k + row * l->d_k;
    const double* beta =
        l->delta ? l->beta + at * l->beta_width + (l->beta_width == 1 ? 0 : h) : NULL;
    if (l->gated) decay(x, l->decay + row * l->decay_width);
    make_write(x, key, l->v + row * l->d_v, beta);
    write_state(x, key);
    for (int64_t q = h * group; q < (h + 1) * group; q++)
      read_queries(c, x, l->q + (at * l->q_heads + q) * l->d_k,
                   l->y + (at * l->q_heads + q) * l->d_v);
  }
}

static assay_status_t limit_head(const assay_eval_t* c, const assay_linear_attention_t* l,
                                 int64_t i) {
  const int64_t size = l->d_k * l->d_v;
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  head_t x = {.l = l,
              .steps = assay_rounding_steps(r),
              .sum = assay_bound_sum(r, (double)l->d_k),
              .range = assay_format_info(r->accumulator)->max,
              .s = l->state + i * size,
              .bits = (uint64_t)i << 40};
  double* scratch = NULL;
  draws_t* draws = NULL;
  assay_status_t st = assay_new_array((size_t)(size + 2 * l->d_v), sizeof *scratch, &scratch);
  if (!st) st = assay_new_array((size_t)(size + l->d_v), sizeof *draws, &draws);
  if (!st) {
    x.g = scratch, x.w = scratch + size, x.wg = x.w + l->d_v;
    x.t = draws, x.wt = draws + size;
    run_head(c, &x, i / l->kv_heads, i % l->kv_heads);
    const assay_span_t to = assay_running_bound_of(c, x.s);
    if (to.guaranteed) put(&x, size, x.g, x.t, to);
  }
  assay_free(scratch);
  assay_free(draws);
  return st;
}

assay_status_t assay_linear_attention_limits(const assay_eval_t* c,
                                             const assay_linear_attention_t* l) {
  const int64_t heads = l->batch * l->kv_heads;
  assay_status_t st = NULL;
#pragma omp parallel for schedule(static) if (heads > 1)
  for (int64_t i = 0; i < heads; i++) {
    assay_status_t mine = l->d_k * l->d_v > 0 ? limit_head(c, l, i) : NULL;
    if (mine) {
#pragma omp critical(assay_linear_attention_limits)
      st = assay_status_join(st, mine);
    }
  }
  return st;
}
