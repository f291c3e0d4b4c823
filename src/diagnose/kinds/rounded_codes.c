// Weights that a graph decodes of codes: codes are moved by half a step, and the graph says what
// becomes of that.
#include "diagnose/kinds/rounded_codes.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// DEPTH: nodes between codes and weights. MAX_CODES: arrays of codes that make one weight.
enum { DEPTH = 32, MAX_CODES = 4 };
static const double HALF = 0.5;

// ---- which -------------------------------------------------------------------------------------

typedef struct codes {
  const assay_value_t* at[MAX_CODES];
  size_t n;
} codes_t;

static int64_t size_of(const assay_value_t* v) {
  int64_t dims[ASSAY_MAX_RANK];
  if (!v->type || v->type->kind != ASSAY_KIND_TENSOR || !v->type->has_shape) return -1;
  for (int i = 0; i < v->type->rank; i++)
    if (!assay_dim_value(v->type->dims[i], &dims[i])) return -1;
  return assay_dims_product(dims, 0, v->type->rank);
}

static assay_type_t type_of(const assay_value_t* v) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR ? v->type->elem : ASSAY_TYPE_UNDEFINED;
}

// Whole numbers that become floats; truth values where they are stored: others are choices.
static bool is_of_codes(const assay_node_t* n) {
  const bool casts = !*n->domain && n->n_inputs && n->outputs[0] &&
                     (strcmp(n->op_type, "Cast") == 0 || strcmp(n->op_type, "CastLike") == 0);
  if (!casts || !assay_type_is_float(type_of(n->outputs[0]))) return false;
  const assay_type_t from = type_of(n->inputs[0]);
  return from == ASSAY_TYPE_BOOL ? assay_rounded_constant(n->inputs[0]) != NULL
                                 : assay_type_is_integer(from);
}

static void look_for(const assay_rounded_made_t* m, const assay_value_t* v, int64_t least,
                     int depth, codes_t* out) {
  const assay_node_t* n = v ? v->producer : NULL;
  if (!n || v->constant || !depth || !assay_rounded_is_made(m, v) || out->n == MAX_CODES) return;
  if (is_of_codes(n)) {
    bool known = size_of(v) < least;
    for (size_t i = 0; i < out->n; i++) known |= out->at[i] == v;
    if (!known) out->at[out->n++] = v;
    return;
  }
  for (size_t i = 0; i < n->n_inputs; i++) look_for(m, n->inputs[i], least, depth - 1, out);
}

bool assay_rounded_has_codes(const assay_rounded_made_t* m, const assay_value_t* v, int64_t size) {
  codes_t codes = {0};
  look_for(m, v, size, DEPTH, &codes);
  return codes.n > 0;
}

// ---- what they do ------------------------------------------------------------------------------

// A weight, and what comes of its codes that are moved.
typedef struct decoder {
  assay_rounded_made_t* made;
  const assay_value_t* v;
  const assay_graph_t* graph;
  bool* reached;  // by value id
} decoder_t;

// Runs again what reads these values, of what has been run.
static assay_status_t run_on(decoder_t* d, const assay_value_t* const* from, size_t n_from) {
  assay_rounded_made_t* m = d->made;
  for (size_t i = 0; i < n_from; i++) d->reached[from[i]->id] = true;
  for (size_t i = 0; i < d->graph->n_nodes; i++) {
    const assay_node_t* n = d->graph->nodes[i];
    bool reads = false;
    if (!m->ran[n->id]) continue;
    for (size_t k = 0; k < n->n_inputs; k++) reads |= n->inputs[k] && d->reached[n->inputs[k]->id];
    if (!reads) continue;
    ASSAY_TRY(assay_evaluator_step(m->machine, n));
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) d->reached[n->outputs[k]->id] = true;
  }
  return NULL;
}

static void forget(decoder_t* d) {
  for (size_t i = 0; i < d->graph->n_nodes; i++)
    for (size_t k = 0; k < d->graph->nodes[i]->n_outputs; k++)
      if (d->graph->nodes[i]->outputs[k]) d->reached[d->graph->nodes[i]->outputs[k]->id] = false;
}

static assay_status_t put_moved(decoder_t* d, const assay_value_t* codes, assay_tensor_t* was,
                                double by) {
  assay_tensor_t *wide = NULL, *t = NULL;
  ASSAY_TRY(assay_tensor_widen(was, &wide));
  assay_status_t st = assay_tensor_copy(wide, &t);
  assay_tensor_release(wide);
  if (st) return st;
  for (int64_t i = 0; i < t->size; i++) assay_f64(t)[i] += by;
  assay_evaluator_set(d->made->machine, codes, t);
  assay_tensor_release(t);
  return NULL;
}

// The weight by codes that are moved by so much; all is as it was afterwards.
static assay_status_t decode(decoder_t* d, const codes_t* codes, double by, assay_tensor_t** out) {
  assay_tensor_t* was[MAX_CODES] = {0};
  assay_status_t st = NULL;
  *out = NULL;
  for (size_t i = 0; i < codes->n; i++) {
    was[i] = assay_evaluator_get(d->made->machine, codes->at[i]);
    if (was[i]) assay_tensor_retain(was[i]);
  }
  for (size_t i = 0; !st && i < codes->n; i++)
    if (was[i]) st = put_moved(d, codes->at[i], was[i], by);
  if (!st) st = run_on(d, codes->at, codes->n);
  assay_tensor_t* made = st ? NULL : assay_evaluator_get(d->made->machine, d->v);
  if (made) st = assay_tensor_widen(made, out);
  for (size_t i = 0; i < codes->n; i++) {
    if (was[i]) assay_evaluator_set(d->made->machine, codes->at[i], was[i]);
    assay_tensor_release(was[i]);
  }
  if (!st) st = run_on(d, codes->at, codes->n);
  forget(d);
  if (st) assay_tensor_release(*out), *out = NULL;
  return st;
}

// ---- how far -----------------------------------------------------------------------------------

static bool is_like(const assay_tensor_t* y, const assay_tensor_t* t) {
  if (!y || !assay_tensor_same_shape(y, t) || y->store != ASSAY_STORE_F64) return false;
  for (int64_t i = 0; i < y->size; i++)
    if (!isfinite(assay_f64(y)[i])) return false;
  return true;
}

// What half a step of codes does, up and down, on average; *out NULL: nothing, or nothing known.
static assay_status_t reach_of(decoder_t* d, const codes_t* codes, const assay_tensor_t* t,
                               assay_tensor_t** out) {
  assay_tensor_t *up = NULL, *down = NULL, *reach = NULL;
  double sum = 0;
  *out = NULL;
  assay_status_t st = decode(d, codes, HALF, &up);
  if (!st) st = decode(d, codes, -HALF, &down);
  if (!st && is_like(up, t) && is_like(down, t)) st = assay_tensor_copy(up, &reach);
  for (int64_t i = 0; reach && i < t->size; i++) {
    const double x = assay_f64(t)[i];
    assay_f64(reach)[i] = 0.5 * (fabs(assay_f64(up)[i] - x) + fabs(assay_f64(down)[i] - x));
    sum += assay_f64(reach)[i];
  }
  assay_tensor_release(up);
  assay_tensor_release(down);
  if (sum > 0)
    *out = reach;
  else
    assay_tensor_release(reach);
  return st;
}

static double total(const assay_tensor_t* t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++) sum += fabs(assay_f64(t)[i]);
  return sum;
}

// Whether two arrays of codes are added: what both do is what each does.
static assay_status_t are_added(decoder_t* d, const assay_value_t* a, const assay_value_t* b,
                                const assay_tensor_t* t, bool* out) {
  static const double SAME = 1e-6;
  const codes_t codes[3] = {{{a}, 1}, {{b}, 1}, {{a, b}, 2}};
  assay_tensor_t* y[3] = {0};
  assay_status_t st = NULL;
  double mixed = 0, all = 0;
  *out = false;
  for (int k = 0; !st && k < 3; k++) st = decode(d, &codes[k], HALF, &y[k]);
  const bool known = !st && is_like(y[0], t) && is_like(y[1], t) && is_like(y[2], t);
  for (int64_t i = 0; known && i < t->size; i++) {
    const double x = assay_f64(t)[i], by_a = assay_f64(y[0])[i] - x, by_b = assay_f64(y[1])[i] - x;
    mixed += fabs(assay_f64(y[2])[i] - x - by_a - by_b);
    all += fabs(by_a) + fabs(by_b);
  }
  *out = known && mixed <= SAME * all;
  for (int k = 0; k < 3; k++) assay_tensor_release(y[k]);
  return st;
}

// Codes of two numbers say a sign where others say how large.
static bool is_sign(const decoder_t* d, const assay_value_t* codes) {
  const assay_tensor_t* t = assay_evaluator_get(d->made->machine, codes);
  double low = (double)INFINITY, high = -(double)INFINITY;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return false;
  for (int64_t i = 0; i < t->size; i++) {
    low = fmin(low, assay_tensor_element(t, i));
    high = fmax(high, assay_tensor_element(t, i));
  }
  for (int64_t i = 0; i < t->size; i++) {
    const double x = assay_tensor_element(t, i);
    if (x != low && x != high) return false;
  }
  return true;
}

// Which of two arrays of codes was rounded last.
static assay_status_t is_last(decoder_t* d, const assay_value_t* a, const assay_tensor_t* by_a,
                              const assay_value_t* b, const assay_tensor_t* by_b,
                              const assay_tensor_t* t, bool* out_b) {
  bool added = false;
  ASSAY_TRY(are_added(d, a, b, t, &added));
  const bool sign_a = is_sign(d, a), sign_b = is_sign(d, b);
  if (added)
    *out_b = total(by_b) < total(by_a);  // what was left of the other
  else if (sign_a != sign_b)
    *out_b = sign_a;
  else
    *out_b = total(by_b) > total(by_a);  // scales are finer
  return NULL;
}

static assay_status_t choose(decoder_t* d, const codes_t* codes, const assay_tensor_t* t,
                             assay_tensor_t** out) {
  const assay_value_t* last = NULL;
  for (size_t i = 0; i < codes->n; i++) {
    const codes_t one = {{codes->at[i]}, 1};
    assay_tensor_t* reach = NULL;
    bool later = true;
    ASSAY_TRY(reach_of(d, &one, t, &reach));
    if (!reach) continue;
    assay_status_t st = NULL;
    if (last) st = is_last(d, last, *out, codes->at[i], reach, t, &later);
    if (st || !later) {
      assay_tensor_release(reach);
      if (st) return st;
      continue;
    }
    assay_tensor_release(*out);
    *out = reach;
    last = codes->at[i];
  }
  return NULL;
}

assay_status_t assay_rounded_codes_reach(assay_rounded_made_t* m, const assay_value_t* v,
                                         const assay_tensor_t* t, assay_tensor_t** out) {
  decoder_t d = {.made = m, .v = v};
  codes_t codes = {0};
  *out = NULL;
  look_for(m, v, t->size, DEPTH, &codes);
  if (!codes.n || t->store != ASSAY_STORE_F64) return NULL;
  d.graph = v->producer->graph;
  ASSAY_TRY(assay_new_array(m->n_values + 1, sizeof *d.reached, &d.reached));
  assay_status_t st = choose(&d, &codes, t, out);
  assay_free(d.reached);
  if (st) assay_tensor_release(*out), *out = NULL;
  // What cannot be decoded so says nothing.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
