// ai.onnx.ml's linear models and support vector machines.
//
// Where the operator texts leave the two-class case open, this is what onnx.reference does: one
// score s for two labels becomes the pair (-s, s) before the transform. Sums run over features
// (then over support vectors) in order.
#include "ops/ml/ml_linear.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/families.h"
#include "ops/ml/ml_common.h"

static double dot(const assay_eval_t* c, const assay_tensor_t* x, int64_t at, const float* w,
                  int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; i++)
    s = assay_acc(c, s + assay_acc(c, assay_ml_number(x, at + i) * (double)w[i]));
  return s;
}

static assay_status_t set_matrix(assay_infer_t* c, size_t output, assay_type_t type,
                                 int64_t columns) {
  assay_shape_t y;
  ASSAY_TRY(assay_ml_infer_rows(c, &y));
  y.dims[y.rank++] = assay_dim_const(c->dims, columns);
  return assay_infer_set(c, output, type, &y);
}

// ---- LinearRegressor ---------------------------------------------------------------------------

// outputs: how many scores a row has; features: -1 if not known yet.
assay_status_t assay_ml_linear_check(const assay_node_t* n, assay_linear_t* l, int64_t features) {
  size_t n_weights = 0, n_intercepts = 0;
  l->weights = assay_attr_floats(n, "coefficients", &n_weights);
  l->intercepts = assay_attr_floats(n, "intercepts", &n_intercepts);
  l->n_weights = (int64_t)n_weights;
  l->features = features;
  ASSAY_TRY(assay_ml_post_read(n, &l->post));
  if (features >= 0 &&
      (l->outputs < 1 || l->n_weights % l->outputs || l->n_weights / l->outputs != features))
    return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                            "coefficients has %zu entries; %lld outputs of %lld features need %s",
                            n_weights, (long long)l->outputs, (long long)features,
                            "as many as their product");
  if (n_intercepts && (int64_t)n_intercepts != l->outputs)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "intercepts has %zu entries; %lld are expected",
                            n_intercepts, (long long)l->outputs);
  if (!n_intercepts) l->intercepts = NULL;
  return NULL;
}

static void linear_scores(const assay_eval_t* c, const assay_linear_t* l, int64_t row,
                          double* scores) {
  for (int64_t k = 0; k < l->outputs; k++) {
    double s = dot(c, c->in[0], row * l->features, l->weights + k * l->features, l->features);
    scores[k] = l->intercepts ? assay_acc(c, s + (double)l->intercepts[k]) : s;
  }
}

assay_status_t assay_ml_targets_of(const assay_node_t* n, int64_t* out) {
  *out = assay_attr_i64(n, "targets", 1);
  if (*out >= 1) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "targets is %lld", (long long)*out);
}

static assay_status_t regressor_infer(assay_infer_t* c) {
  assay_linear_t l = {0};
  ASSAY_TRY(assay_ml_targets_of(c->node, &l.outputs));
  ASSAY_TRY(assay_ml_linear_check(c->node, &l, -1));
  return set_matrix(c, 0, ASSAY_TYPE_FLOAT, l.outputs);
}

// ai.onnx.ml LinearRegressor-1.
static assay_status_t regressor_eval(assay_eval_t* c) {
  assay_linear_t l = {0};
  int64_t rows = 0, features = 0;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_ml_targets_of(c->node, &l.outputs));
  ASSAY_TRY(assay_ml_rows(c, c->in[0], &rows, &features));
  ASSAY_TRY(assay_ml_linear_check(c->node, &l, features));
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, 2, (int64_t[]){rows, l.outputs}, &y));
#pragma omp parallel for schedule(static) if (rows * l.n_weights > 100000)
  for (int64_t r = 0; r < rows; r++) {
    linear_scores(c, &l, r, assay_f64(y) + r * l.outputs);
    assay_ml_post_apply(l.post, assay_f64(y) + r * l.outputs, l.outputs);
  }
  return NULL;
}

// ---- LinearClassifier --------------------------------------------------------------------------

// One score for two labels counts for the second, its negative for the first.
static int64_t pair_scores(int64_t n_scores, int64_t n_labels, double* scores) {
  if (n_scores != 1 || n_labels != 2) return n_scores;
  scores[1] = scores[0];
  scores[0] = -scores[1];
  return 2;
}

int64_t assay_ml_paired(int64_t n_scores, int64_t n_labels) {
  return n_scores == 1 && n_labels == 2 ? 2 : n_scores;
}

// The label of a row of raw scores. A single score chooses its label if it is above 0, else none:
// 0 or the empty string.
static assay_status_t set_top(assay_tensor_t* y, int64_t row, const assay_ml_labels_t* labels,
                              const double* scores, int64_t n) {
  if (!y) return NULL;
  if (n > 1 || scores[0] > 0) return assay_ml_set_label(y, row, labels, assay_ml_argmax(scores, n));
  if (!labels->ints) return assay_tensor_set_string(y, row, "", 0);
  assay_i64(y)[row] = 0;
  return NULL;
}

// The number of scores: as many as labels, or one for two labels.
assay_status_t assay_ml_classifier_outputs(const assay_node_t* n, int64_t features,
                                           int64_t n_labels, int64_t* out) {
  size_t n_weights = 0;
  assay_attr_floats(n, "coefficients", &n_weights);
  *out = features > 0 ? (int64_t)n_weights / features : n_labels;
  if (*out == n_labels || (*out == 1 && n_labels == 2)) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                          "%zu coefficients for %lld features make %lld scores, and there are %lld "
                          "labels",
                          n_weights, (long long)features, (long long)*out, (long long)n_labels);
}

static assay_status_t classifier_infer(assay_infer_t* c) {
  assay_ml_labels_t labels;
  assay_shape_t y;
  assay_ml_post_t post;
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_ints", "classlabels_strings", &labels));
  ASSAY_TRY(assay_ml_post_read(c->node, &post));
  ASSAY_TRY(assay_ml_infer_rows(c, &y));
  ASSAY_TRY(assay_infer_set(c, 0, assay_ml_labels_type(&labels), &y));
  return set_matrix(c, 1, ASSAY_TYPE_FLOAT, labels.n);
}

// Makes the two outputs of a classifier; one that is not wanted is made all the same, as scratch.
static assay_status_t classifier_made(assay_eval_t* c, const assay_ml_labels_t* labels,
                                      int64_t rows, int64_t columns, assay_tensor_t** y,
                                      assay_tensor_t** z) {
  *y = NULL;
  if (assay_eval_wants(c, 0))
    ASSAY_TRY(assay_eval_output(c, 0, assay_ml_labels_type(labels), 1, &rows, y));
  if (assay_eval_wants(c, 1))
    return assay_eval_output(c, 1, ASSAY_TYPE_FLOAT, 2, (int64_t[]){rows, columns}, z);
  return assay_tensor_create(ASSAY_TYPE_FLOAT, 2, (int64_t[]){rows, columns}, z);
}

// ai.onnx.ml LinearClassifier-1.
static assay_status_t classifier_eval(assay_eval_t* c) {
  assay_linear_t l = {0};
  assay_ml_labels_t labels;
  int64_t rows = 0, features = 0;
  assay_tensor_t *y = NULL, *z = NULL;
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_ints", "classlabels_strings", &labels));
  ASSAY_TRY(assay_ml_rows(c, c->in[0], &rows, &features));
  ASSAY_TRY(assay_ml_classifier_outputs(c->node, features, labels.n, &l.outputs));
  ASSAY_TRY(assay_ml_linear_check(c->node, &l, features));
  int64_t columns = assay_ml_paired(l.outputs, labels.n);
  ASSAY_TRY(classifier_made(c, &labels, rows, columns, &y, &z));
  assay_status_t st = NULL;
#pragma omp parallel for schedule(static) if (rows * l.n_weights > 100000)
  for (int64_t r = 0; r < rows; r++) {
    linear_scores(c, &l, r, assay_f64(z) + r * columns);
    pair_scores(l.outputs, labels.n, assay_f64(z) + r * columns);
  }
  for (int64_t r = 0; !st && r < rows; r++) {
    double* scores = assay_f64(z) + r * columns;
    st = set_top(y, r, &labels, scores, columns);
    assay_ml_post_apply(l.post, scores, columns);
  }
  if (!assay_eval_wants(c, 1)) assay_tensor_release(z);
  return st;
}

static void linear_cost(const assay_eval_t* c, assay_cost_t* out) {
  size_t n = 0;
  assay_attr_floats(c->node, "coefficients", &n);
  const assay_tensor_t* x = c->in[0];
  out->flops = 2.0 * (double)n * (double)(x->rank == 2 ? x->dims[0] : 1);
}

// ---- kernels -----------------------------------------------------------------------------------

assay_status_t assay_ml_svm_read(const assay_node_t* n, assay_svm_t* s) {
  static const char* const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  int k = 0;
  size_t n_params = 0;
  *s = (assay_svm_t){0};
  while (k < 4 && !assay_attr_is(n, "kernel_type", names[k])) k++;
  if (k == 4)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "kernel_type is '%s'; LINEAR, POLY, RBF or SIGMOID is expected",
                            assay_attr_str(n, "kernel_type", ""));
  s->kernel = (assay_svm_kernel_t)k;
  const float* params = assay_attr_floats(n, "kernel_params", &n_params);
  if (n_params && n_params != 3)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "kernel_params has %zu entries; 3 are expected",
                            n_params);
  if (n_params) {
    s->gamma = (double)params[0];
    s->coef0 = (double)params[1];
    s->degree = (double)params[2];
  }
  s->coefficients = assay_attr_floats(n, "coefficients", &s->n_coefficients);
  s->vectors = assay_attr_floats(n, "support_vectors", &s->n_vectors);
  s->rho = assay_attr_floats(n, "rho", &s->n_rho);
  s->prob_a = assay_attr_floats(n, "prob_a", &s->n_prob_a);
  s->prob_b = assay_attr_floats(n, "prob_b", &s->n_prob_b);
  return assay_ml_post_read(n, &s->post);
}

static double kernel_value(const assay_eval_t* c, const assay_svm_t* s, assay_svm_kernel_t kernel,
                           int64_t at, const float* v, int64_t n) {
  const assay_tensor_t* x = c->in[0];
  if (kernel == ASSAY_KERNEL_RBF) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
      double d = assay_acc(c, assay_ml_number(x, at + i) - (double)v[i]);
      sum = assay_acc(c, sum + assay_acc(c, d * d));
    }
    return assay_exp(-s->gamma * sum);
  }
  double d = dot(c, x, at, v, n);
  if (kernel == ASSAY_KERNEL_POLY) return assay_pow(s->gamma * d + s->coef0, s->degree);
  if (kernel == ASSAY_KERNEL_SIGMOID) return assay_tanh(s->gamma * d + s->coef0);
  return d;
}

// ---- SVMRegressor ------------------------------------------------------------------------------

static assay_status_t svr_infer(assay_infer_t* c) {
  assay_svm_t s;
  ASSAY_TRY(assay_ml_svm_read(c->node, &s));
  return set_matrix(c, 0, ASSAY_TYPE_FLOAT, 1);
}

// ai.onnx.ml SVMRegressor-1. Without support vectors it is linear, with the coefficients as
// weights.
static assay_status_t svr_eval(assay_eval_t* c) {
  assay_svm_t s;
  int64_t rows = 0, features = 0, n = assay_attr_i64(c->node, "n_supports", 0), vectors = 0;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_ml_svm_read(c->node, &s));
  ASSAY_TRY(assay_ml_rows(c, c->in[0], &rows, &features));
  bool fits = n > 0 ? assay_mul_i64(n, features, &vectors) && vectors == (int64_t)s.n_vectors &&
                          n == (int64_t)s.n_coefficients
                    : n == 0 && features == (int64_t)s.n_coefficients;
  if (!fits || !s.n_rho)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "n_supports %lld, %zu support_vectors, %zu coefficients and %zu rho do not "
        "fit the %lld features",
        (long long)n, s.n_vectors, s.n_coefficients, s.n_rho, (long long)features);
  bool one_class = assay_attr_i64(c->node, "one_class", 0) != 0;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, 2, (int64_t[]){rows, 1}, &y));
#pragma omp parallel for schedule(static) if (rows * (n + 1) * features > 100000)
  for (int64_t r = 0; r < rows; r++) {
    double sum = n ? 0 : dot(c, c->in[0], r * features, s.coefficients, features);
    for (int64_t k = 0; k < n; k++) {
      double v = kernel_value(c, &s, s.kernel, r * features, s.vectors + k * features, features);
      sum = assay_acc(c, sum + assay_acc(c, (double)s.coefficients[k] * v));
    }
    sum = assay_acc(c, sum + (double)s.rho[0]);
    assay_f64(y)[r] = one_class ? (sum > 0 ? 1 : -1) : sum;
    if (!one_class) assay_ml_post_apply(s.post, assay_f64(y) + r, 1);
  }
  return NULL;
}

// ---- SVMClassifier -----------------------------------------------------------------------------

assay_status_t assay_ml_svc_read(const assay_node_t* n, assay_svc_t* v) {
  size_t n_classes = 0;
  *v = (assay_svc_t){0};
  ASSAY_TRY(assay_ml_svm_read(n, &v->s));
  ASSAY_TRY(assay_ml_labels(n, "classlabels_ints", "classlabels_strings", &v->labels));
  v->classes = v->labels.n;
  v->per_class = assay_attr_ints(n, "vectors_per_class", &n_classes);
  for (size_t i = 0; i < n_classes; i++)
    if (!assay_add_i64(v->vectors, v->per_class[i], &v->vectors))
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "vectors_per_class[%zu] is %lld", i,
                              (long long)v->per_class[i]);
  if (!v->vectors) {
    v->per_class = NULL;
    v->columns = v->classes;
    if (!v->s.n_rho) return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "rho is empty");
    return NULL;
  }
  if ((int64_t)n_classes != v->classes || v->classes > 1 << 16)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "vectors_per_class has %zu entries for %lld labels",
                            n_classes, (long long)v->classes);
  v->pairs = v->classes * (v->classes - 1) / 2;
  v->proba = v->s.n_prob_a > 0;
  v->columns = v->proba ? v->classes : assay_ml_paired(v->pairs, v->classes);
  int64_t need = 0;
  if (!assay_mul_i64(v->vectors, v->classes - 1, &need) || need != (int64_t)v->s.n_coefficients)
    return ASSAY_NODE_ERROR(
        n, ASSAY_CORRUPT,
        "%lld support vectors of %lld classes need %lld coefficients, there are "
        "%zu",
        (long long)v->vectors, (long long)v->classes, (long long)need, v->s.n_coefficients);
  if ((int64_t)v->s.n_rho != v->pairs ||
      (v->proba && ((int64_t)v->s.n_prob_a != v->pairs || v->s.n_prob_b != v->s.n_prob_a)))
    return ASSAY_NODE_ERROR(
        n, ASSAY_CORRUPT,
        "rho has %zu entries, prob_a %zu, prob_b %zu; %lld pairs of classes are "
        "to be told apart",
        v->s.n_rho, v->s.n_prob_a, v->s.n_prob_b, (long long)v->pairs);
  return NULL;
}

static assay_status_t svc_infer(assay_infer_t* c) {
  assay_svc_t v;
  assay_shape_t y;
  ASSAY_TRY(assay_ml_svc_read(c->node, &v));
  ASSAY_TRY(assay_ml_infer_rows(c, &y));
  ASSAY_TRY(assay_infer_set(c, 0, assay_ml_labels_type(&v.labels), &y));
  return set_matrix(c, 1, ASSAY_TYPE_FLOAT, v.columns);
}

// Pairwise probabilities to class probabilities. r[i * k + j]: of i against j.
// Source: Wu, Lin, Weng, 'Probability Estimates for Multi-class Classification by Pairwise
// Coupling', JMLR 5 (2004), algorithm 2, as in LIBSVM.
void assay_ml_couple(const double* r, int64_t k, double* q, double* qp, double* p) {
  for (int64_t t = 0; t < k; t++) {
    p[t] = 1 / (double)k;
    q[t * k + t] = 0;
    for (int64_t j = 0; j < k; j++) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  }
  int64_t rounds = k > 100 ? k : 100;
  for (int64_t round = 0; round < rounds; round++) {
    double pqp = 0, worst = 0;
    for (int64_t t = 0; t < k; t++) {
      qp[t] = 0;
      for (int64_t j = 0; j < k; j++) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (int64_t t = 0; t < k; t++)
      if (fabs(qp[t] - pqp) > worst) worst = fabs(qp[t] - pqp);
    if (worst < 0.005 / (double)k) break;
    for (int64_t t = 0; t < k; t++) {
      double diff = (pqp - qp[t]) / q[t * k + t];
      p[t] += diff;
      pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
      for (int64_t j = 0; j < k; j++) {
        qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
        p[j] /= 1 + diff;
      }
    }
  }
}

// Scratch of one thread's row.
typedef struct scratch {
  double *kernels, *pairs, *votes, *r, *q, *qp;
} scratch_t;

static assay_status_t scratch_init(const assay_svc_t* v, scratch_t* s) {
  size_t k = (size_t)v->classes, square = v->proba ? k * k : 1;
  *s = (scratch_t){0};
  ASSAY_TRY(assay_new_array((size_t)v->vectors, sizeof(double), &s->kernels));
  ASSAY_TRY(assay_new_array((size_t)v->pairs + 2, sizeof(double), &s->pairs));
  ASSAY_TRY(assay_new_array(k, sizeof(double), &s->votes));
  ASSAY_TRY(assay_new_array(square, sizeof(double), &s->r));
  ASSAY_TRY(assay_new_array(square, sizeof(double), &s->q));
  return assay_new_array(k, sizeof(double), &s->qp);
}

static void scratch_deinit(scratch_t* s) {
  double* all[] = {s->kernels, s->pairs, s->votes, s->r, s->q, s->qp};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) assay_free(all[i]);
}

// Each pair of classes votes: coefficients row j - 1 holds class i's vectors against class j.
static void vote(const assay_eval_t* c, const assay_svc_t* v, scratch_t* s, int64_t row) {
  int64_t f = v->features, n = v->vectors, pair = 0, start_i = 0;
  for (int64_t k = 0; k < n; k++)
    s->kernels[k] = kernel_value(c, &v->s, v->s.kernel, row * f, v->s.vectors + k * f, f);
  memset(s->votes, 0, (size_t)v->classes * sizeof(double));
  for (int64_t i = 0; i < v->classes; i++) {
    int64_t start_j = start_i + v->per_class[i];
    for (int64_t j = i + 1; j < v->classes; j++) {
      const float *a = v->s.coefficients + (j - 1) * n, *b = v->s.coefficients + i * n;
      double sum = 0;
      for (int64_t k = start_i; k < start_i + v->per_class[i]; k++)
        sum = assay_acc(c, sum + assay_acc(c, (double)a[k] * s->kernels[k]));
      for (int64_t k = start_j; k < start_j + v->per_class[j]; k++)
        sum = assay_acc(c, sum + assay_acc(c, (double)b[k] * s->kernels[k]));
      sum = assay_acc(c, sum + (double)v->s.rho[pair]);
      s->pairs[pair++] = sum;
      s->votes[sum > 0 ? i : j]++;
      start_j += v->per_class[j];
    }
    start_i += v->per_class[i];
  }
}

static void probabilities(const assay_svc_t* v, scratch_t* s, double* out) {
  int64_t k = v->classes, pair = 0;
  for (int64_t i = 0; i < k; i++) {
    for (int64_t j = i + 1; j < k; j++, pair++) {
      double z = s->pairs[pair] * (double)v->s.prob_a[pair] + (double)v->s.prob_b[pair];
      double p = assay_ml_logistic(-z);
      p = p < 1e-7 ? 1e-7 : p > 1 - 1e-7 ? 1 - 1e-7 : p;
      s->r[i * k + j] = p;
      s->r[j * k + i] = 1 - p;
    }
  }
  assay_ml_couple(s->r, k, s->q, s->qp, out);
}

static assay_status_t svc_row(const assay_eval_t* c, const assay_svc_t* v, scratch_t* s,
                              int64_t row, assay_tensor_t* y, double* out) {
  if (!v->per_class) {
    for (int64_t k = 0; k < v->classes; k++)
      out[k] = assay_acc(
          c, dot(c, c->in[0], row * v->features, v->s.coefficients + k * v->features, v->features) +
                 (double)v->s.rho[0]);
    ASSAY_TRY(set_top(y, row, &v->labels, out, v->classes));
  } else {
    vote(c, v, s, row);
    if (v->proba) {
      probabilities(v, s, out);
    } else {
      memcpy(out, s->pairs, (size_t)v->pairs * sizeof *out);
      pair_scores(v->pairs, v->classes, out);
    }
    if (y) ASSAY_TRY(assay_ml_set_label(y, row, &v->labels, assay_ml_argmax(s->votes, v->classes)));
  }
  assay_ml_post_apply(v->s.post, out, v->columns);
  return NULL;
}

// ai.onnx.ml SVMClassifier-1.
static assay_status_t svc_eval(assay_eval_t* c) {
  assay_svc_t v;
  scratch_t s = {0};
  int64_t rows = 0, need = 0;
  assay_tensor_t *y = NULL, *z = NULL;
  ASSAY_TRY(assay_ml_svc_read(c->node, &v));
  ASSAY_TRY(assay_ml_rows(c, c->in[0], &rows, &v.features));
  bool fits = assay_mul_i64(v.per_class ? v.vectors : v.classes, v.features, &need) &&
              need == (int64_t)(v.per_class ? v.s.n_vectors : v.s.n_coefficients);
  if (!fits)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%lld features need %lld %s, there are %zu", (long long)v.features,
                            (long long)need, v.per_class ? "support_vectors" : "coefficients",
                            v.per_class ? v.s.n_vectors : v.s.n_coefficients);
  ASSAY_TRY(classifier_made(c, &v.labels, rows, v.columns, &y, &z));
  assay_status_t st = scratch_init(&v, &s);
  for (int64_t r = 0; !st && r < rows; r++)
    st = svc_row(c, &v, &s, r, y, assay_f64(z) + r * v.columns);
  scratch_deinit(&s);
  if (!assay_eval_wants(c, 1)) assay_tensor_release(z);
  return st;
}

static void svm_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_svm_t s;
  const assay_tensor_t* x = c->in[0];
  assay_status_free(assay_ml_svm_read(c->node, &s));  // what could be read counts
  double rows = (double)(x->rank == 2 ? x->dims[0] : 1);
  out->flops = 2 * rows * (double)(s.n_vectors + s.n_coefficients);
}

#define ML(operator) .domain = "ai.onnx.ml", .name = operator, .since = 1

const assay_op_t assay_ops_ml_linear[] = {
    {ML("LinearRegressor"), .infer = regressor_infer, .eval = regressor_eval,
     .bound = assay_ml_regressor_bound, .cost = linear_cost},
    {ML("LinearClassifier"), .discrete = 1, .infer = classifier_infer, .eval = classifier_eval,
     .bound = assay_ml_classifier_bound, .cost = linear_cost},
    {ML("SVMRegressor"), .infer = svr_infer, .eval = svr_eval, .bound = assay_ml_svr_bound,
     .cost = svm_cost},
    {ML("SVMClassifier"), .discrete = 1, .infer = svc_infer, .eval = svc_eval,
     .bound = assay_ml_svc_bound, .cost = svm_cost},
    {0}};
