// Golden whose elements along an axis are those of truth, in another order.
//
// Labels that were sorted by their names (10 before 2), outputs that were joined in another order:
// each element of golden is one of truth in all rows of all samples, and tells its place by itself.
#include "diagnose/outputs/permuted.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { LEAST = 3, MOST = 4096, ROW = 900 };  // elements of an axis; after all rows of the table

// ---- the order ----------------------------------------------------------------------------------

static bool is_fit(const assay_search_target_t* g) {
  const assay_tensor_t *a = g->truth, *b = g->golden;
  return a && b && a->kind == ASSAY_KIND_TENSOR && a->store == ASSAY_STORE_F64 &&
         b->store == ASSAY_STORE_F64 && assay_tensor_same_shape(a, b);
}

// How far element j of truth is from element i of golden, at most.
static double distance(const assay_search_target_t* g, int axis, int64_t i, int64_t j) {
  const int64_t inner = assay_dims_product(g->truth->dims, axis + 1, g->truth->rank);
  const int64_t d = g->truth->dims[axis];
  double far = 0;
  for (int64_t o = 0; o < g->truth->size / inner / d; o++)
    for (int64_t k = 0; k < inner; k++) {
      const double difference = assay_f64(g->golden)[(o * d + i) * inner + k] -
                                assay_f64(g->truth)[(o * d + j) * inner + k];
      far = fmax(far, difference == difference ? fabs(difference) : HUGE_VAL);
    }
  return far;
}

// The same over all samples, over what rounding explains there.
static double distance_in_all(const assay_search_t* s, size_t target, int axis, int64_t i,
                              int64_t j) {
  static const double SMALLEST = 1e-12;
  double far = 0;
  for (size_t o = 0; o <= s->n_others; o++) {
    const assay_search_target_t* g = o ? &s->others[o - 1].targets[target] : &s->targets[target];
    if (!is_fit(g) || g->truth->rank <= axis || g->truth->dims[axis] <= i ||
        g->truth->dims[axis] <= j)
      return HUGE_VAL;
    far = fmax(far, distance(g, axis, i, j) / fmax(g->explained_max, SMALLEST));
  }
  return far;
}

// *out_ok: each element of golden is one of truth, each another, and not all their own.
static assay_status_t find_order(const assay_search_t* s, size_t target, int axis, int64_t* order,
                                 bool* out_ok) {
  const int64_t n = s->targets[target].golden->dims[axis];
  bool *taken = NULL, moved = false, ok = true;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *taken, &taken));
  for (int64_t i = 0; ok && i < n; i++) {
    // Its own place first: what is alike stays.
    int64_t found = distance_in_all(s, target, axis, i, i) <= 1 && !taken[i] ? i : -1;
    for (int64_t j = 0; found < 0 && j < n; j++)
      if (!taken[j] && distance_in_all(s, target, axis, i, j) <= 1) found = j;
    ok = found >= 0;
    if (ok) taken[found] = true, order[i] = found, moved |= found != i;
  }
  assay_free(taken);
  *out_ok = ok && moved;
  return NULL;
}

// ---- the repair ---------------------------------------------------------------------------------

// The node whose numbers the target has, where what follows handles each element by itself.
static const assay_node_t* maker_of(const assay_value_t* v) {
  const assay_node_t* n = v->producer;
  while (n && n->n_inputs && n->inputs[0] && n->inputs[0]->producer && n->n_outputs == 1) {
    const bool alone = n->n_inputs == 1 && n->op && n->op->flags & ASSAY_OP_POINTWISE;
    const bool softmax = strcmp(n->op_type, "Softmax") == 0 || strcmp(n->op_type, "Identity") == 0;
    if (*n->domain || (!alone && !softmax)) break;
    n = n->inputs[0]->producer;
  }
  return n;
}

static assay_status_t make_repair(const assay_node_t* n, const int64_t* order, int64_t count,
                                  int axis, assay_repair_t* out) {
  char shown[120];
  int64_t dims[] = {count};
  assay_tensor_t* c = NULL;
  *out = (assay_repair_t){.node = n, .cause = "order of classes or channels", .n_edits = 1};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, dims, &c));
  memcpy(assay_i64(c), order, (size_t)count * sizeof *order);
  const assay_formula_terms_t terms = {.program = "x gather", .c = c, .axes = {axis}, .n_axes = 1};
  out->edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_AFTER};
  assay_status_t st = assay_formula_create(&terms, &out->edits[0].formula);
  assay_tensor_release(c);
  if (st) return out->n_edits = 0, st;
  assay_order_text(order, count, shown, sizeof shown);
  snprintf(out->text, sizeof out->text, "elements of axis %d in the order %s", axis, shown);
  return NULL;
}

static size_t position_of(const assay_search_t* s, const assay_node_t* n) {
  size_t i = 0;
  while (i < s->n_nodes && s->nodes[i] != n) i++;
  return i;
}

static assay_status_t try_axis(assay_trials_t* t, size_t target, int axis) {
  const assay_search_target_t* g = &t->s->targets[target];
  const int64_t n = g->golden->dims[axis];
  const assay_node_t* maker = maker_of(g->value);
  int64_t* order = NULL;
  assay_repair_t r = {.n_edits = 0};
  bool ok = false;
  if (n < LEAST || n > MOST || !maker || position_of(t->s, maker) == t->s->n_nodes) return NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *order, &order));
  assay_status_t st = find_order(t->s, target, axis, order, &ok);
  if (!st && ok) st = make_repair(maker, order, n, axis, &r);
  if (!st && ok) {
    t->position = position_of(t->s, maker);
    t->rank = ROW;
    st = assay_trials_try(t, &r);
  }
  assay_repair_deinit(&r);
  assay_free(order);
  return st;
}

assay_status_t assay_search_permuted(assay_trials_t* t, double end) {
  for (size_t k = 0; k < t->s->n_targets && !t->found; k++)
    for (int axis = 0; is_fit(&t->s->targets[k]) && axis < t->s->targets[k].truth->rank; axis++)
      if (!t->found) ASSAY_TRY(try_axis(t, k, axis));
  return t->found ? NULL : assay_search_orders(t, end);
}
