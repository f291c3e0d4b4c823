// The columns that a model reads, in another order than its first layer's weights have them.
//
// No list of orders would do: names are sorted in one place and not in another. Two columns are
// exchanged as long as that brings all samples nearer to golden; where nothing does, a few at
// random (H. R. Lourenco et al., Iterated local search, 2003). Sources: csinva/imodels issue 290,
// tables of which a framework keeps columns by name.
#include "diagnose/outputs/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/causes/surroundings.h"

enum { FEWEST = 3, MOST = 64, KICK = 3, LARGEST = 1 << 18 };

typedef struct climb {
  assay_trials_t* t;
  const assay_node_t* node;
  size_t position;
  assay_tensor_t* weight;  // as it is
  int axis;                // that its columns are along
  int64_t n;
  int64_t order[MOST], best[MOST];
  double least;
  double end;
  uint64_t draws;
} climb_t;

// Works on each column alone.
static bool is_pointwise(const assay_node_t* n) {
  static const char* const names[] = {
      "Sub", "Div", "Mul", "Add", "Cast", "Identity", "Dropout", "Clip", "BatchNormalization"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!*n->domain && strcmp(n->op_type, names[i]) == 0) return true;
  return false;
}

static bool is_near_input(const assay_value_t* v) {
  enum { HOPS = 6 };
  for (int i = 0; v && i < HOPS; i++) {
    const assay_node_t* n = v->producer;
    if (!n) return !v->constant;
    if (!is_pointwise(n)) return false;
    const size_t at = assay_around_data_input(n);
    v = at < n->n_inputs ? n->inputs[at] : NULL;
  }
  return false;
}

// The axis of a weight, which is input 1, that what the node reads is summed along; -1: there is
// none.
static int columns_axis(const assay_node_t* n, const assay_tensor_t* w) {
  if (*n->domain) return -1;
  if (strcmp(n->op_type, "MatMul") == 0) return w->rank == 2 ? 0 : -1;
  if (strcmp(n->op_type, "Gemm") == 0)
    return w->rank == 2 && !assay_attr_i64(n, "transA", 0)
               ? (assay_attr_i64(n, "transB", 0) ? 1 : 0)
               : -1;
  if (strcmp(n->op_type, "Conv") == 0)
    return w->rank > 2 && assay_attr_i64(n, "group", 1) == 1 ? 1 : -1;
  return -1;
}

static assay_status_t permute(const climb_t* c, assay_tensor_t** out) {
  const assay_tensor_t* w = c->weight;
  const int64_t inner = assay_dims_product(w->dims, c->axis + 1, w->rank);
  const int64_t outer = assay_dims_product(w->dims, 0, c->axis);
  ASSAY_TRY(assay_tensor_create(w->type, w->rank, w->dims, out));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < c->n; k++)
      memcpy(assay_f64(*out) + (o * c->n + k) * inner,
             assay_f64(w) + (o * c->n + c->order[k]) * inner, (size_t)inner * sizeof(double));
  return NULL;
}

static void write_text(const climb_t* c, assay_repair_t* r) {
  enum { SHOWN = 12 };
  int used = snprintf(r->text, sizeof r->text, "'%.100s' along axis %d in the order ",
                      c->node->inputs[1]->name, c->axis);
  for (int64_t i = 0; i < c->n && i < SHOWN && used < (int)sizeof r->text - 24; i++)
    used += snprintf(r->text + used, sizeof r->text - (size_t)used, "%s%lld", i ? "," : "",
                     (long long)c->order[i]);
  if (c->n > SHOWN) snprintf(r->text + used, sizeof r->text - (size_t)used, " ...");
}

// What the order leaves of the difference, over all samples.
static assay_status_t ask(climb_t* c, double* out) {
  assay_trials_t* t = c->t;
  assay_repair_t r = {.node = c->node, .cause = "order of columns", .n_edits = 1};
  double left = 0;
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 1};
  ASSAY_TRY(permute(c, &r.edits[0].tensor));
  write_text(c, &r);
  t->position = c->position;
  t->rank = (int)assay_proposal_count();
  assay_status_t st = assay_trials_try(t, &r);
  left = t->remains * t->remains * t->before;
  for (size_t i = 0; !st && !t->found && i < t->s->n_others; i++) {
    assay_trials_t* other = &t->others[i];
    other->position = c->position;
    st = assay_trials_try(other, &r);
    left += other->remains * other->remains * other->before;
  }
  assay_repair_deinit(&r);
  *out = isfinite(left) ? left : HUGE_VAL;
  return st;
}

static void exchange(climb_t* c, int64_t i, int64_t k) {
  const int64_t x = c->order[i];
  c->order[i] = c->order[k];
  c->order[k] = x;
}

static bool is_over(const climb_t* c) { return c->t->found || assay_clock_seconds() > c->end; }

// Takes every exchange that leaves less, until none does. *left: what the order leaves.
static assay_status_t descend(climb_t* c, double* left) {
  for (bool any = true; any && !is_over(c);) {
    any = false;
    for (int64_t i = 0; i < c->n && !is_over(c); i++)
      for (int64_t k = i + 1; k < c->n && !is_over(c); k++) {
        double now;
        exchange(c, i, k);
        ASSAY_TRY(ask(c, &now));
        if (now < *left * (1 - 1e-9))
          *left = now, any = true;
        else
          exchange(c, i, k);
      }
  }
  return NULL;
}

// Source: splitmix64 (S. Vigna).
static int64_t draw(climb_t* c) {
  uint64_t x = c->draws += 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return (int64_t)((x ^ x >> 31) % (uint64_t)c->n);
}

// An order that hardly brings golden nearer is not what is wrong: no second attempt.
static const double HELPS = 0.5;

static assay_status_t climb(climb_t* c) {
  double left = HUGE_VAL, before = 0;
  for (int64_t k = 0; k < c->n; k++) c->order[k] = c->best[k] = k;
  before += c->t->before;
  for (size_t i = 0; i < c->t->s->n_others; i++) before += c->t->others[i].before;
  left = c->least = before;
  ASSAY_TRY(descend(c, &left));
  while (!is_over(c) && fmin(left, c->least) < HELPS * HELPS * before) {
    if (left < c->least) {
      c->least = left;
      memcpy(c->best, c->order, (size_t)c->n * sizeof *c->order);
    }
    memcpy(c->order, c->best, (size_t)c->n * sizeof *c->order);
    for (int i = 0; i < KICK; i++) exchange(c, draw(c), draw(c));
    ASSAY_TRY(ask(c, &left));
    ASSAY_TRY(descend(c, &left));
  }
  return NULL;
}

static assay_status_t try_node(assay_trials_t* t, size_t position, double end) {
  const assay_node_t* n = t->s->nodes[position];
  climb_t c = {.t = t, .node = n, .position = position, .end = end};
  if (n->n_inputs < 2 || !n->inputs[0] || !assay_around_is_constant(n->inputs[1])) return NULL;
  assay_tensor_t* w = assay_evaluator_get(t->s->evaluator, n->inputs[1]);
  if (!w || !assay_type_is_float(w->type) || w->size > LARGEST) return NULL;
  c.axis = columns_axis(n, w);
  if (c.axis < 0 || !is_near_input(n->inputs[0])) return NULL;
  c.n = w->dims[c.axis];
  if (c.n < FEWEST || c.n > MOST) return NULL;
  ASSAY_TRY(assay_tensor_widen(w, &c.weight));
  assay_status_t st = climb(&c);
  assay_tensor_release(c.weight);
  return st;
}

assay_status_t assay_search_columns(assay_trials_t* t, double end) {
  for (size_t i = 0; i < t->s->n_nodes && !t->found; i++) {
    const double now = assay_clock_seconds();
    if (now > end) break;
    ASSAY_TRY(try_node(t, i, now + (end - now) / 2));
  }
  return NULL;
}
