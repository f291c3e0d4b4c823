// Limits of linear models and support vector machines: the same formulas in numbers that know them.
#include "base/alloc.h"
#include "base/functions.h"
#include "ops/ml/ml_bound.h"
#include "ops/ml/ml_linear.h"

typedef assay_number_t num_t;

static num_t dot(const assay_bound_t* c, const assay_arithmetic_t* a, int64_t at, const float* w,
                 int64_t n, const float* added) {
  assay_number_sum_t s = {0};
  for (int64_t i = 0; i < n; i++)
    assay_number_sum_add_product(&s, assay_number_input(c, 0, at + i),
                                 assay_number_exact((double)w[i]));
  if (added) assay_number_sum_add(&s, assay_number_exact((double)*added));
  return assay_number_sum_end(a, &s);
}

static void scores_of(const assay_bound_t* c, const assay_arithmetic_t* a, const assay_linear_t* l,
                      int64_t row, num_t* out) {
  for (int64_t k = 0; k < l->outputs; k++)
    out[k] = dot(c, a, row * l->features, l->weights + k * l->features, l->features,
                 l->intercepts ? l->intercepts + k : NULL);
}

// One score for two labels counts for the second, its negative for the first.
static void pair_up(int64_t n_scores, int64_t n_labels, num_t* x) {
  if (n_scores != 1 || n_labels != 2) return;
  x[1] = x[0];
  x[0] = assay_number_neg(x[1]);
}

assay_status_t assay_ml_regressor_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  assay_linear_t l = {0};
  assay_ml_limits_t limits;
  int64_t rows = 0, features = 0;
  num_t* x = NULL;
  ASSAY_TRY(assay_ml_targets_of(c->node, &l.outputs));
  ASSAY_TRY(assay_ml_rows(&e, c->in[0], &rows, &features));
  ASSAY_TRY(assay_ml_linear_check(c->node, &l, features));
  ASSAY_TRY(assay_ml_limits_begin(c, 0, &limits));
  ASSAY_TRY(assay_new_array((size_t)l.outputs, sizeof *x, &x));
  for (int64_t r = 0; r < rows; r++) {
    scores_of(c, &a, &l, r, x);
    assay_ml_post_numbers(&a, l.post, x, l.outputs);
    assay_ml_limits_row(&a, &limits, r, x, true);
  }
  assay_free(x);
  return NULL;
}

assay_status_t assay_ml_classifier_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  assay_linear_t l = {0};
  assay_ml_labels_t labels;
  assay_ml_limits_t limits;
  int64_t rows = 0, features = 0;
  num_t* x = NULL;
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_ints", "classlabels_strings", &labels));
  ASSAY_TRY(assay_ml_rows(&e, c->in[0], &rows, &features));
  ASSAY_TRY(assay_ml_classifier_outputs(c->node, features, labels.n, &l.outputs));
  ASSAY_TRY(assay_ml_linear_check(c->node, &l, features));
  ASSAY_TRY(assay_ml_limits_begin(c, 1, &limits));
  const int64_t columns = assay_ml_paired(l.outputs, labels.n);
  ASSAY_TRY(assay_new_array((size_t)columns, sizeof *x, &x));
  for (int64_t r = 0; r < rows; r++) {
    scores_of(c, &a, &l, r, x);
    pair_up(l.outputs, labels.n, x);
    const bool certain = assay_ml_top_is_certain(x, columns, true);
    assay_ml_post_numbers(&a, l.post, x, columns);
    assay_ml_limits_row(&a, &limits, r, x, certain);
  }
  assay_free(x);
  return NULL;
}

// ---- kernels ------------------------------------------------------------------------------------

// x^d, d a whole number or not: turns at 0 at most.
static num_t power(const assay_arithmetic_t* a, num_t x, double d) {
  const double v = assay_pow(x.v, d), p = assay_number_probable(x);
  double far[2] = {0};
  for (int k = 0; k < 2; k++) {
    const double e = k ? p : x.g;
    const double up = fabs(assay_pow(x.v + e, d) - v), down = fabs(assay_pow(x.v - e, d) - v);
    const double at_0 = fabs(x.v) < e ? fabs(assay_pow(0, d) - v) : 0;
    far[k] = up == up && down == down ? fmax(fmax(up, down), at_0) : (double)INFINITY;
  }
  num_t y = {v, far[0], far[1] * far[1] / 36};
  // An engine that multiplies rounds as often as the exponent says.
  return assay_number_round(a, a->inner.function + fabs(d) * a->inner.u, y);
}

static num_t kernel_value(const assay_bound_t* c, const assay_arithmetic_t* a, const assay_svm_t* s,
                          int64_t at, const float* v, int64_t n) {
  const num_t gamma = assay_number_exact(s->gamma), coef0 = assay_number_exact(s->coef0);
  if (s->kernel == ASSAY_KERNEL_RBF) {
    assay_number_sum_t sum = {0};
    for (int64_t i = 0; i < n; i++) {
      const num_t d =
          assay_number_sub(a, assay_number_input(c, 0, at + i), assay_number_exact((double)v[i]));
      assay_number_sum_add(&sum, assay_number_square(a, d));
    }
    const num_t x = assay_number_mul(a, gamma, assay_number_sum_end(a, &sum));
    return assay_number_function(a, assay_exp, (double)INFINITY, assay_number_neg(x));
  }
  const num_t d = dot(c, a, at, v, n, NULL);
  if (s->kernel == ASSAY_KERNEL_LINEAR) return d;
  const num_t x = assay_number_add(a, assay_number_mul(a, gamma, d), coef0);
  if (s->kernel == ASSAY_KERNEL_POLY) return power(a, x, s->degree);
  return assay_number_function(a, assay_tanh, (double)INFINITY, x);
}

assay_status_t assay_ml_svr_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  const int64_t n = assay_attr_i64(c->node, "n_supports", 0);
  const bool one_class = assay_attr_i64(c->node, "one_class", 0) != 0;
  assay_svm_t s;
  assay_ml_limits_t limits;
  int64_t rows = 0, features = 0;
  ASSAY_TRY(assay_ml_svm_read(c->node, &s));
  ASSAY_TRY(assay_ml_rows(&e, c->in[0], &rows, &features));
  ASSAY_TRY(assay_ml_limits_begin(c, 0, &limits));
  for (int64_t r = 0; r < rows; r++) {
    assay_number_sum_t sum = {0};
    for (int64_t k = 0; k < n; k++)
      assay_number_sum_add_product(
          &sum, assay_number_exact((double)s.coefficients[k]),
          kernel_value(c, &a, &s, r * features, s.vectors + k * features, features));
    for (int64_t k = 0; !n && k < features; k++)
      assay_number_sum_add_product(&sum, assay_number_input(c, 0, r * features + k),
                                   assay_number_exact((double)s.coefficients[k]));
    assay_number_sum_add(&sum, assay_number_exact((double)s.rho[0]));
    num_t y = assay_number_sum_end(&a, &sum);
    if (one_class)  // 1 or -1
      y.g = fabs(y.v) > y.g ? 0 : (double)INFINITY;
    else
      assay_ml_post_numbers(&a, s.post, &y, 1);
    assay_ml_limits_row(&a, &limits, r, &y, true);
  }
  return NULL;
}

// ---- SVMClassifier ------------------------------------------------------------------------------

// Room for one row.
typedef struct scratch {
  num_t *kernels, *pairs, *out;
  int64_t* votes;
  double *r, *q, *qp, *p, *moved;
} scratch_t;

static assay_status_t scratch_init(const assay_svc_t* v, scratch_t* m) {
  const size_t k = (size_t)v->classes, square = v->proba ? k * k : 1;
  *m = (scratch_t){0};
  ASSAY_TRY(assay_new_array((size_t)v->vectors, sizeof(num_t), &m->kernels));
  ASSAY_TRY(assay_new_array((size_t)v->pairs + 2, sizeof(num_t), &m->pairs));
  ASSAY_TRY(assay_new_array((size_t)v->columns + 2, sizeof(num_t), &m->out));
  ASSAY_TRY(assay_new_array(k, sizeof(int64_t), &m->votes));
  ASSAY_TRY(assay_new_array(square, sizeof(double), &m->r));
  ASSAY_TRY(assay_new_array(square, sizeof(double), &m->q));
  ASSAY_TRY(assay_new_array(k, sizeof(double), &m->qp));
  ASSAY_TRY(assay_new_array(k, sizeof(double), &m->p));
  return assay_new_array(k, sizeof(double), &m->moved);
}

static void scratch_deinit(scratch_t* m) {
  void* all[] = {m->kernels, m->pairs, m->out, m->votes, m->r, m->q, m->qp, m->p, m->moved};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) assay_free(all[i]);
}

// The pairs' sums; false if a vote is not certain.
static bool vote(const assay_bound_t* c, const assay_arithmetic_t* a, const assay_svc_t* v,
                 scratch_t* m, int64_t row) {
  const int64_t f = v->features, n = v->vectors;
  int64_t pair = 0, start_i = 0;
  bool certain = true;
  for (int64_t k = 0; k < n; k++)
    m->kernels[k] = kernel_value(c, a, &v->s, row * f, v->s.vectors + k * f, f);
  for (int64_t i = 0; i < v->classes; i++) {
    int64_t start_j = start_i + v->per_class[i];
    for (int64_t j = i + 1; j < v->classes; j++) {
      const float *w = v->s.coefficients + (j - 1) * n, *z = v->s.coefficients + i * n;
      assay_number_sum_t sum = {0};
      for (int64_t k = start_i; k < start_i + v->per_class[i]; k++)
        assay_number_sum_add_product(&sum, assay_number_exact((double)w[k]), m->kernels[k]);
      for (int64_t k = start_j; k < start_j + v->per_class[j]; k++)
        assay_number_sum_add_product(&sum, assay_number_exact((double)z[k]), m->kernels[k]);
      assay_number_sum_add(&sum, assay_number_exact((double)v->s.rho[pair]));
      m->pairs[pair] = assay_number_sum_end(a, &sum);
      certain = certain && fabs(m->pairs[pair].v) > m->pairs[pair].g;
      pair++;
      start_j += v->per_class[j];
    }
    start_i += v->per_class[i];
  }
  return certain;
}

static double clamp(double p) { return p < 1e-7 ? 1e-7 : p > 1 - 1e-7 ? 1 - 1e-7 : p; }

// The coupled probabilities are where an iteration stops. What each pair's error does to them is
// seen by moving it; the iteration itself ends within its tolerance, wherever rounding makes it
// stop.
static void probabilities(const assay_arithmetic_t* a, const assay_svc_t* v, scratch_t* m) {
  const int64_t k = v->classes;
  int64_t pair = 0;
  for (int64_t i = 0; i < k; i++) {
    for (int64_t j = i + 1; j < k; j++, pair++) {
      num_t z = assay_number_mul(a, m->pairs[pair], assay_number_exact((double)v->s.prob_a[pair]));
      z = assay_number_add(a, z, assay_number_exact((double)v->s.prob_b[pair]));
      m->pairs[pair] =
          assay_number_function(a, assay_ml_logistic, (double)INFINITY, assay_number_neg(z));
      m->pairs[pair] = assay_number_round(a, 2 * a->inner.u, m->pairs[pair]);
      m->r[i * k + j] = clamp(m->pairs[pair].v);
      m->r[j * k + i] = 1 - m->r[i * k + j];
    }
  }
  assay_ml_couple(m->r, k, m->q, m->qp, m->p);
  // Two classes: the iteration is exact. More: it may stop a round earlier or later.
  const double stop = k > 2 ? 0.005 / (double)k : 0;
  for (int64_t i = 0; i < k; i++)
    m->out[i] = (num_t){m->p[i], stop + 64 * (double)k * a->inner.u, stop * stop / 36};
  pair = 0;
  for (int64_t i = 0; i < k; i++) {
    for (int64_t j = i + 1; j < k; j++, pair++) {
      const double e = m->pairs[pair].g, was = m->r[i * k + j];
      for (int side = -1; side <= 1; side += 2) {
        m->r[i * k + j] = clamp(was + side * e);
        m->r[j * k + i] = 1 - m->r[i * k + j];
        assay_ml_couple(m->r, k, m->q, m->qp, m->moved);
        for (int64_t t = 0; t < k; t++) m->out[t].g += fabs(m->moved[t] - m->p[t]);
      }
      m->r[i * k + j] = was;
      m->r[j * k + i] = 1 - was;
    }
  }
  for (int64_t i = 0; i < k; i++) m->out[i].s2 = m->out[i].g * m->out[i].g / 36;
}

static bool svc_row(const assay_bound_t* c, const assay_arithmetic_t* a, const assay_svc_t* v,
                    scratch_t* m, int64_t row) {
  bool certain = true;
  if (!v->per_class) {
    for (int64_t k = 0; k < v->classes; k++)
      m->out[k] =
          dot(c, a, row * v->features, v->s.coefficients + k * v->features, v->features, v->s.rho);
    certain = assay_ml_top_is_certain(m->out, v->classes, true);
  } else {
    certain = vote(c, a, v, m, row);
    if (v->proba) {
      probabilities(a, v, m);
    } else {
      for (int64_t k = 0; k < v->pairs; k++) m->out[k] = m->pairs[k];
      pair_up(v->pairs, v->classes, m->out);
    }
  }
  assay_ml_post_numbers(a, v->s.post, m->out, v->columns);
  return certain;
}

assay_status_t assay_ml_svc_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  assay_svc_t v;
  assay_ml_limits_t limits;
  scratch_t m = {0};
  int64_t rows = 0;
  ASSAY_TRY(assay_ml_svc_read(c->node, &v));
  ASSAY_TRY(assay_ml_rows(&e, c->in[0], &rows, &v.features));
  ASSAY_TRY(assay_ml_limits_begin(c, 1, &limits));
  assay_status_t st = scratch_init(&v, &m);
  for (int64_t r = 0; !st && r < rows; r++) {
    const bool certain = svc_row(c, &a, &v, &m, r);
    assay_ml_limits_row(&a, &limits, r, m.out, certain);
  }
  scratch_deinit(&m);
  return st;
}
