// What a repair will do to the targets, predicted to first order from what it does to its own node.
#include "diagnose/search_predict.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/spill.h"
#include "diagnose/repair_chain.h"
#include "eval/gradients/vjp.h"

typedef enum state {
  NOTHING = 0,  // the targets do not depend on it
  KNOWN,
  UNKNOWN,  // an operator after it has no rule
} state_t;

enum { CACHED = 64 };
static const double CACHE_BYTES = 0x1p29;

struct assay_predict {
  const assay_search_t* s;
  double residual;    // <r, r>
  double* overlaps;   // <p, r> / <r, r> of the random signs, before they are put at right angles
  double** adjoints;  // by value id: ASSAY_PROBES blocks of its elements; NULL: nothing, or unknown
  assay_spilled_t** spilled;  // by value id: whose the block is, where it lies in a file
  unsigned char* states;
  bool* data;  // by value id: made from the model's inputs, not from constants and shapes alone
  bool blind;  // a node with a body, which may read anything, was passed
  // Values after the pass whose adjoints are still there, a ring: the oldest first.
  struct {
    const assay_value_t* value;
    size_t position;
    double bytes;
  } cached[CACHED];
  size_t first_cached, n_cached;
  double cached_bytes;
};

// ---- probes -------------------------------------------------------------------------------------

static bool is_float_tensor(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static bool same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// Random signs that are the same in every run: of element i of a stream, for probe p. Source:
// splitmix64 (S. Vigna).
static double random_sign(uint64_t stream, int64_t i, int probe) {
  uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15U + (uint64_t)probe * 0xd1b54a32d192ed03U + stream;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return (x ^ x >> 31) & 1 ? 1 : -1;
}

// Each element counts by one over the size of its target's golden; of truth's where golden is all
// 0.
static double weight_of(const assay_search_target_t* t) {
  const double golden = assay_difference(t->golden, t->golden).ref_rms;
  const double size = golden > 0 ? golden : assay_difference(t->truth, t->truth).ref_rms;
  return 1 / fmax(size * sqrt((double)t->golden->size + 1), 1e-100);
}

// The targets' adjoints: the probes, in the targets' own units.
static assay_status_t set_target(assay_predict_t* p, size_t k, double* overlaps) {
  const assay_search_target_t* t = &p->s->targets[k];
  const int64_t n = t->golden->size;
  const double w = weight_of(t);
  double* to = NULL;
  if (p->adjoints[t->value->id]) return NULL;  // the same value twice
  ASSAY_TRY(assay_new_array((size_t)n * ASSAY_PROBES, sizeof *to, &to));
  for (int64_t i = 0; i < n; i++) {
    const double r = w * (assay_f64(t->truth)[i] - assay_f64(t->golden)[i]);
    if (!isfinite(r)) continue;
    p->residual += r * r;
    to[i] = w * r;
    for (int q = 1; q < ASSAY_PROBES; q++) {
      const double sign = random_sign(k + p->s->draw * 0x2545f4914f6cdd1dU, i, q);
      to[q * n + i] = w * sign;
      overlaps[q - 1] += sign * r;
    }
  }
  p->adjoints[t->value->id] = to;
  p->states[t->value->id] = KNOWN;
  return NULL;
}

static bool is_target(const assay_predict_t* p, const assay_value_t* v) {
  for (size_t k = 0; k < p->s->n_targets; k++)
    if (p->s->targets[k].value == v) return true;
  return false;
}

static bool is_comparable(const assay_search_t* s) {
  bool any = false;
  for (size_t k = 0; k < s->n_targets; k++) {
    const assay_search_target_t* t = &s->targets[k];
    if (!t->truth || t->truth->kind != t->golden->kind) return false;
    if (t->truth->store != t->golden->store || !same_shape(t->truth, t->golden)) return false;
    any |= is_float_tensor(t->golden);
  }
  return any;
}

// What is made from constants and shapes alone has an adjoint where all rules after it know their
// parameters: of others, it would be lost for their data.
static void mark_data(assay_predict_t* p) {
  const assay_graph_t* g = p->s->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++) p->data[g->inputs[i]->id] = !g->inputs[i]->constant;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    bool any = n->op && n->op->flags & ASSAY_OP_CONTROL;
    for (size_t k = 0; k < n->n_inputs; k++) any |= n->inputs[k] && p->data[n->inputs[k]->id];
    if (strcmp(n->op_type, "Shape") == 0 || strcmp(n->op_type, "Size") == 0) any = false;
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) p->data[n->outputs[k]->id] = any;
  }
}

assay_status_t assay_predict_create(const assay_search_t* s, assay_predict_t** out) {
  const size_t values = (size_t)s->model->n_values;
  assay_predict_t* p = NULL;
  *out = NULL;
  if (!is_comparable(s)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&p));
  p->s = s;
  assay_status_t st = assay_new_array(ASSAY_PROBES - 1, sizeof *p->overlaps, &p->overlaps);
  if (!st) st = assay_new_array(values, sizeof *p->adjoints, &p->adjoints);
  if (!st) st = assay_new_array(values, sizeof *p->spilled, &p->spilled);
  if (!st) st = assay_new_array(values, sizeof *p->states, &p->states);
  if (!st) st = assay_new_array(values, sizeof *p->data, &p->data);
  if (!st) mark_data(p);
  for (size_t k = 0; !st && k < s->n_targets; k++)
    if (is_float_tensor(s->targets[k].golden)) st = set_target(p, k, p->overlaps);
  if (st || !(p->residual > 0)) return assay_predict_destroy(p), st;
  for (int q = 0; q < ASSAY_PROBES - 1; q++) p->overlaps[q] /= p->residual;
  *out = p;
  return NULL;
}

static void free_adjoint(assay_predict_t* p, size_t id) {
  if (p->spilled && p->spilled[id]) {
    assay_spilled_release(p->spilled[id]);
    p->spilled[id] = NULL;
  } else {
    assay_free(p->adjoints[id]);
  }
  p->adjoints[id] = NULL;
}

void assay_predict_destroy(assay_predict_t* p) {
  if (!p) return;
  for (size_t i = 0; p->adjoints && i < (size_t)p->s->model->n_values; i++) free_adjoint(p, i);
  assay_free(p->adjoints);
  assay_free(p->spilled);
  assay_free(p->states);
  assay_free(p->data);
  assay_free(p->overlaps);
  assay_free(p);
}

// ---- forecasts ----------------------------------------------------------------------------------

// Strides of a tensor laid under another one's shape; false if it is not broadcast to it.
static bool lies_under(const assay_tensor_t* a, const assay_tensor_t* b, int64_t* strides) {
  if (a->rank > b->rank || a->size > b->size) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i + b->rank - a->rank] && a->dims[i] != 1) return false;
  assay_broadcast_strides(a, b->rank, b->dims, strides);
  return true;
}

enum { BLOCK = 1024, LANES = 8 };  // of differences; of sums side by side

// products[q] += <g_q, d> for all probes, n elements from `first` on of `size`.
static void add_block(const double* g, int64_t size, int64_t first, int64_t n, const double* d,
                      double* products) {
  for (int q = 0; q < ASSAY_PROBES; q++) {
    const double* x = g + q * size + first;
    double sums[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
      for (int k = 0; k < LANES; k++) sums[k] += x[i + k] * d[i + k];
    for (; i < n; i++) sum += x[i] * d[i];
    for (int k = 0; k < LANES; k++) sum += sums[k];
    products[q] += sum;
  }
}

// <g, now - was> for all probes; strides lay `now` under the shape of `was`.
static void multiply(const double* g, const assay_tensor_t* now, const assay_tensor_t* was,
                     const int64_t* strides, double* products) {
  const double *a = assay_f64(now), *b = assay_f64(was);
  const bool same = now->size == was->size;
  int64_t at[ASSAY_MAX_RANK] = {0}, from = 0;
  double d[BLOCK];
  for (int64_t first = 0; first < was->size; first += BLOCK) {
    const int64_t n = was->size - first < BLOCK ? was->size - first : BLOCK;
    for (int64_t i = 0; same && i < n; i++) d[i] = a[first + i] - b[first + i];
    for (int64_t i = 0; !same && i < n; i++) {
      d[i] = a[from] - b[first + i];
      for (int k = was->rank - 1; k >= 0; k--) {
        from += strides[k];
        if (++at[k] < was->dims[k]) break;
        from -= strides[k] * was->dims[k];
        at[k] = 0;
      }
    }
    add_block(g, was->size, first, n, d, products);
  }
}

void assay_predict_products(const assay_predict_t* p, const double* derivatives,
                            const assay_tensor_t* now, const assay_tensor_t* was,
                            assay_forecast_t* forecast) {
  double products[ASSAY_PROBES] = {0};
  int64_t strides[ASSAY_MAX_RANK];
  if (!is_float_tensor(now) || !is_float_tensor(was) || !lies_under(now, was, strides)) {
    forecast->known = false;
    return;
  }
  multiply(derivatives, now, was, strides, products);
  forecast->along += products[0] / p->residual;
  for (int q = 1; q < ASSAY_PROBES; q++)
    forecast->across[q - 1] += (products[q] - p->overlaps[q - 1] * products[0]) / sqrt(p->residual);
  for (int q = 0; q < ASSAY_PROBES; q++) forecast->known &= isfinite(products[q]) != 0;
}

void assay_predict_add(const assay_predict_t* p, const assay_value_t* v, const assay_tensor_t* now,
                       const assay_tensor_t* was, assay_forecast_t* forecast) {
  if (p->states[v->id] == NOTHING && !p->blind) return;
  if (p->blind || p->states[v->id] != KNOWN)
    forecast->known = false;
  else
    assay_predict_products(p, p->adjoints[v->id], now, was, forecast);
}

const double* assay_predict_derivatives(const assay_predict_t* p, const assay_value_t* v) {
  return p->blind || p->states[v->id] != KNOWN ? NULL : p->adjoints[v->id];
}

double assay_predict_overlap(const assay_predict_t* p, int probe) {
  return probe ? p->overlaps[probe - 1] * p->residual : p->residual;
}

static double across_square(const assay_forecast_t* f) {
  double sum = 0;
  for (int q = 0; q < ASSAY_PROBES - 1; q++) sum += f->across[q] * f->across[q];
  return sum / (ASSAY_PROBES - 1);
}

double assay_forecast_remains(const assay_forecast_t* f) {
  if (!f->known) return (double)NAN;
  return sqrt((1 + f->along) * (1 + f->along) + across_square(f));
}

// min over a of |r + a J d| / |r|.
double assay_forecast_best(const assay_forecast_t* f) {
  if (!f->known) return (double)NAN;
  const double across = across_square(f), all = f->along * f->along + across;
  return all > 0 ? sqrt(across / all) : 1;
}

// ---- the pass -----------------------------------------------------------------------------------

static void drop(assay_predict_t* p, const assay_value_t* v) {
  free_adjoint(p, (size_t)v->id);
  p->states[v->id] = NOTHING;
}

// A float that changes with a repair of some node before, and whose adjoint is not given.
static bool carries(const assay_predict_t* p, const assay_value_t* v, const assay_tensor_t* t) {
  return v && !v->constant && v->producer && is_float_tensor(t) && !is_target(p, v);
}

typedef struct pass {
  assay_tensor_t **in, **out;
  const double** out_g;
  double** in_g;
} pass_t;

// Whether a node is as it is in the model but for its constants: its rule holds then, too.
static bool has_own_rule(const assay_predict_t* p, const assay_node_t* n) {
  const assay_repair_t* r = assay_search_adopted(p->s, n);
  for (size_t i = 0; r && i < r->n_edits; i++)
    if (r->edits[i].kind != ASSAY_EDIT_CONSTANT || r->edits[i].input >= n->n_inputs) return false;
  return true;
}

// A sum with a constant behind a node whose rule does not look at what it gives.
static bool is_sum_behind(const assay_node_t* n, const assay_repair_edit_t* e) {
  return e->kind == ASSAY_EDIT_CHAIN && !e->at_input && e->n_chain == 1 && e->chain[0].op_type &&
         strcmp(e->chain[0].op_type, "Add") == 0 &&
         e->chain[0].of[1].kind == ASSAY_OPERAND_TENSOR && strcmp(n->op_type, "Conv") == 0;
}

// The same but for what is put in front of an input, which the rule gets, and for a sum behind it.
static bool reads_as_adopted(const assay_predict_t* p, const assay_node_t* n) {
  const assay_repair_t* r = assay_search_adopted(p->s, n);
  if (has_own_rule(p, n)) return true;
  if (r->edits[0].kind != ASSAY_EDIT_CHAIN || !r->edits[0].at_input ||
      r->edits[0].input >= n->n_inputs)
    return false;
  return r->n_edits == 1 || (r->n_edits == 2 && is_sum_behind(n, &r->edits[1]));
}

static assay_status_t take_chain(const assay_predict_t* p, const assay_node_t* n, pass_t* a) {
  const assay_repair_t* r = assay_search_adopted(p->s, n);
  assay_tensor_t* made = NULL;
  if (has_own_rule(p, n) || !reads_as_adopted(p, n)) return NULL;
  const size_t input = r->edits[0].input;
  ASSAY_TRY(assay_chain_evaluate(p->s->evaluator, n, &r->edits[0], n->n_inputs, a->in, a->in[input],
                                 &made));
  assay_tensor_release(a->in[input]);
  a->in[input] = NULL;
  assay_status_t st = assay_tensor_widen(made, &a->in[input]);
  assay_tensor_release(made);
  return st;
}

// The constants that a repair which is taken as made gives the node.
static void take_adopted(const assay_predict_t* p, const assay_node_t* n, pass_t* a) {
  const assay_repair_t* r = has_own_rule(p, n) ? assay_search_adopted(p->s, n) : NULL;
  for (size_t i = 0; r && i < r->n_edits; i++) {
    assay_tensor_release(a->in[r->edits[i].input]);
    a->in[r->edits[i].input] = assay_tensor_retain(r->edits[i].tensor);
  }
}

static assay_status_t pass_init(const assay_predict_t* p, const assay_node_t* n, pass_t* a) {
  ASSAY_TRY(assay_new_array(n->n_inputs, sizeof *a->in, &a->in));
  ASSAY_TRY(assay_new_array(n->n_outputs, sizeof *a->out, &a->out));
  ASSAY_TRY(assay_new_array(n->n_outputs, sizeof *a->out_g, &a->out_g));
  ASSAY_TRY(assay_new_array(n->n_inputs, sizeof *a->in_g, &a->in_g));
  for (size_t i = 0; i < n->n_inputs; i++) {
    assay_tensor_t* t = n->inputs[i] ? assay_evaluator_get(p->s->evaluator, n->inputs[i]) : NULL;
    if (t) ASSAY_TRY(assay_tensor_widen(t, &a->in[i]));
  }
  take_adopted(p, n, a);
  ASSAY_TRY(take_chain(p, n, a));
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v) continue;
    assay_tensor_t* t = assay_evaluator_get(p->s->evaluator, v);
    for (size_t k = 0; k < p->s->n_targets; k++)
      if (p->s->targets[k].value == v) t = p->s->targets[k].truth;
    if (t) ASSAY_TRY(assay_tensor_widen(t, &a->out[i]));
    a->out_g[i] = p->adjoints[v->id];
  }
  return NULL;
}

static void pass_deinit(const assay_node_t* n, pass_t* a) {
  for (size_t i = 0; a->in && i < n->n_inputs; i++) assay_tensor_release(a->in[i]);
  for (size_t i = 0; a->out && i < n->n_outputs; i++) assay_tensor_release(a->out[i]);
  assay_free(a->in);
  assay_free(a->out);
  assay_free(a->out_g);
  assay_free(a->in_g);
}

static void forget_inputs(assay_predict_t* p, const assay_node_t* n, const pass_t* a) {
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (!carries(p, n->inputs[i], a->in[i])) continue;
    drop(p, n->inputs[i]);
    p->states[n->inputs[i]->id] = UNKNOWN;
  }
}

// Whether the rule of a node knows how it moves with its weights, too.
static bool knows_weights(const assay_node_t* n) {
  static const char* const names[] = {"Conv", "MatMul", "Gemm"};
  for (size_t i = 0; !*n->domain && i < sizeof names / sizeof *names; i++)
    if (strcmp(n->op_type, names[i]) == 0) return true;
  return n->op && n->op->flags & ASSAY_OP_POINTWISE && !(n->op->flags & ASSAY_OP_QUANTIZES);
}

// Room for the adjoints of the inputs; those that are unknown already stay so. Weights that nodes
// make from constants are followed by rules that know them.
static assay_status_t want_inputs(assay_predict_t* p, const assay_node_t* n, pass_t* a,
                                  bool* out_any) {
  *out_any = false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (!carries(p, v, a->in[i]) || p->states[v->id] == UNKNOWN) continue;
    if (!p->data[v->id] && !knows_weights(n)) {
      p->states[v->id] = UNKNOWN;
      continue;
    }
    double** to = &p->adjoints[v->id];
    if (!*to) ASSAY_TRY(assay_new_array((size_t)a->in[i]->size * ASSAY_PROBES, sizeof **to, to));
    p->states[v->id] = KNOWN;
    a->in_g[i] = *to;
    *out_any = true;
  }
  return NULL;
}

static assay_status_t run_vjp(const assay_predict_t* p, const assay_node_t* n, pass_t* a,
                              bool* out_known) {
  *out_known = false;
  const assay_vjp_t c = {.evaluator = p->s->evaluator,
                         .node = n,
                         .n_in = n->n_inputs,
                         .n_out = n->n_outputs,
                         .in = a->in,
                         .out = a->out,
                         .probes = ASSAY_PROBES,
                         .out_g = a->out_g,
                         .in_g = a->in_g};
  assay_status_t st = assay_vjp_run(&c, out_known);
  // What cannot be evaluated has no rule; a search goes on without.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
    assay_status_free(st), st = NULL, *out_known = false;
  return st;
}

static assay_status_t run_rule(assay_predict_t* p, const assay_node_t* n, pass_t* a) {
  bool any = false, known = false;
  ASSAY_TRY(want_inputs(p, n, a, &any));
  if (!any) return NULL;
  assay_status_t st = run_vjp(p, n, a, &known);
  if (!known) forget_inputs(p, n, a);
  return st;
}

// ---- adjoints after the pass -------------------------------------------------------------------

static void drop_oldest(assay_predict_t* p) {
  const assay_value_t* v = p->cached[p->first_cached].value;
  drop(p, v);
  p->states[v->id] = UNKNOWN;
  p->cached_bytes -= p->cached[p->first_cached].bytes;
  p->first_cached = (p->first_cached + 1) % CACHED;
  p->n_cached--;
}

// An adjoint that the pass has left behind is asked for now and then.
static void spill(assay_predict_t* p, const assay_value_t* v, size_t bytes) {
  double* was = p->adjoints[v->id];
  if (!was || p->spilled[v->id] || !assay_spill_is_due(bytes)) return;
  assay_spilled_t* s = assay_spill(was, bytes);
  if (!s) return;
  assay_free(was);
  p->spilled[v->id] = s;
  p->adjoints[v->id] = assay_spilled_data(s);
}

static void keep(assay_predict_t* p, const assay_value_t* v, size_t position) {
  if (p->states[v->id] != KNOWN) return;
  const assay_tensor_t* t = assay_evaluator_get(p->s->evaluator, v);
  const double bytes = t ? (double)t->size * ASSAY_PROBES * sizeof(double) : 0;
  if (p->n_cached == CACHED) drop_oldest(p);
  const size_t at = (p->first_cached + p->n_cached++) % CACHED;
  p->cached[at].value = v;
  p->cached[at].position = position;
  p->cached[at].bytes = bytes;
  p->cached_bytes += bytes;
  spill(p, v, (size_t)bytes);
}

static void let_go(assay_predict_t* p, size_t position) {
  while (p->n_cached && (p->cached_bytes > CACHE_BYTES ||
                         p->cached[p->first_cached].position > position + ASSAY_PREDICT_WINDOW))
    drop_oldest(p);
}

assay_status_t assay_predict_constant(const assay_predict_t* p, size_t position, size_t input,
                                      double** out) {
  const assay_node_t* n = p->s->nodes[position];
  pass_t a = {0};
  double* to = NULL;
  bool known = !p->blind && reads_as_adopted(p, n), any = false;
  *out = NULL;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    known &= !v || p->states[v->id] != UNKNOWN;
    any |= v && p->states[v->id] == KNOWN;
  }
  if (!known || !any) return NULL;
  assay_status_t st = pass_init(p, n, &a);
  if (!st && is_float_tensor(a.in[input]))
    st = assay_new_array((size_t)a.in[input]->size * ASSAY_PROBES, sizeof *to, &to);
  if (to) {
    a.in_g[input] = to;
    st = run_vjp(p, n, &a, &known);
    if (!st && known) *out = to, to = NULL;
  }
  assay_free(to);
  pass_deinit(n, &a);
  return st;
}

assay_status_t assay_predict_pass(assay_predict_t* p, size_t position) {
  const assay_node_t* n = p->s->nodes[position];
  bool any = false, unknown = false;
  pass_t a = {0};
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    any |= v && p->states[v->id] == KNOWN;
    unknown |= v && p->states[v->id] == UNKNOWN;
  }
  if (any || unknown) p->blind |= n->op && n->op->flags & ASSAY_OP_CONTROL;
  assay_status_t st = NULL;
  if (!p->blind && (any || unknown)) {
    st = pass_init(p, n, &a);
    if (!st && (unknown || !has_own_rule(p, n)))
      forget_inputs(p, n, &a);
    else if (!st)
      st = run_rule(p, n, &a);
    pass_deinit(n, &a);
  }
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i]) keep(p, n->outputs[i], position);
  let_go(p, position);
  return st;
}
