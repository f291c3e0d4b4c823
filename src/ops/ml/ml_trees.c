// ai.onnx.ml TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.
#include "ops/ml/ml_trees.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/families.h"
#include "ops/ml/ml_bound.h"
#include "ops/ml/ml_common.h"

enum { PARALLEL_STEPS = 20000 };

// ---- walking -----------------------------------------------------------------------------------

static bool takes_true(const assay_trees_t* t, const assay_tree_node_t* n, double x) {
  if (isnan(x)) return n->missing_true;
  switch (n->mode) {
    case ASSAY_TREE_LEQ:
      return x <= n->value;
    case ASSAY_TREE_LT:
      return x < n->value;
    case ASSAY_TREE_GTE:
      return x >= n->value;
    case ASSAY_TREE_GT:
      return x > n->value;
    case ASSAY_TREE_EQ:
      return x == n->value;
    case ASSAY_TREE_NEQ:
      return x != n->value;
    default:
      for (int64_t i = 0; i < n->n; i++)
        if (t->members[n->first + i] == x) return true;
      return false;
  }
}

const assay_tree_node_t* assay_trees_leaf(const assay_trees_t* t, int64_t tree,
                                          const assay_tensor_t* x, int64_t at) {
  const assay_tree_node_t* n = &t->nodes[t->roots[tree]];
  while (n->mode != ASSAY_TREE_LEAF)
    n = &t->nodes[takes_true(t, n, assay_ml_number(x, at + n->feature)) ? n->yes : n->no];
  return n;
}

typedef enum aggregate {
  AGGREGATE_AVERAGE,
  AGGREGATE_SUM,
  AGGREGATE_MIN,
  AGGREGATE_MAX
} aggregate_t;

// The trees' votes for one row, tree by tree in order; a target without a vote gets 0.
static void gather(const assay_eval_t* c, const assay_trees_t* t, aggregate_t how, int64_t at,
                   int64_t n, double* y) {
  double start = how == AGGREGATE_MIN ? INFINITY : how == AGGREGATE_MAX ? -INFINITY : 0;
  for (int64_t k = 0; k < n; k++) y[k] = start;
  for (int64_t tree = 0; tree < t->n_trees; tree++) {
    const assay_tree_node_t* leaf = assay_trees_leaf(t, tree, c->in[0], at);
    for (int64_t i = leaf->first; i < leaf->first + leaf->n; i++) {
      double w = t->votes[i].weight, *to = &y[t->votes[i].target];
      if (how == AGGREGATE_MIN)
        *to = w < *to ? w : *to;
      else if (how == AGGREGATE_MAX)
        *to = w > *to ? w : *to;
      else
        *to = assay_acc(c, *to + w);
    }
  }
  for (int64_t k = 0; k < n; k++) {
    if (how == AGGREGATE_AVERAGE && t->n_trees) y[k] /= (double)t->n_trees;
    if (isinf(start) && y[k] == start) y[k] = 0;
  }
}

static assay_status_t check_features(const assay_eval_t* c, const assay_trees_t* t,
                                     int64_t features) {
  if (t->max_feature < features) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "a tree asks for feature %lld; the input has shape %s",
                          (long long)t->max_feature, ASSAY_DIMS_TEXT(c->in[0]));
}

// ---- base values -------------------------------------------------------------------------------

static assay_status_t read_base(const assay_node_t* n, int64_t want, double** out) {
  size_t len = 0;
  const float* floats = assay_attr_floats(n, "base_values", &len);
  assay_tensor_t *t = assay_attr_tensor(n, "base_values_as_tensor"), *wide = NULL;
  int64_t count = t ? t->size : (int64_t)len;
  *out = NULL;
  if (len && t)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "base_values and base_values_as_tensor are both given");
  if (!count) return NULL;
  if (count != want)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "there are %lld base values; %lld are expected",
                            (long long)count, (long long)want);
  if (t) ASSAY_TRY(assay_tensor_widen(t, &wide));
  double* base = NULL;
  assay_status_t st = assay_new_array((size_t)count, sizeof *base, &base);
  if (!st && wide && wide->store != ASSAY_STORE_F64 && wide->store != ASSAY_STORE_I64)
    st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "base_values_as_tensor does not hold numbers");
  for (int64_t i = 0; !st && i < count; i++)
    base[i] = wide ? assay_ml_number(wide, i) : (double)floats[i];
  assay_tensor_release(wide);
  if (st) return assay_free(base), st;
  *out = base;
  return NULL;
}

// ---- regression --------------------------------------------------------------------------------

typedef struct regression {
  aggregate_t how;
  assay_ml_post_t post;
  int64_t targets;
  assay_type_t type;
} regression_t;

static assay_status_t read_targets(const assay_node_t* n, int64_t* out) {
  *out = assay_attr_i64(n, "n_targets", 0);
  if (*out >= 1) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "n_targets is %lld; it must be positive",
                          (long long)*out);
}

static assay_status_t read_regressor(const assay_node_t* n, regression_t* r) {
  static const char* const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  int k = 0;
  while (k < 4 && !assay_attr_is(n, "aggregate_function", names[k])) k++;
  if (k == 4)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "aggregate_function is '%s'; AVERAGE, SUM, MIN or MAX is expected",
                            assay_attr_str(n, "aggregate_function", ""));
  *r = (regression_t){.how = (aggregate_t)k, .type = ASSAY_TYPE_FLOAT};
  ASSAY_TRY(assay_ml_post_read(n, &r->post));
  return read_targets(n, &r->targets);
}

// TreeEnsemble-5 writes both as numbers.
static assay_status_t read_ensemble(const assay_node_t* n, regression_t* r) {
  int64_t how = assay_attr_i64(n, "aggregate_function", AGGREGATE_SUM);
  int64_t post = assay_attr_i64(n, "post_transform", ASSAY_ML_NONE);
  if (how < AGGREGATE_AVERAGE || how > AGGREGATE_MAX || post < ASSAY_ML_NONE ||
      post > ASSAY_ML_PROBIT)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "aggregate_function is %lld (0 to 3) and post_transform %lld "
                            "(0 to 4)",
                            (long long)how, (long long)post);
  *r = (regression_t){.how = (aggregate_t)how, .post = (assay_ml_post_t)post};
  return read_targets(n, &r->targets);
}

static assay_status_t set_rows(assay_infer_t* c, const regression_t* r) {
  assay_shape_t y;
  ASSAY_TRY(assay_ml_infer_rows(c, &y));
  y.dims[y.rank++] = assay_dim_const(c->dims, r->targets);
  return assay_infer_set(c, 0, r->type, &y);
}

static assay_status_t regressor_infer(assay_infer_t* c) {
  regression_t r;
  ASSAY_TRY(read_regressor(c->node, &r));
  return set_rows(c, &r);
}

static assay_status_t ensemble_infer(assay_infer_t* c) {
  regression_t r;
  ASSAY_TRY(read_ensemble(c->node, &r));
  return set_rows(c, &r);
}

static assay_status_t regress(assay_eval_t* c, const regression_t* r, assay_trees_t* t) {
  int64_t rows = 0, features = 0;
  assay_tensor_t* y = NULL;
  double* base = NULL;
  ASSAY_TRY(assay_trees_check(c->node, t, r->targets));
  ASSAY_TRY(assay_ml_rows(c, c->in[0], &rows, &features));
  ASSAY_TRY(check_features(c, t, features));
  ASSAY_TRY(assay_eval_output(c, 0, r->type ? r->type : c->in[0]->type, 2,
                              (int64_t[]){rows, r->targets}, &y));
  ASSAY_TRY(read_base(c->node, r->targets, &base));
#pragma omp parallel for schedule(static) if (rows * t->n_trees > PARALLEL_STEPS)
  for (int64_t i = 0; i < rows; i++) {
    double* out = assay_f64(y) + i * r->targets;
    gather(c, t, r->how, i * features, r->targets, out);
    for (int64_t k = 0; base && k < r->targets; k++) out[k] = assay_acc(c, out[k] + base[k]);
    assay_ml_post_apply(r->post, out, r->targets);
  }
  assay_free(base);
  return NULL;
}

// ai.onnx.ml TreeEnsembleRegressor-1, 3, 5.
static assay_status_t regressor_eval(assay_eval_t* c) {
  regression_t r;
  assay_trees_t t;
  ASSAY_TRY(read_regressor(c->node, &r));
  ASSAY_TRY(assay_trees_read(c->node, "target", &t));
  assay_status_t st = regress(c, &r, &t);
  assay_trees_deinit(&t);
  return st;
}

// ai.onnx.ml TreeEnsemble-5.
static assay_status_t ensemble_eval(assay_eval_t* c) {
  regression_t r;
  assay_trees_t t;
  ASSAY_TRY(read_ensemble(c->node, &r));
  ASSAY_TRY(assay_trees_read5(c->node, &t));
  assay_status_t st = regress(c, &r, &t);
  assay_trees_deinit(&t);
  return st;
}

// ---- bounds -----------------------------------------------------------------------------------
// Which leaf a row ends in is decided by comparing numbers as they are: exact. Votes are added.

typedef assay_number_t num_t;

// The sum of the votes for a target, base value included.
static num_t gather_numbers(const assay_bound_t* c, const assay_arithmetic_t* a,
                            const assay_trees_t* t, aggregate_t how, int64_t at, int64_t target,
                            const double* base) {
  assay_number_sum_t s = {0};
  const double start = how == AGGREGATE_MIN ? INFINITY : -INFINITY;
  double max = start;
  for (int64_t tree = 0; tree < t->n_trees; tree++) {
    const assay_tree_node_t* leaf = assay_trees_leaf(t, tree, c->in[0], at);
    for (int64_t i = leaf->first; i < leaf->first + leaf->n; i++) {
      if (t->votes[i].target != target) continue;
      const double w = t->votes[i].weight;
      max = how == AGGREGATE_MIN ? fmin(max, w) : fmax(max, w);
      assay_number_sum_add(&s, assay_number_exact(w));
    }
  }
  num_t y = assay_number_sum_end(a, &s);
  if (how == AGGREGATE_AVERAGE && t->n_trees)
    y = assay_number_div(a, y, assay_number_exact((double)t->n_trees));
  if (how == AGGREGATE_MIN || how == AGGREGATE_MAX) y = assay_number_exact(max == start ? 0 : max);
  return base ? assay_number_add(a, y, assay_number_exact(*base)) : y;
}

static assay_status_t regress_bound(assay_bound_t* c, const regression_t* r,
                                    const assay_trees_t* t) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  assay_ml_limits_t limits;
  int64_t rows = 0, features = 0;
  double* base = NULL;
  num_t* x = NULL;
  ASSAY_TRY(assay_ml_rows(&e, c->in[0], &rows, &features));
  ASSAY_TRY(assay_ml_limits_begin(c, 0, &limits));
  ASSAY_TRY(read_base(c->node, r->targets, &base));
  assay_status_t st = assay_new_array((size_t)r->targets, sizeof *x, &x);
  for (int64_t i = 0; !st && i < rows; i++) {
    for (int64_t k = 0; k < r->targets; k++)
      x[k] = gather_numbers(c, &a, t, r->how, i * features, k, base ? base + k : NULL);
    assay_ml_post_numbers(&a, r->post, x, r->targets);
    assay_ml_limits_row(&a, &limits, i, x, true);
  }
  assay_free(x);
  assay_free(base);
  return st;
}

// A feature that rounding may have moved could take another branch.
static assay_status_t regressor_bound(assay_bound_t* c) {
  regression_t r;
  assay_trees_t t;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(read_regressor(c->node, &r));
  ASSAY_TRY(assay_trees_read(c->node, "target", &t));
  assay_status_t st = regress_bound(c, &r, &t);
  assay_trees_deinit(&t);
  return st;
}

static assay_status_t ensemble_bound(assay_bound_t* c) {
  regression_t r;
  assay_trees_t t;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(read_ensemble(c->node, &r));
  ASSAY_TRY(assay_trees_read5(c->node, &t));
  assay_status_t st = regress_bound(c, &r, &t);
  assay_trees_deinit(&t);
  return st;
}

// ---- classification -----------------------------------------------------------------------------

static assay_status_t classifier_infer(assay_infer_t* c) {
  assay_ml_labels_t labels;
  assay_ml_post_t post;
  assay_shape_t y;
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_int64s", "classlabels_strings", &labels));
  ASSAY_TRY(assay_ml_post_read(c->node, &post));
  ASSAY_TRY(assay_ml_infer_rows(c, &y));
  ASSAY_TRY(assay_infer_set(c, 0, assay_ml_labels_type(&labels), &y));
  y.dims[y.rank++] = assay_dim_const(c->dims, labels.n);
  return assay_infer_set(c, 1, ASSAY_TYPE_FLOAT, &y);
}

// Two classes of which only the first is voted for: the votes are those of the second (positive)
// one, as exporters write binary models and ONNX Runtime reads them.
static bool is_binary(const assay_trees_t* t, int64_t classes) {
  for (int64_t i = 0; i < t->n_votes; i++)
    if (t->votes[i].target != 0) return false;
  return classes == 2 && t->n_votes > 0;
}

// The base values of a classifier. Exporters of boosted trees give a binary one a single value,
// which belongs to the class that the votes are for.
static assay_status_t read_class_base(const assay_node_t* n, const assay_trees_t* t,
                                      int64_t classes, double** out) {
  size_t len = 0;
  assay_attr_floats(n, "base_values", &len);
  const assay_tensor_t* tensor = assay_attr_tensor(n, "base_values_as_tensor");
  const int64_t count = tensor ? tensor->size : (int64_t)len;
  if (count != 1 || !is_binary(t, classes)) return read_base(n, classes, out);
  double *one = NULL, *both = NULL;
  ASSAY_TRY(read_base(n, 1, &one));
  assay_status_t st = assay_new_array(2, sizeof *both, &both);
  if (!st) both[0] = both[1] = one[0];
  assay_free(one);
  *out = both;
  return st;
}

static bool all_positive(const assay_trees_t* t) {
  for (int64_t i = 0; i < t->n_votes; i++)
    if (t->votes[i].weight < 0) return false;
  return true;
}

// Makes a pair of scores of the one s: (1 - s, s) where s is a probability, else (-s, s).
static void make_pair(double* y, bool probability) {
  y[1] = y[0];
  y[0] = probability ? 1 - y[1] : -y[1];
}

static assay_status_t classify(assay_eval_t* c, const assay_ml_labels_t* labels,
                               assay_ml_post_t post, const assay_trees_t* t, const double* base,
                               assay_tensor_t* y, assay_tensor_t* z) {
  int64_t rows = 0, features = 0, n = labels->n;
  ASSAY_TRY(assay_ml_rows(c, c->in[0], &rows, &features));
  ASSAY_TRY(check_features(c, t, features));
  bool binary = is_binary(t, n);
  bool probability = post == ASSAY_ML_PROBIT || (post == ASSAY_ML_NONE && all_positive(t));
#pragma omp parallel for schedule(static) if (rows * t->n_trees > PARALLEL_STEPS)
  for (int64_t i = 0; i < rows; i++) {
    double* scores = assay_f64(z) + i * n;
    gather(c, t, AGGREGATE_SUM, i * features, n, scores);
    // Of two base values the second belongs to the class that the votes are for.
    if (base && binary) scores[0] = assay_acc(c, scores[0] + base[1]);
    for (int64_t k = 0; base && !binary && k < n; k++)
      scores[k] = assay_acc(c, scores[k] + base[k]);
    if (binary) make_pair(scores, probability);
  }
  for (int64_t i = 0; i < rows; i++) {
    double* scores = assay_f64(z) + i * n;
    if (y && (n > 1 || scores[0] > 0))
      ASSAY_TRY(assay_ml_set_label(y, i, labels, assay_ml_argmax(scores, n)));
    else if (y && labels->ints)
      assay_i64(y)[i] = 0;  // a single class that is not met
    assay_ml_post_apply(post, scores, n);
  }
  return NULL;
}

// ai.onnx.ml TreeEnsembleClassifier-1, 3, 5.
static assay_status_t classifier_eval(assay_eval_t* c) {
  assay_ml_labels_t labels;
  assay_ml_post_t post;
  assay_trees_t t;
  assay_tensor_t *y = NULL, *z = NULL;
  double* base = NULL;
  int64_t rows = 0, features = 0;
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_int64s", "classlabels_strings", &labels));
  ASSAY_TRY(assay_ml_post_read(c->node, &post));
  ASSAY_TRY(assay_ml_rows(c, c->in[0], &rows, &features));
  ASSAY_TRY(assay_trees_read(c->node, "class", &t));
  assay_status_t st = assay_trees_check(c->node, &t, labels.n);
  if (!st) st = read_class_base(c->node, &t, labels.n, &base);
  if (!st && assay_eval_wants(c, 0))
    st = assay_eval_output(c, 0, assay_ml_labels_type(&labels), 1, &rows, &y);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_FLOAT, 2, (int64_t[]){rows, labels.n}, &z);
  if (!st) st = classify(c, &labels, post, &t, base, y, z);
  if (!st && assay_eval_wants(c, 1)) assay_eval_set(c, 1, z);
  assay_tensor_release(z);
  assay_free(base);
  assay_trees_deinit(&t);
  return st;
}

static assay_status_t classify_bound(assay_bound_t* c, const assay_ml_labels_t* labels,
                                     assay_ml_post_t post, const assay_trees_t* t,
                                     const double* base) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  const int64_t n = labels->n;
  const bool binary = is_binary(t, n);
  const bool probability = post == ASSAY_ML_PROBIT || (post == ASSAY_ML_NONE && all_positive(t));
  assay_ml_limits_t limits;
  int64_t rows = 0, features = 0;
  num_t* x = NULL;
  ASSAY_TRY(assay_ml_rows(&e, c->in[0], &rows, &features));
  ASSAY_TRY(assay_ml_limits_begin(c, 1, &limits));
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *x, &x));
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t k = 0; k < n; k++)
      x[k] = gather_numbers(c, &a, t, AGGREGATE_SUM, i * features, k,
                            !base    ? NULL
                            : binary ? base + 1
                                     : base + k);
    if (binary) {
      x[1] = x[0];
      x[0] =
          probability ? assay_number_sub(&a, assay_number_exact(1), x[1]) : assay_number_neg(x[1]);
    }
    const bool certain = assay_ml_top_is_certain(x, n, true);
    assay_ml_post_numbers(&a, post, x, n);
    assay_ml_limits_row(&a, &limits, i, x, certain);
  }
  assay_free(x);
  return NULL;
}

static assay_status_t classifier_bound(assay_bound_t* c) {
  assay_ml_labels_t labels;
  assay_ml_post_t post;
  assay_trees_t t;
  double* base = NULL;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_int64s", "classlabels_strings", &labels));
  ASSAY_TRY(assay_ml_post_read(c->node, &post));
  ASSAY_TRY(assay_trees_read(c->node, "class", &t));
  assay_status_t st = read_class_base(c->node, &t, labels.n, &base);
  if (!st) st = classify_bound(c, &labels, post, &t, base);
  assay_free(base);
  assay_trees_deinit(&t);
  return st;
}

// A comparison a level, levels about the logarithm of the nodes.
static void trees_cost(const assay_eval_t* c, assay_cost_t* out) {
  size_t nodes = 0, roots = 0;
  const assay_tensor_t* x = c->in[0];
  assay_attr_ints(c->node, "nodes_featureids", &nodes);
  assay_attr_ints(c->node, "tree_roots", &roots);
  double trees = roots ? (double)roots : 1 + (double)nodes / 64;
  double rows = x->rank == 2 ? (double)x->dims[0] : 1;
  out->flops = rows * trees * assay_log2(2 + (double)nodes / trees);
}

#define ML(operator, version) .domain = "ai.onnx.ml", .name = operator, .since = version

const assay_op_t assay_ops_ml_trees[] = {
    {ML("TreeEnsemble", 5), .discrete = 1, .infer = ensemble_infer, .eval = ensemble_eval,
     .bound = ensemble_bound, .cost = trees_cost},
    {ML("TreeEnsembleRegressor", 1), .discrete = 1, .infer = regressor_infer,
     .eval = regressor_eval, .bound = regressor_bound, .cost = trees_cost},
    {ML("TreeEnsembleClassifier", 1), .discrete = 3, .infer = classifier_infer,
     .eval = classifier_eval, .bound = classifier_bound, .cost = trees_cost},
    {0}};
