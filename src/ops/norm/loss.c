// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <math.h>

#include "base/alloc.h"
#include "ops/bound_number.h"
#include "ops/families.h"
#include "ops/norm/softmax.h"
#include "ops/norm/softmax_bound.h"

// ---- inference --------------------------------------------------------------------------------

// Scores are [N, C, d...], targets [N, d...], weights [C]; the loss is like the targets, or a
// scalar after a reduction.
static assay_status_t loss_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, ASSAY_MAX_RANK - 1));
  if (assay_infer_has(c, 2)) ASSAY_TRY(assay_infer_want_rank(c, 2, 1, 1));
  const assay_shape_t x = assay_infer_shape(c, 0), t = assay_infer_shape(c, 1);
  const assay_shape_t w = assay_infer_has(c, 2) ? assay_infer_shape(c, 2) : (assay_shape_t){0};
  bool fits = !x.known || !t.known || x.rank == t.rank + 1;
  for (int i = 0; fits && x.known && t.known && i < t.rank; i++) {
    fits = !assay_dim_differ(t.dims[i], x.dims[i == 0 ? 0 : i + 1]);
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "targets are %s for scores %s; expected [N, d...] for [N, C, d...]",
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)),
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
  }
  if (x.known && w.known && assay_dim_differ(w.dims[0], x.dims[1])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "weights are %s for scores %s; expected one for each class",
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 2)),
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
  }
  assay_shape_t y = {.known = true};
  if (assay_attr_is(c->node, "reduction", "none")) {
    y = t;
    if (!t.known && x.known) {
      y = (assay_shape_t){.known = true, .rank = x.rank - 1};
      for (int i = 0; i < y.rank; i++) y.dims[i] = x.dims[i == 0 ? 0 : i + 1];
    }
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), y.known ? &y : NULL));
  return assay_infer_set(c, 1, assay_infer_elem(c, 0), x.known ? &x : NULL);
}

// ---- evaluation -------------------------------------------------------------------------------

typedef struct loss {
  const assay_tensor_t *x, *target, *weight;  // weight: NULL for ones
  int64_t classes, inner;                     // x is [N, classes, inner]
  bool ignores;
  int64_t ignored;
  bool none, mean;
} loss_t;

static assay_status_t read_loss(const assay_eval_t* c, loss_t* out) {
  loss_t l = {.x = c->in[0], .target = c->in[1], .weight = assay_eval_has(c, 2) ? c->in[2] : NULL};
  ASSAY_TRY(assay_eval_want_rank(c, 2, 1, 1));
  bool fits = l.x->rank >= 2 && l.target->rank == l.x->rank - 1;
  for (int i = 0; fits && i < l.target->rank; i++) {
    fits = l.target->dims[i] == l.x->dims[i == 0 ? 0 : i + 1];
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "targets have shape %s for scores %s; expected [N, d...] for [N, C, "
                            "d...]",
                            ASSAY_DIMS_TEXT(l.target), ASSAY_DIMS_TEXT(l.x));
  }
  l.classes = l.x->dims[1];
  l.inner = assay_dims_product(l.x->dims, 2, l.x->rank);
  if (l.weight && l.weight->size != l.classes) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "weights have shape %s; expected one for each of %lld classes",
                            ASSAY_DIMS_TEXT(l.weight), (long long)l.classes);
  }
  l.ignores = assay_attr_has(c->node, "ignore_index");
  l.ignored = assay_attr_i64(c->node, "ignore_index", 0);
  l.none = assay_attr_is(c->node, "reduction", "none");
  l.mean = assay_attr_is(c->node, "reduction", "mean") || !assay_attr_has(c->node, "reduction");
  if (!l.none && !l.mean && !assay_attr_is(c->node, "reduction", "sum")) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "reduction is '%s'; expected none, sum or mean",
                            assay_attr_str(c->node, "reduction", ""));
  }
  *out = l;
  return NULL;
}

// The loss from log-probabilities laid out as the scores. Sums run over the targets in their order,
// each term and each partial sum rounded.
static assay_status_t eval_loss(assay_eval_t* c, const loss_t* l, const double* log_prob) {
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, l->x->type),
                              l->none ? l->target->rank : 0, l->target->dims, &y));
  double sum = 0, sum_weight = 0;
  const int64_t* target = assay_i64(l->target);
  for (int64_t i = 0; i < l->target->size; i++) {
    double loss = 0;
    if (!l->ignores || target[i] != l->ignored) {
      if (target[i] < 0 || target[i] >= l->classes) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "target %lld is class %lld; expected one of [0, %lld)",
                                (long long)i, (long long)target[i], (long long)l->classes);
      }
      const int64_t at = (i / l->inner * l->classes + target[i]) * l->inner + i % l->inner;
      const double weight = l->weight ? assay_f64(l->weight)[target[i]] : 1;
      loss = assay_acc(c, -log_prob[at] * weight);
      sum_weight = assay_acc(c, sum_weight + weight);
    }
    if (l->none) assay_f64(y)[i] = loss;
    sum = assay_acc(c, sum + loss);
  }
  if (!l->none) assay_f64(y)[0] = l->mean ? assay_acc(c, sum / sum_weight) : sum;
  return NULL;
}

// Source: ONNX NegativeLogLikelihoodLoss 12, 13, 22. An ignored target has weight 0, also in the
// mean without weights.
static assay_status_t nll_eval(assay_eval_t* c) {
  loss_t l;
  ASSAY_TRY(read_loss(c, &l));
  return eval_loss(c, &l, assay_f64(l.x));
}

// Source: ONNX SoftmaxCrossEntropyLoss 12, 13: the loss above of LogSoftmax(scores) over the
// classes.
static assay_status_t cross_entropy_eval(assay_eval_t* c) {
  loss_t l;
  ASSAY_TRY(read_loss(c, &l));
  assay_tensor_t* log_prob = NULL;
  ASSAY_TRY(assay_tensor_create(l.x->type, l.x->rank, l.x->dims, &log_prob));
  const int64_t rows = l.x->size && l.classes ? l.x->size / l.classes : 0;
#pragma omp parallel for schedule(static) if (rows > 1 && l.x->size > 30000)
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = r / l.inner * l.classes * l.inner + r % l.inner;
    assay_log_softmax_row(c, l.classes, l.inner, assay_f64(l.x) + at, assay_f64(log_prob) + at);
  }
  assay_status_t st = eval_loss(c, &l, assay_f64(log_prob));
  if (!st && assay_eval_wants(c, 1)) assay_eval_set(c, 1, log_prob);
  assay_tensor_release(log_prob);
  return st;
}

// ---- bounds -----------------------------------------------------------------------------------

typedef assay_number_t num_t;

// Log-probabilities and their limits.
typedef struct log_probs {
  const double *v, *g, *p;  // g NULL: exact
} log_probs_t;

static num_t log_prob_at(const log_probs_t* x, int64_t at) {
  const double p = x->g ? x->p[at] / 6 : 0;
  return (num_t){x->v[at], x->g ? x->g[at] : 0, p * p};
}

static assay_status_t bound_loss(assay_bound_t* c, const loss_t* l, const log_probs_t* x) {
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  assay_number_sum_t sum = {0}, weights = {0};
  const int64_t* target = assay_i64(l->target);
  for (int64_t i = 0; g && i < l->target->size; i++) {
    num_t loss = assay_number_exact(0);
    if (!l->ignores || target[i] != l->ignored) {
      const int64_t at = (i / l->inner * l->classes + target[i]) * l->inner + i % l->inner;
      const num_t weight = l->weight ? assay_number_input(c, 2, target[i]) : assay_number_exact(1);
      loss = assay_number_neg(log_prob_at(x, at));
      if (l->weight) loss = assay_number_mul(&a, loss, weight);
      assay_number_sum_add(&weights, weight);
      assay_number_sum_add(&sum, loss);
    }
    if (l->none) assay_number_limits(&a, loss, &g[i], &p[i]);
  }
  if (!g || l->none) return NULL;
  num_t y = assay_number_sum_end(&a, &sum);
  if (l->mean) {
    y = assay_number_div(&a, y, assay_number_sum_end(&a, &weights));
    // Each weight may be divided by their sum first.
    if (!c->rounding->documented) y = assay_number_round(&a, 2 * a.inner.u, y);
  }
  assay_number_limits(&a, y, g, p);
  return NULL;
}

static assay_status_t nll_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  loss_t l;
  ASSAY_TRY(read_loss(&e, &l));
  const log_probs_t x = {assay_f64(l.x), assay_bound_in(c, 0, false), assay_bound_in(c, 0, true)};
  return bound_loss(c, &l, &x);
}

// Log-softmax over the classes into made[0], its limits into made[1] and made[2].
static assay_status_t log_probs(const assay_bound_t* c, const assay_eval_t* e, const loss_t* l,
                                assay_tensor_t** made) {
  for (int k = 0; k < 3; k++)
    ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, l->x->rank, l->x->dims, &made[k]));
  const int64_t rows = l->x->size && l->classes ? l->x->size / l->classes : 0;
#pragma omp parallel for schedule(static) if (rows > 1 && l->x->size > 30000)
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = r / l->inner * l->classes * l->inner + r % l->inner;
    assay_log_softmax_row(e, l->classes, l->inner, assay_f64(l->x) + at, assay_f64(made[0]) + at);
    assay_softmax_bound_t row = {.rounding = c->rounding,
                                 .n = l->classes,
                                 .stride = l->inner,
                                 .x = assay_f64(l->x) + at,
                                 .y = assay_f64(made[0]) + at,
                                 .limits = {assay_f64(made[1]) + at, assay_f64(made[2]) + at}};
    for (int probable = 0; probable < 2; probable++) {
      const double* in = assay_bound_in(c, 0, probable);
      row.x_error[probable] = in ? in + at : NULL;
    }
    assay_log_softmax_bound_row(&row);
  }
  return NULL;
}

static assay_status_t cross_entropy_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  assay_tensor_t* made[3] = {NULL};
  loss_t l;
  ASSAY_TRY(read_loss(&e, &l));
  assay_status_t st = log_probs(c, &e, &l, made);
  if (!st) {
    const log_probs_t x = {assay_f64(made[0]), assay_f64(made[1]), assay_f64(made[2])};
    st = bound_loss(c, &l, &x);
  }
  if (!st && assay_bound_is_float(c, 1)) {
    assay_limits_deinit(&c->out_error[1]);
    c->out_error[1].guaranteed = assay_tensor_retain(made[1]);
    c->out_error[1].probable = assay_tensor_retain(made[2]);
  }
  for (int k = 0; k < 3; k++) assay_tensor_release(made[k]);
  return st;
}

static void loss_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (assay_eval_has(c, 0)) out->flops = 5.0 * (double)c->in[0]->size;
}

const assay_op_t assay_ops_loss[] = {{.domain = "",
                                      .name = "NegativeLogLikelihoodLoss",
                                      .since = 12,
                                      .infer = loss_infer,
                                      .eval = nll_eval,
                                      .bound = nll_bound,
                                      .cost = loss_cost},
                                     {.domain = "",
                                      .name = "SoftmaxCrossEntropyLoss",
                                      .since = 12,
                                      .infer = loss_infer,
                                      .eval = cross_entropy_eval,
                                      .bound = cross_entropy_bound,
                                      .cost = loss_cost},
                                     {0}};
