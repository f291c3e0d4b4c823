// Finding a model's value for golden tensors whose names say nothing: by their elements, else by
// their shape and statistics.
#include "diagnose/golden/golden_content.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"

enum {
  MIN = 4,        // elements: fewer say nothing
  MIN_LIKE = 64,  // elements: fewer have no distribution
  PROBES = 64,    // elements that are looked at before all are
  DRAWN = 2048,   // elements that a distribution is told from
  QUANTILES = 65,
  MAX_WALKS = 24
};

// Relative RMS differences. SAME: rounding alone may do that. DIFFERS: of an output, a fault.
// CLOSE: the same value, perhaps after a small fault. LIKE: of quantiles, the same value after a
// fault of any kind.
static const double SAME = 1e-5, DIFFERS = 1e-4, CLOSE = 1e-3, LIKE = 0.2;
static const double LIKE_OUTPUT = 0.5;
// DIFFERS of a model that quantizes, whose weights are a step off and whose names are often gone:
// values are not guessed at for what its quantizers cost.
static const double DIFFERS_QUANTIZED = 0.1;
// The second nearest must be so many times as far.
static const double DISTINCT = 3;

// A value that a golden tensor may be, and how far it is.
typedef struct pair {
  size_t golden;
  const assay_value_t* value;
  double distance;
  size_t order;  // of the value in the graph
} pair_t;

// How a tensor's elements are distributed.
typedef struct spread {
  double quantiles[QUANTILES];
  double size;  // their RMS
  bool known;
} spread_t;

typedef struct matcher {
  assay_golden_t* g;
  const assay_model_t* model;
  assay_tensor_t* const* inputs;
  const assay_content_options_t* options;
  size_t* taken;      // by value id: 1 + the golden tensor that it is; 0: none
  spread_t* spreads;  // of the golden tensors, once they are asked for
  pair_t* pairs;      // of this walk
  size_t n, capacity;
  pair_t* outputs;  // of this walk: outputs without golden, with golden tensors of their shape
  size_t n_outputs, cap_outputs;
  size_t order;
  double differs;  // DIFFERS of this model
  bool outputs_differ;
} matcher_t;

// ---- two tensors --------------------------------------------------------------------------------

// What a tensor's elements are once they are widened.
static assay_store_t store_of(const assay_tensor_t* t) {
  return t->store == ASSAY_STORE_PACKED ? assay_type_store(t->type) : t->store;
}

// How many elements at the front both have: all, or those of the rows that both have. 0: the shapes
// do not fit.
static int64_t common(const assay_tensor_t* t, const assay_tensor_t* golden) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || golden->kind != ASSAY_KIND_TENSOR) return 0;
  if (t->store != store_of(golden) || t->store > ASSAY_STORE_I64 || t->rank != golden->rank)
    return 0;
  for (int i = 1; i < t->rank; i++)
    if (t->dims[i] != golden->dims[i]) return 0;
  return t->size < golden->size ? t->size : golden->size;
}

// Relative RMS difference of every step-th element; 1 where one is not finite and the other is.
static double distance(const assay_tensor_t* a, const assay_tensor_t* b, int64_t n, int64_t step) {
  double sum = 0, size = 0;
  int64_t odd = 0, seen = 0;
  for (int64_t i = 0; i < n; i += step, seen++) {
    const double x = assay_tensor_element(a, i), y = assay_tensor_element(b, i);
    if (!isfinite(x) || !isfinite(y)) {
      odd += !(x == y || (x != x && y != y));
      continue;
    }
    sum += (x - y) * (x - y);
    size += y * y;
  }
  const double part = seen ? (double)odd / (double)seen : 0;
  if (!(size > 0)) return sum > 0 ? 1 : part;
  return fmax(part, sqrt(sum / size));
}

// Whether all elements are about equal: zeros, masks, counts. Such tensors look like many others.
static bool is_flat(const assay_tensor_t* t, int64_t n) {
  const int64_t step = n > DRAWN ? n / DRAWN : 1;
  double min = (double)INFINITY, max = -(double)INFINITY;
  for (int64_t i = 0; i < n; i += step) {
    const double x = assay_tensor_element(t, i);
    if (!isfinite(x)) continue;
    min = fmin(min, x);
    max = fmax(max, x);
  }
  return !(max - min > 1e-9 * fmax(fabs(max), fabs(min)));
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Quantiles of n elements at the front, drawn evenly.
static spread_t spread_of(const assay_tensor_t* t, int64_t n) {
  double drawn[DRAWN], sum = 0;
  spread_t s = {.known = true};
  int k = 0;
  // An odd step meets all rows and channels alike where dimensions are even.
  const int64_t step = n > DRAWN ? (n / DRAWN) | 1 : 1;
  for (int64_t i = 0; i < n && k < DRAWN; i += step)
    if (isfinite(assay_tensor_element(t, i))) drawn[k++] = assay_tensor_element(t, i);
  qsort(drawn, (size_t)k, sizeof *drawn, by_size);
  for (int q = 0; q < QUANTILES; q++) {
    s.quantiles[q] = k ? drawn[(int64_t)q * (k - 1) / (QUANTILES - 1)] : 0;
    sum += s.quantiles[q] * s.quantiles[q];
  }
  s.size = sqrt(sum / QUANTILES);
  return s;
}

static double unlikeness(const spread_t* a, const spread_t* b) {
  double sum = 0;
  for (int q = 0; q < QUANTILES; q++) {
    const double d = a->quantiles[q] - b->quantiles[q];
    sum += d * d;
  }
  const double size = fmax(a->size, b->size);
  return size > 0 ? sqrt(sum / QUANTILES) / size : 1;
}

// ---- a walk -------------------------------------------------------------------------------------

static assay_status_t note_pair(matcher_t* m, size_t golden, const assay_value_t* v, double d) {
  ASSAY_TRY(assay_grow(&m->pairs, &m->capacity, m->n + 1, sizeof *m->pairs));
  m->pairs[m->n++] = (pair_t){golden, v, d, m->order};
  return NULL;
}

// A value that is known goes on as golden has it; another one is held against all that is left.
static assay_status_t inspect(matcher_t* m, const assay_value_t* v, bool by_elements,
                              assay_tensor_t** out) {
  m->order++;
  if (m->taken[v->id]) {
    const assay_tensor_t* g = m->g->at[m->taken[v->id] - 1].tensor;
    const int64_t n = common(*out, g);
    if (v->is_output && (!n || distance(*out, g, n, 1) > m->differs)) m->outputs_differ = true;
    if (!n || n != g->size || n != (*out)->size) return NULL;
    assay_tensor_t *wide = NULL, *by = NULL;
    ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)g, &wide));
    assay_status_t st = assay_tensor_retype(wide, (*out)->type, &by);
    assay_tensor_release(wide);
    if (st) return st;
    assay_tensor_release(*out);
    *out = by;
    return NULL;
  }
  if (v->constant) return NULL;
  spread_t spread = {0};
  for (size_t i = 0; i < m->g->n; i++) {
    const assay_golden_tensor_t* g = &m->g->at[i];
    const int64_t n = g->value ? 0 : common(*out, g->tensor);
    if (n && v->is_output) {
      const spread_t x = spread_of(*out, n), y = spread_of(g->tensor, n);
      ASSAY_TRY(assay_grow(&m->outputs, &m->cap_outputs, m->n_outputs + 1, sizeof *m->outputs));
      m->outputs[m->n_outputs++] = (pair_t){i, v, unlikeness(&x, &y), m->order};
    }
    if (n < MIN || is_flat(*out, n)) continue;
    if (!by_elements) {
      if (n < MIN_LIKE) continue;
      spread_t* s = &m->spreads[i];
      if (!spread.known) spread = spread_of(*out, n);
      if (!s->known) *s = spread_of(g->tensor, n);
      const double d = unlikeness(&spread, s);
      if (d < LIKE * DISTINCT) ASSAY_TRY(note_pair(m, i, v, d));
      continue;
    }
    if (distance(*out, g->tensor, n, n > PROBES ? n / PROBES : 1) > 0.1) continue;
    const double d = distance(*out, g->tensor, n, 1);
    if (d < CLOSE) ASSAY_TRY(note_pair(m, i, v, d));
  }
  return NULL;
}

typedef struct walk_hook {
  matcher_t* m;
  bool by_elements;
} walk_hook_t;

static assay_status_t after(void* user, const assay_node_t* n, size_t n_in,
                            assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  const walk_hook_t* h = user;
  (void)n_in;
  (void)in;
  if (n->graph != h->m->model->graph) return NULL;
  for (size_t i = 0; i < n_out; i++)
    if (n->outputs[i] && out[i]) ASSAY_TRY(inspect(h->m, n->outputs[i], h->by_elements, &out[i]));
  return NULL;
}

// Truth of the model, with golden where it is known. A node that cannot be run ends the walk.
static assay_status_t walk(matcher_t* m, bool by_elements) {
  walk_hook_t hook = {m, by_elements};
  const assay_graph_t* g = m->model->graph;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = m->options->unquantized,
                                           .seed = m->options->seed,
                                           .hooks = {.after = after, .user = &hook}};
  assay_evaluator_t* evaluator = NULL;
  m->n = m->n_outputs = m->order = 0;
  ASSAY_TRY(assay_evaluator_create(m->model, &config, &evaluator));
  assay_status_t st = assay_evaluator_set_inputs_widened(evaluator, m->inputs);
  for (size_t i = 0; !st && i < g->n_nodes; i++) st = assay_evaluator_step(evaluator, g->nodes[i]);
  assay_evaluator_destroy(evaluator);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {
    m->outputs_differ = true;
    assay_status_free(st);
    st = NULL;
  }
  return st;
}

// ---- choosing -----------------------------------------------------------------------------------

static int nearest_first(const void* a, const void* b) {
  const pair_t *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static int earliest_first(const void* a, const void* b) {
  const pair_t *x = a, *y = b;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  return x->distance < y->distance ? -1 : x->distance > y->distance;
}

static void take(matcher_t* m, const pair_t* p, const char* how) {
  assay_golden_tensor_t* g = &m->g->at[p->golden];
  g->value = p->value;
  g->match = ASSAY_GOLDEN_BY_CONTENT;
  m->taken[p->value->id] = p->golden + 1;
  assay_str_printf(&m->g->notes, "golden '%s' is taken for '%s': the same %s\n", g->name,
                   p->value->name, how);
}

// Pairs of the same elements, the nearest first. *out_any: something was taken.
static void take_close(matcher_t* m, double limit, bool* out_any) {
  *out_any = false;
  if (m->n) qsort(m->pairs, m->n, sizeof *m->pairs, nearest_first);
  for (size_t i = 0; i < m->n; i++) {
    const pair_t* p = &m->pairs[i];
    if (p->distance > limit || m->g->at[p->golden].value || m->taken[p->value->id]) continue;
    take(m, p, "elements");
    *out_any = true;
  }
}

// The nearest other pair of the same golden tensor, or of the same value.
static double second(const matcher_t* m, const pair_t* p) {
  double min = (double)INFINITY;
  for (size_t i = 0; i < m->n; i++) {
    const pair_t* q = &m->pairs[i];
    if (q == p || (q->golden != p->golden && q->value != p->value)) continue;
    min = fmin(min, q->distance);
  }
  return min;
}

// The first value of the graph that is much the most like one golden tensor.
static void take_like(matcher_t* m, bool* out_any) {
  *out_any = false;
  if (m->n) qsort(m->pairs, m->n, sizeof *m->pairs, earliest_first);
  for (size_t i = 0; i < m->n && !*out_any; i++) {
    const pair_t* p = &m->pairs[i];
    if (p->distance > LIKE || second(m, p) < DISTINCT * p->distance) continue;
    take(m, p, "shape and statistics");
    *out_any = true;
  }
}

// Outputs and golden tensors of their shape: each has to be one of them, however it differs. Those
// that have only each other, else the most alike.
static void take_outputs(matcher_t* m, bool* out_any) {
  *out_any = false;
  if (m->n_outputs) qsort(m->outputs, m->n_outputs, sizeof *m->outputs, nearest_first);
  for (size_t i = 0; i < m->n_outputs; i++) {
    const pair_t* p = &m->outputs[i];
    size_t rivals = 0;
    for (size_t k = 0; k < m->n_outputs; k++)
      rivals += m->outputs[k].golden == p->golden || m->outputs[k].value == p->value;
    if (rivals != 1 && p->distance > LIKE_OUTPUT) continue;
    if (m->g->at[p->golden].value || m->taken[p->value->id]) continue;
    take(m, p, "shape, of an output");
    *out_any = true;
  }
}

static bool knows_output(const matcher_t* m) {
  for (size_t i = 0; i < m->g->n; i++)
    if (m->g->at[i].value && m->g->at[i].value->is_output) return true;
  return false;
}

static assay_status_t match(matcher_t* m) {
  bool any = true;
  for (int k = 0; any && k < MAX_WALKS; k++) {
    ASSAY_TRY(walk(m, true));
    // Small differences count where an output shows them.
    take_close(m, m->outputs_differ ? CLOSE : SAME, &any);
    m->outputs_differ |= !knows_output(m);
    if (!any) take_outputs(m, &any);
    if (any) continue;
    if (!m->outputs_differ) return NULL;
    ASSAY_TRY(walk(m, false));
    take_like(m, &any);
  }
  return NULL;
}

assay_status_t assay_golden_match_content(assay_golden_t* g, const assay_model_t* model,
                                          assay_tensor_t* const* inputs,
                                          const assay_content_options_t* options) {
  matcher_t m = {.g = g,
                 .model = model,
                 .inputs = inputs,
                 .options = options,
                 .differs = assay_model_quantizes(model) ? DIFFERS_QUANTIZED : DIFFERS};
  bool any = false;
  for (size_t i = 0; i < g->n; i++) any |= !g->at[i].value;
  if (!any) return NULL;
  assay_status_t st = assay_new_array((size_t)model->n_values, sizeof *m.taken, &m.taken);
  if (!st) st = assay_new_array(g->n, sizeof *m.spreads, &m.spreads);
  for (size_t i = 0; !st && i < g->n; i++)
    if (g->at[i].value) m.taken[g->at[i].value->id] = i + 1;
  if (!st) st = match(&m);
  assay_free(m.pairs);
  assay_free(m.outputs);
  assay_free(m.spreads);
  assay_free(m.taken);
  if (st) return st;
  for (size_t i = 0; i < g->n; i++)
    if (!g->at[i].value)
      assay_str_printf(&g->notes, "golden '%s' is like no value of the model: left out\n",
                       g->at[i].name);
  return assay_str_status(&g->notes);
}
