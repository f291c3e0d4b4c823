// Outputs whose elements golden has in another order. The order is read off: which element of truth
// is each of golden's, in all samples. Source: mljar/mljar-supervised issue 245, and any list of
// names that is sorted in one place and not in another.
#include "diagnose/outputs/permuted.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"

enum { MOST = 4096 };

static bool is_comparable(const assay_search_target_t* t) {
  return t->truth && t->golden && t->golden->kind == ASSAY_KIND_TENSOR &&
         t->golden->store == ASSAY_STORE_F64 && t->truth->store == ASSAY_STORE_F64 &&
         assay_tensor_same_shape(t->truth, t->golden);
}

// A target in one sample, with the lengths before, of and after the axis.
typedef struct view {
  const assay_search_target_t* target;
  int64_t outer, n, inner;
  double tolerance;
} view_t;

static view_t view_of(const assay_search_target_t* t, int axis) {
  static const double TIMES = 4, RELATIVE = 1e-6;
  view_t v = {.target = t, .n = t->golden->dims[axis]};
  v.outer = assay_dims_product(t->golden->dims, 0, axis);
  v.inner = assay_dims_product(t->golden->dims, axis + 1, t->golden->rank);
  v.tolerance =
      TIMES * t->explained_max + RELATIVE * assay_difference(t->golden, t->golden).ref_rms;
  return v;
}

static bool is_element(const view_t* v, int64_t golden, int64_t truth) {
  const double *g = assay_f64(v->target->golden), *x = assay_f64(v->target->truth);
  for (int64_t o = 0; o < v->outer; o++)
    for (int64_t i = 0; i < v->inner; i++)
      if (!(fabs(g[(o * v->n + golden) * v->inner + i] - x[(o * v->n + truth) * v->inner + i]) <=
            v->tolerance))
        return false;
  return true;
}

// Element j of golden is element order[j] of truth in all views; each is taken once. False: there
// is no such order, or elements stand where they belong.
static bool find_order(const view_t* views, size_t n_views, bool* taken, int64_t* order) {
  const int64_t n = views[0].n;
  bool moved = false;
  memset(taken, 0, (size_t)n * sizeof *taken);
  for (int64_t j = 0; j < n; j++) {
    int64_t found = -1;
    // Its own place first: elements that are alike stay.
    for (int64_t k = 0; k <= n && found < 0; k++) {
      const int64_t i = k ? k - 1 : j;
      bool fits = !taken[i];
      for (size_t v = 0; v < n_views && fits; v++) fits = is_element(&views[v], j, i);
      if (fits) found = i;
    }
    if (found < 0) return false;
    taken[found] = true;
    order[j] = found;
    moved |= found != j;
  }
  return moved;
}

// What works on each element alone, or on all of the axis alike, has the order of what it reads.
static bool keeps_order(const assay_search_t* s, const assay_node_t* n, int axis, int rank) {
  static const char* const alone[] = {"Sigmoid", "Relu", "Tanh",     "Clip",    "Identity",
                                      "Exp",     "Log",  "Softplus", "Dropout", NULL};
  static const char* const joins[] = {"Mul", "Div", "Add", "Sub", NULL};
  if (*n->domain || !n->n_inputs || !n->inputs[0]) return false;
  for (size_t i = 0; alone[i]; i++)
    if (strcmp(n->op_type, alone[i]) == 0) return true;
  if (strcmp(n->op_type, "Softmax") == 0 || strcmp(n->op_type, "LogSoftmax") == 0) {
    const int64_t at = assay_attr_i64(n, "axis", -1);
    return (at < 0 ? at + rank : at) == axis;
  }
  for (size_t i = 0; joins[i]; i++) {
    if (strcmp(n->op_type, joins[i]) != 0 || n->n_inputs != 2) continue;
    const assay_tensor_t* c = n->inputs[1] && assay_around_is_constant(n->inputs[1])
                                  ? assay_evaluator_get(s->evaluator, n->inputs[1])
                                  : NULL;
    return c && c->size == 1;
  }
  return false;
}

// The last node that gives the elements their order; it makes a value of the target's shape.
static const assay_node_t* maker_of(const assay_search_t* s, const assay_search_target_t* t,
                                    int axis) {
  const assay_node_t* n = t->value->producer;
  while (n && keeps_order(s, n, axis, t->golden->rank)) {
    const assay_node_t* before = n->inputs[0]->producer;
    const assay_tensor_t* x = assay_evaluator_get(s->evaluator, n->inputs[0]);
    if (!before || !x || !assay_tensor_same_shape(x, t->golden)) break;
    n = before;
  }
  return n;
}

static assay_status_t try_order(assay_trials_t* t, const assay_search_target_t* target, int axis,
                                const int64_t* order) {
  enum { SHOWN = 8 };
  const assay_search_t* s = t->s;
  const int64_t n = target->golden->dims[axis];
  const assay_node_t* node = maker_of(s, target, axis);
  size_t position = 0;
  while (position < s->n_nodes && s->nodes[position] != node) position++;
  if (position == s->n_nodes || !node->outputs[0]) return NULL;
  assay_tensor_t* at = NULL;
  assay_repair_t r = {.node = node, .cause = "order of outputs", .n_edits = 1};
  r.edits[0].kind = ASSAY_EDIT_AFTER;
  ASSAY_TRY(assay_tensor_vector_i64(ASSAY_TYPE_INT64, n, order, &at));
  const assay_formula_terms_t terms = {.program = "x gather", .c = at, .axes = {axis}, .n_axes = 1};
  assay_status_t st = assay_formula_create(&terms, &r.edits[0].formula);
  assay_tensor_release(at);
  int used = snprintf(r.text, sizeof r.text, "'%.100s' along axis %d in the order ",
                      node->outputs[0]->name, axis);
  for (int64_t i = 0; i < n && i < SHOWN && used < (int)sizeof r.text - 24; i++)
    used += snprintf(r.text + used, sizeof r.text - (size_t)used, "%s%lld", i ? "," : "",
                     (long long)order[i]);
  if (n > SHOWN) snprintf(r.text + used, sizeof r.text - (size_t)used, " ...");
  t->position = position;
  t->rank = (int)assay_proposal_count();
  if (!st) st = assay_trials_try(t, &r);
  assay_repair_deinit(&r);
  return st;
}

static assay_status_t try_axis(assay_trials_t* t, size_t k, int axis) {
  const assay_search_target_t* target = &t->s->targets[k];
  view_t views[1 + ASSAY_OTHER_SAMPLES];
  size_t n = 0;
  bool* taken = NULL;
  int64_t* order = NULL;
  views[n++] = view_of(target, axis);
  if (views[0].n < 3 || views[0].n > MOST) return NULL;
  for (size_t i = 0; i < t->s->n_others && i < ASSAY_OTHER_SAMPLES; i++) {
    const assay_search_t* other = &t->s->others[i];
    if (k >= other->n_targets || other->targets[k].value != target->value ||
        !is_comparable(&other->targets[k]) || other->targets[k].golden->rank <= axis ||
        other->targets[k].golden->dims[axis] != views[0].n)
      continue;
    views[n++] = view_of(&other->targets[k], axis);
  }
  assay_status_t st = assay_new_array((size_t)views[0].n, sizeof *taken, &taken);
  if (!st) st = assay_new_array((size_t)views[0].n, sizeof *order, &order);
  if (!st && find_order(views, n, taken, order)) st = try_order(t, target, axis, order);
  assay_free(taken);
  assay_free(order);
  return st;
}

assay_status_t assay_search_permuted(assay_trials_t* t) {
  for (size_t k = 0; k < t->s->n_targets && !t->found; k++) {
    const assay_search_target_t* target = &t->s->targets[k];
    if (!is_comparable(target) || !target->value->producer) continue;
    // Axis 0 is the batch.
    for (int axis = target->golden->rank - 1; axis >= 1 && !t->found; axis--)
      ASSAY_TRY(try_axis(t, k, axis));
  }
  return NULL;
}
