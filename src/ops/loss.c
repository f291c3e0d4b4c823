// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <math.h>

#include "ops/families.h"
#include "ops/softmax.h"

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

static void loss_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (assay_eval_has(c, 0)) out->flops = 5.0 * (double)c->in[0]->size;
}

const assay_op_t assay_ops_loss[] = {{.domain = "",
                                      .name = "NegativeLogLikelihoodLoss",
                                      .since = 12,
                                      .infer = loss_infer,
                                      .eval = nll_eval,
                                      .cost = loss_cost},
                                     {.domain = "",
                                      .name = "SoftmaxCrossEntropyLoss",
                                      .since = 12,
                                      .infer = loss_infer,
                                      .eval = cross_entropy_eval,
                                      .cost = loss_cost},
                                     {0}};
