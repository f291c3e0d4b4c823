// Sessions: include/assay/session.h over the evaluator and the backends.
#include <assay/session.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/targets.h"
#include "onnx/load.h"
#include "runtime/executor.h"

struct assay_session {
  assay_model_t* model;
  assay_plan_t* plan;      // PLAN
  char* inject;            // that the plan borrows; NULL: none
  assay_engine_t* engine;  // NULL: it is not of one
  assay_executor_t* executor;
  bool ran;               // values are those of a run
  assay_value_t** nodes;  // what nodes make, with all_values; NULL: the outputs are kept
  size_t n_nodes;
  assay_progress_fn_t* progress;
  void* user;
};

// ---- making -------------------------------------------------------------------------------------

static assay_status_t open_evaluator(assay_session_t* s, const assay_session_options_t* o) {
  assay_evaluator_config_t config = {
      .mode = o->mode == ASSAY_RUN_TRUTH ? ASSAY_MODE_TRUTH : ASSAY_MODE_NATIVE,
      .unquantized = o->unquantized,
      .seed = o->seed,
      .keep_all = o->all_values};
  return assay_executor_evaluate(s->model, &config, &s->executor);
}

static assay_status_t copy_inject(assay_session_t* s, const char* inject) {
  if (!inject) return NULL;
  const size_t n = strlen(inject) + 1;
  ASSAY_TRY(assay_new_array(n, 1, &s->inject));
  memcpy(s->inject, inject, n);
  return NULL;
}

static assay_status_t open_plan(assay_session_t* s, const assay_session_options_t* o) {
  const assay_backend_t* backend;
  assay_precision_t precision;
  if (o->all_values)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "all_values is for modes NATIVE and TRUTH, not of a plan; a context's tap "
                       "sees those of its layers");
  ASSAY_TRY(assay_target_find(o->target, ASSAY_TARGET_INSPECT, &backend));
  ASSAY_TRY(copy_inject(s, o->inject));
  assay_plan_options_t options = {.passes = {.off = o->passes_off, .n_off = o->n_passes_off},
                                  .fp32 = o->fp32,
                                  .inject = s->inject};
  ASSAY_TRY(assay_plan_options_settle(&options, o->fusion, false));
  ASSAY_TRY(
      assay_precision_open(s->model, o->precision, o->accumulator, o->layer_precision, &precision));
  assay_status_t st = assay_plan_create(s->model, &precision, &options, o->seed, &s->plan);
  assay_precision_deinit(&precision);
  return st ? st : assay_executor_run_plan(s->plan, backend, NULL, &s->executor);
}

static assay_status_t list_nodes(assay_session_t* s) {
  const assay_graph_t* g = assay_executor_graph(s->executor);
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i]->n_outputs;
  ASSAY_TRY(assay_new_array(n, sizeof *s->nodes, &s->nodes));
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) s->nodes[s->n_nodes++] = g->nodes[i]->outputs[k];
  return NULL;
}

static assay_status_t open_session(assay_session_t* s, const assay_session_options_t* o) {
  if ((unsigned)o->mode > ASSAY_RUN_PLAN)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "mode %d does not exist; use one of assay_run_mode_t", (int)o->mode);
  s->progress = o->progress;
  s->user = o->user;
  ASSAY_TRY(o->mode == ASSAY_RUN_PLAN ? open_plan(s, o) : open_evaluator(s, o));
  return o->all_values ? list_nodes(s) : NULL;
}

assay_status_t assay_session_create(assay_model_t* model, const assay_session_options_t* options,
                                    assay_session_t** out) {
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  assay_session_t* s = NULL;
  ASSAY_TRY(assay_onnx_want_known(model));
  ASSAY_TRY(ASSAY_NEW(&s));
  s->model = assay_model_retain(model);
  assay_status_t st = open_session(s, &o);
  if (st) return assay_session_destroy(s), st;
  *out = s;
  return NULL;
}

assay_model_t* assay_engine_model(const assay_engine_t* engine) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(engine))->model;
  return assay_model_retain((assay_model_t*)(uintptr_t)m);
}

assay_status_t assay_session_of_engine(assay_engine_t* engine, assay_progress_fn_t* progress,
                                       void* user, assay_session_t** out) {
  assay_session_t* s = NULL;
  ASSAY_TRY(assay_engine_check_whole(engine));
  ASSAY_TRY(ASSAY_NEW(&s));
  s->engine = assay_engine_retain(engine);
  s->model = assay_engine_model(engine);
  s->progress = progress;
  s->user = user;
  assay_status_t st = assay_executor_run_engine(engine, NULL, &s->executor);
  if (st) return assay_session_destroy(s), st;
  *out = s;
  return NULL;
}

void assay_session_destroy(assay_session_t* s) {
  if (!s) return;
  assay_executor_destroy(s->executor);
  assay_plan_destroy(s->plan);
  assay_engine_release(s->engine);
  assay_model_release(s->model);
  assay_free(s->inject);
  assay_free(s->nodes);
  assay_free(s);
}

// ---- running ------------------------------------------------------------------------------------

static assay_status_t set_inputs(assay_session_t* s, size_t n, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = assay_executor_graph(s->executor);
  size_t k = 0;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_value_t* v = g->inputs[i];
    if (v->constant) continue;
    if (k == n)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%zu inputs were given; the model has %zu, the next is '%s'", n,
                         assay_model_input_count(s->model), v->name);
    ASSAY_TRY(assay_executor_set(s->executor, v, inputs[k++]));
  }
  if (k != n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%zu inputs were given; the model has %zu", n, k);
  return NULL;
}

assay_status_t assay_session_run(assay_session_t* s, size_t n_inputs, assay_tensor_t* const* inputs,
                                 size_t n_outputs, assay_tensor_t** outputs) {
  const assay_graph_t* g = assay_executor_graph(s->executor);
  if (n_outputs != g->n_outputs)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "room for %zu outputs; the model has %zu", n_outputs,
                       g->n_outputs);
  assay_executor_reset(s->executor);
  s->ran = false;
  assay_status_t st = set_inputs(s, n_inputs, inputs);
  if (!st) st = assay_executor_run_progress(s->executor, s->progress, s->user);
  for (size_t i = 0; !st && i < n_outputs; i++)
    outputs[i] = assay_tensor_retain(assay_executor_get(s->executor, g->outputs[i]));
  assay_executor_reset(s->executor);
  return st;
}

assay_status_t assay_session_evaluate(assay_session_t* s, size_t n_inputs,
                                      assay_tensor_t* const* inputs) {
  const assay_graph_t* g = assay_executor_graph(s->executor);
  if (n_inputs != g->n_inputs)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%zu inputs were given; with those that have an initializer the model has "
                       "%zu",
                       n_inputs, g->n_inputs);
  assay_executor_reset(s->executor);
  assay_status_t st = assay_executor_set_inputs(s->executor, inputs);
  if (!st) st = assay_executor_run_progress(s->executor, s->progress, s->user);
  s->ran = !st;
  if (st) assay_executor_reset(s->executor);
  return st;
}

// Value i of those that are kept; NULL: there is none.
static const assay_value_t* value_at(const assay_session_t* s, size_t i) {
  const assay_graph_t* g = assay_executor_graph(s->executor);
  if (i >= assay_session_value_count(s)) return NULL;
  return s->nodes ? s->nodes[i] : g->outputs[i];
}

size_t assay_session_value_count(const assay_session_t* s) {
  return s->nodes ? s->n_nodes : assay_executor_graph(s->executor)->n_outputs;
}

const char* assay_session_value_name(const assay_session_t* s, size_t i) {
  const assay_value_t* v = value_at(s, i);
  return v ? v->name : NULL;
}

assay_status_t assay_session_value(assay_session_t* s, size_t i, assay_tensor_t** out) {
  const assay_value_t* v = value_at(s, i);
  assay_tensor_t* t = NULL;
  if (!v)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no value %zu; there are %zu", i,
                       assay_session_value_count(s));
  if (s->ran) ASSAY_TRY(assay_executor_output(s->executor, v, &t));
  if (t) return assay_tensor_widen(t, out);
  *out = NULL;
  return NULL;
}
