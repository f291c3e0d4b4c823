// Shares held against ablation.
//
// The engine is truth to which each layer adds its own error: adding all of them, as they were in
// the engine's run, gives the engine's outputs again. So a layer can be put out of the engine, or
// be the only one in it, without the others' rounding changing by it (another format for a layer
// would: what it reads and who reads it round at other places then).
#ifndef ASSAY_TESTS_ACCURACY_ABLATION_H_
#define ASSAY_TESTS_ACCURACY_ABLATION_H_

#include "account/account_case.h"
#include "account/shares.h"

typedef struct ablation {
  const assay_layers_t* layers;
  assay_tensor_t* const* inputs;
  assay_tensor_t** own;              // by value id: the error that its layer added; NULL: none
  bool* added;                       // by layer: in the run in progress
  assay_tensor_t **truth, **engine;  // graph outputs: nothing added; everything
  // Over the layers that were tried: what shares leave, and how far from them the ablations are.
  double sum_off;                     // largest |1 - sum of shares| of an output
  double alone_off, exact_off;        // largest difference from the share
  double alone_excess, exact_excess;  // the same, of what passes 0.02 + share / 5
  double engine_off;                  // all errors added: RMS of what is left, over the error's RMS
  bool finite;                        // the engine's outputs are, wherever truth's are
  size_t tried;
} ablation_t;

static inline void ablation_keep(void* user, const assay_layer_account_t* layer,
                                 const assay_value_t* value, const assay_tensor_t* engine,
                                 const assay_tensor_t* local, const assay_tensor_t* truth) {
  ablation_t* a = user;
  (void)layer, (void)truth;
  assay_tensor_t* t = NULL;
  if (value->graph != a->layers->model->graph) return;
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, engine->rank, engine->dims, &t);
  if (st) {
    assay_status_free(st);
    return;
  }
  for (int64_t i = 0; i < t->size; i++)
    assay_f64(t)[i] = assay_f64(engine)[i] - assay_f64(local)[i];
  a->own[value->id] = t;
}

// Adds a layer's own error to what truth makes of its inputs.
static inline assay_status_t ablation_add(void* user, const assay_node_t* node, size_t n_in,
                                          assay_tensor_t* const* in, size_t n_out,
                                          assay_tensor_t** out) {
  ablation_t* a = user;
  (void)n_in, (void)in;
  const int layer = a->layers->layer_of_node[node->id];
  if (layer < 0 || !a->added[layer]) return NULL;
  for (size_t o = 0; o < n_out; o++) {
    const assay_tensor_t* own = node->outputs[o] ? a->own[node->outputs[o]->id] : NULL;
    assay_tensor_t *wide = NULL, *sum = NULL;
    if (!own || !out[o]) continue;
    ASSAY_TRY(assay_tensor_widen(out[o], &wide));
    assay_status_t st = wide->size == own->size ? assay_tensor_copy(wide, &sum) : NULL;
    assay_tensor_release(wide);
    if (st) return st;
    if (!sum) continue;
    for (int64_t i = 0; i < sum->size; i++) assay_f64(sum)[i] += assay_f64(own)[i];
    assay_tensor_release(out[o]);
    out[o] = sum;
  }
  return NULL;
}

// Graph outputs with the errors of the layers in a->added.
static inline assay_status_t ablation_outputs(ablation_t* a, assay_tensor_t** out) {
  const assay_graph_t* g = a->layers->model->graph;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .hooks = {.after = ablation_add, .user = a}};
  assay_evaluator_t* m = NULL;
  assay_status_t st = assay_evaluator_create_run(a->layers->model, &config, a->inputs, &m);
  for (size_t i = 0; !st && i < g->n_outputs; i++)
    st = assay_tensor_widen(assay_evaluator_get(m, g->outputs[i]), &out[i]);
  assay_evaluator_destroy(m);
  return st;
}

static inline bool ablation_is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// <b - a, error> / <error, error> of one output.
static inline double ablation_part(const ablation_t* c, size_t o, const assay_tensor_t* a,
                                   const assay_tensor_t* b) {
  double part = 0, whole = 0;
  for (int64_t i = 0; i < a->size; i++) {
    const double e = assay_f64(c->engine[o])[i] - assay_f64(c->truth[o])[i];
    part += (assay_f64(b)[i] - assay_f64(a)[i]) * e;
    whole += e * e;
  }
  return whole > 0 ? part / whole : 0;
}

static inline void ablation_release(const ablation_t* a, assay_tensor_t** outputs) {
  for (size_t i = 0; outputs && i < a->layers->model->graph->n_outputs; i++)
    assay_tensor_release(outputs[i]);
  assay_free(outputs);
}

static inline void ablation_set(ablation_t* a, bool all, size_t layer) {
  for (size_t l = 0; l < a->layers->n_all_layers; l++) a->added[l] = all;
  if (layer < a->layers->n_layers) a->added[layer] = !all;
}

// One layer alone, and all but it.
static inline assay_status_t ablation_try(ablation_t* a, const assay_layer_range_t* s) {
  const size_t n = a->layers->model->graph->n_outputs;
  assay_tensor_t **alone = NULL, **exact = NULL;
  assay_status_t st = assay_new_array(n, sizeof *alone, &alone);
  if (!st) st = assay_new_array(n, sizeof *exact, &exact);
  ablation_set(a, false, s->first);
  if (!st) st = ablation_outputs(a, alone);
  ablation_set(a, true, s->first);
  if (!st) st = ablation_outputs(a, exact);
  for (size_t o = 0; !st && o < n; o++) {
    if (!ablation_is_float(a->truth[o])) continue;
    const double capacity = 0.02 + fabs(s->share[o]) / 5;
    const double x = fabs(ablation_part(a, o, a->truth[o], alone[o]) - s->share[o]);
    const double y = fabs(ablation_part(a, o, exact[o], a->engine[o]) - s->share[o]);
    a->alone_off = fmax(a->alone_off, x);
    a->exact_off = fmax(a->exact_off, y);
    a->alone_excess = fmax(a->alone_excess, x - capacity);
    a->exact_excess = fmax(a->exact_excess, y - capacity);
  }
  a->tried++;
  ablation_release(a, alone);
  ablation_release(a, exact);
  return st;
}

static inline double ablation_largest(const ablation_t* a, const assay_layer_range_t* s) {
  double largest = 0;
  for (size_t o = 0; o < a->layers->model->graph->n_outputs; o++)
    largest = fmax(largest, fabs(s->share[o]));
  return s->end == s->first + 1 ? largest : -1;
}

// Tries the layers with the largest shares, at most so many.
static inline assay_status_t ablation_try_all(ablation_t* a, const assay_shares_t* shares,
                                              size_t max) {
  bool* done = NULL;
  ASSAY_TRY(assay_new_array(shares->n, sizeof *done, &done));
  assay_status_t st = NULL;
  while (!st && a->tried < max) {
    size_t best = shares->n;
    for (size_t i = 0; i < shares->n; i++) {
      const double x = ablation_largest(a, &shares->at[i]);
      if (done[i] || x < 0) continue;
      if (best == shares->n || x > ablation_largest(a, &shares->at[best])) best = i;
    }
    if (best == shares->n) break;
    done[best] = true;
    st = ablation_try(a, &shares->at[best]);
  }
  assay_free(done);
  return st;
}

// How far the shares of each output are from adding up; outputs without error have none.
static inline void ablation_sum(ablation_t* a, const assay_shares_t* shares) {
  for (size_t o = 0; o < shares->n_outputs; o++) {
    double sum = 0;
    bool any = false;
    for (size_t i = 0; i < shares->n; i++) {
      sum += shares->at[i].share[o];
      any |= shares->at[i].share[o] != 0;
    }
    if (any) a->sum_off = fmax(a->sum_off, fabs(sum - 1));
  }
}

static inline assay_status_t ablation_ends(ablation_t* a, const assay_account_t* account) {
  const size_t n = a->layers->model->graph->n_outputs;
  ASSAY_TRY(assay_new_array(n, sizeof *a->truth, &a->truth));
  ASSAY_TRY(assay_new_array(n, sizeof *a->engine, &a->engine));
  ablation_set(a, false, SIZE_MAX);
  ASSAY_TRY(ablation_outputs(a, a->truth));
  ablation_set(a, true, SIZE_MAX);
  ASSAY_TRY(ablation_outputs(a, a->engine));
  a->finite = true;
  for (size_t o = 0; o < n; o++) {
    const assay_tensor_t* e = assay_account_engine_output(account, o);
    if (!ablation_is_float(a->engine[o]) || !ablation_is_float(e)) continue;
    double off = 0, whole = 0;
    for (int64_t i = 0; i < e->size; i++) {
      const double x = assay_f64(e)[i], y = assay_f64(a->engine[o])[i];
      a->finite &= isfinite(x) || !isfinite(assay_f64(a->truth[o])[i]);
      off += (x - y) * (x - y);
      whole += (x - assay_f64(a->truth[o])[i]) * (x - assay_f64(a->truth[o])[i]);
    }
    if (whole > 0) a->engine_off = fmax(a->engine_off, sqrt(off / whole));
  }
  return NULL;
}

static inline void ablation_deinit(ablation_t* a) {
  for (int v = 0; a->own && v < a->layers->model->n_values; v++) assay_tensor_release(a->own[v]);
  ablation_release(a, a->truth);
  ablation_release(a, a->engine);
  assay_free(a->own);
  assay_free(a->added);
}

// Shares of a plan's outputs for one sample, with the `max` largest held against ablation.
// *out_shares is the caller's. runs: assay_shares_options_t.
static inline assay_status_t ablation_run(const assay_plan_t* plan, assay_tensor_t* const* inputs,
                                          size_t max, int runs, ablation_t* a,
                                          assay_shares_t* out_shares) {
  *a = (ablation_t){.layers = assay_plan_layers(plan), .inputs = inputs};
  const assay_account_options_t options = {.watch = {ablation_keep, a}};
  const assay_shares_options_t how = {.runs = runs, .smallest = runs > 1000 ? 1e-300 : 0};
  assay_account_t* account = NULL;
  const size_t values = (size_t)a->layers->model->n_values;
  assay_status_t st = assay_new_array(values, sizeof *a->own, &a->own);
  if (!st) st = assay_new_array(a->layers->n_all_layers, sizeof *a->added, &a->added);
  if (!st) st = assay_account_create(plan, &assay_backend_emu, &options, &account);
  if (!st) st = assay_account_run(account, inputs);
  if (!st) st = ablation_ends(a, account);
  assay_account_destroy(account);
  if (!st) st = assay_shares_run(plan, &assay_backend_emu, inputs, &how, out_shares);
  if (!st) ablation_sum(a, out_shares);
  return st ? st : ablation_try_all(a, out_shares, max);
}

#endif  // ASSAY_TESTS_ACCURACY_ABLATION_H_
