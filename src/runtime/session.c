// Sessions: include/assay/session.h over the evaluator and the backends.
#include <assay/session.h>
#include <string.h>

#include "base/alloc.h"
#include "onnx/load.h"
#include "runtime/executor.h"

struct assay_session {
  assay_model_t* model;
  assay_plan_t* plan;  // PLAN
  assay_executor_t* executor;
};

static assay_status_t open_evaluator(assay_session_t* s, const assay_session_options_t* o) {
  assay_evaluator_config_t config = {
      .mode = o->mode == ASSAY_RUN_TRUTH ? ASSAY_MODE_TRUTH : ASSAY_MODE_NATIVE,
      .unquantized = o->unquantized,
      .seed = o->seed};
  return assay_executor_evaluate(s->model, &config, &s->executor);
}

static assay_status_t open_plan(assay_session_t* s, const assay_session_options_t* o) {
  assay_precision_t precision;
  ASSAY_TRY(
      assay_precision_open(s->model, o->precision, o->accumulator, o->layer_precision, &precision));
  assay_status_t st = assay_plan_create(s->model, &precision, NULL, o->seed, &s->plan);
  assay_precision_deinit(&precision);
  return st ? st : assay_executor_run_plan(s->plan, &assay_backend_emu, NULL, &s->executor);
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
  assay_status_t st = o.mode == ASSAY_RUN_PLAN ? open_plan(s, &o) : open_evaluator(s, &o);
  if (st) return assay_session_destroy(s), st;
  *out = s;
  return NULL;
}

void assay_session_destroy(assay_session_t* s) {
  if (!s) return;
  assay_executor_destroy(s->executor);
  assay_plan_destroy(s->plan);
  assay_model_release(s->model);
  assay_free(s);
}

static assay_status_t set_inputs(assay_session_t* s, size_t n, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = s->model->graph;
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
  const assay_graph_t* g = s->model->graph;
  if (n_outputs != g->n_outputs)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "room for %zu outputs; the model has %zu", n_outputs,
                       g->n_outputs);
  assay_executor_reset(s->executor);
  assay_status_t st = set_inputs(s, n_inputs, inputs);
  if (!st) st = assay_executor_run(s->executor);
  for (size_t i = 0; !st && i < n_outputs; i++)
    outputs[i] = assay_tensor_retain(assay_executor_get(s->executor, g->outputs[i]));
  assay_executor_reset(s->executor);
  return st;
}
