// Something that runs a model: the evaluator, or a plan on a backend.
#include "runtime/executor.h"

#include <assay/context.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"

struct assay_executor {
  const assay_graph_t* graph;
  size_t n_steps;
  assay_evaluator_t* evaluator;  // the evaluator; NULL: a plan on
  const assay_backend_t* backend;
  void* state;
  assay_engine_t* engine;  // NULL: none
  uint64_t profiles;       // that take the inputs set so far, a bit each
};

assay_status_t assay_executor_evaluate(const assay_model_t* model,
                                       const assay_evaluator_config_t* config,
                                       assay_executor_t** out) {
  assay_executor_t* e = NULL;
  ASSAY_TRY(ASSAY_NEW(&e));
  e->graph = model->graph;
  e->n_steps = model->graph->n_nodes;
  assay_status_t st = assay_evaluator_create(model, config, &e->evaluator);
  if (st) return assay_executor_destroy(e), st;
  *out = e;
  return NULL;
}

static assay_status_t open_state(const assay_plan_t* plan, const assay_backend_t* backend,
                                 void* shared, const assay_tap_t* tap, assay_executor_t** out) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  assay_executor_t* e = NULL;
  ASSAY_TRY(ASSAY_NEW(&e));
  e->graph = layers->model->graph;
  e->n_steps = layers->n_layers;
  assay_status_t st = assay_backend_open(backend, layers, shared, tap, &e->state);
  if (st) return assay_executor_destroy(e), st;
  e->backend = backend;
  e->profiles = UINT64_MAX;
  *out = e;
  return NULL;
}

assay_status_t assay_executor_run_plan(const assay_plan_t* plan, const assay_backend_t* backend,
                                       const assay_tap_t* tap, assay_executor_t** out) {
  return open_state(plan, backend, NULL, tap, out);
}

assay_status_t assay_executor_run_engine(assay_engine_t* engine, const assay_tap_t* tap,
                                         assay_executor_t** out) {
  ASSAY_TRY(assay_engine_check_whole(engine));
  ASSAY_TRY(open_state(assay_engine_plan(engine), assay_engine_backend(engine),
                       assay_engine_shared(engine), tap, out));
  (*out)->engine = engine;
  assay_engine_retain(engine);
  return NULL;
}

void assay_executor_destroy(assay_executor_t* e) {
  if (!e) return;
  if (e->backend) e->backend->close(e->state);
  assay_evaluator_destroy(e->evaluator);
  assay_engine_release(e->engine);
  assay_free(e);
}

const assay_graph_t* assay_executor_graph(const assay_executor_t* e) { return e->graph; }
size_t assay_executor_n_steps(const assay_executor_t* e) { return e->n_steps; }

void assay_executor_reset(assay_executor_t* e) {
  e->profiles = UINT64_MAX;
  if (e->evaluator)
    assay_evaluator_reset(e->evaluator);
  else
    e->backend->reset(e->state);
}

assay_status_t assay_executor_set(assay_executor_t* e, const assay_value_t* v, assay_tensor_t* t) {
  if (e->engine && t->kind == ASSAY_KIND_TENSOR)
    ASSAY_TRY(assay_engine_check(e->engine, v, t, &e->profiles));
  if (t->store == ASSAY_STORE_LATE) {  // made once for all that read it
    assay_tensor_t* made = NULL;
    ASSAY_TRY(assay_tensor_widen(t, &made));
    assay_status_t st = assay_executor_set(e, v, made);
    assay_tensor_release(made);
    return st;
  }
  if (!e->evaluator) return e->backend->set(e->state, v, t);
  assay_evaluator_set(e->evaluator, v, t);
  return NULL;
}

assay_status_t assay_executor_set_inputs(assay_executor_t* e, assay_tensor_t* const* inputs) {
  for (size_t i = 0; i < e->graph->n_inputs; i++)
    if (inputs[i]) ASSAY_TRY(assay_executor_set(e, e->graph->inputs[i], inputs[i]));
  return NULL;
}

assay_status_t assay_executor_step(assay_executor_t* e, size_t i) {
  ASSAY_TRY(assay_cancel_check());
  // Kernels that are cancelled leave what they make as it is.
  if (!e->evaluator) return assay_status_join(e->backend->step(e->state, i), assay_cancel_check());
  if (i == 0) ASSAY_TRY(assay_evaluator_check_inputs(e->evaluator));
  return assay_evaluator_step(e->evaluator, e->graph->nodes[i]);
}

assay_status_t assay_executor_run_progress(assay_executor_t* e, assay_progress_fn_t* progress,
                                           void* user) {
  if (e->evaluator) ASSAY_TRY(assay_evaluator_check_inputs(e->evaluator));
  for (size_t i = 0; i < e->n_steps; i++) {
    ASSAY_TRY(assay_executor_step(e, i));
    if (progress) progress(user, "running", (double)(i + 1) / (double)e->n_steps);
  }
  return assay_cancel_check();
}

assay_status_t assay_executor_run(assay_executor_t* e) {
  return assay_executor_run_progress(e, NULL, NULL);
}

assay_tensor_t* assay_executor_get(const assay_executor_t* e, const assay_value_t* v) {
  return e->evaluator ? assay_evaluator_get(e->evaluator, v) : e->backend->get(e->state, v);
}

assay_status_t assay_executor_output(const assay_executor_t* e, const assay_value_t* v,
                                     assay_tensor_t** out) {
  if (!e->evaluator) return assay_backend_output(e->backend, e->state, v, out);
  *out = assay_evaluator_get(e->evaluator, v);
  return NULL;
}

void assay_executor_bind(assay_executor_t* e, const assay_value_t* v, void* data, size_t bytes) {
  if (e->backend && e->backend->bind) e->backend->bind(e->state, v, data, bytes);
}

assay_status_t assay_executor_grow(assay_executor_t* e, const struct assay_growth* growth) {
  return e->backend && e->backend->grow ? e->backend->grow(e->state, growth) : NULL;
}

assay_status_t assay_executor_append(assay_executor_t* e, struct assay_append* a, bool on,
                                     bool* out_can) {
  *out_can = e->backend && e->backend->append;
  return *out_can ? e->backend->append(e->state, a, on) : NULL;
}

size_t assay_executor_made(const assay_executor_t* e) {
  return e->backend && e->backend->made ? e->backend->made(e->state) : 0;
}

void assay_executor_stepwise(assay_executor_t* e, bool on) {
  if (e->backend && e->backend->stepwise) e->backend->stepwise(e->state, on);
}

static assay_status_t no_device(const assay_executor_t* e, const assay_value_t* v) {
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "'%s' is bound in the memory of a device, and target '%s' has none", v->name,
                     e->backend ? e->backend->name : "evaluator");
}

assay_status_t assay_executor_set_on_device(assay_executor_t* e, const assay_value_t* v,
                                            const assay_device_view_t* view) {
  if (!e->backend || !e->backend->set_on_device) return no_device(e, v);
  return e->backend->set_on_device(e->state, v, view);
}

assay_status_t assay_executor_bind_on_device(assay_executor_t* e, const assay_value_t* v,
                                             assay_device_ptr_t at, size_t bytes) {
  if (!e->backend || !e->backend->bind_on_device) return at ? no_device(e, v) : NULL;
  return e->backend->bind_on_device(e->state, v, at, bytes);
}

uint64_t assay_executor_stream(const assay_executor_t* e) {
  return e->backend && e->backend->stream ? e->backend->stream(e->state) : 0;
}

assay_status_t assay_executor_deliver(assay_executor_t* e, const assay_value_t* v, int* out_rank,
                                      int64_t* out_dims) {
  if (!e->backend || !e->backend->deliver) return no_device(e, v);
  return e->backend->deliver(e->state, v, out_rank, out_dims);
}

assay_status_t assay_executor_take(assay_executor_t* e, const assay_value_t* v,
                                   assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  if (e->backend && e->backend->packed) ASSAY_TRY(e->backend->packed(e->state, v, &t));
  if (t) return *out = assay_tensor_retain(t), NULL;
  t = assay_executor_get(e, v);
  if (t && t->kind == ASSAY_KIND_TENSOR && t->store != ASSAY_STORE_STR)
    return assay_tensor_pack(t, out);
  *out = assay_tensor_retain(t);
  return NULL;
}

const char* assay_executor_tactic(const assay_executor_t* e, size_t i) {
  if (e->evaluator) return "evaluator";
  return e->backend->tactic ? e->backend->tactic(e->state, i) : e->backend->name;
}

size_t assay_executor_scratch(const assay_executor_t* e, size_t i) {
  return e->backend && e->backend->scratch ? e->backend->scratch(e->state, i) : 0;
}

void assay_executor_timed(assay_executor_t* e, bool on) {
  if (e->backend && e->backend->timed) e->backend->timed(e->state, on);
}

assay_status_t assay_executor_times(assay_executor_t* e, assay_run_times_t* out, bool* out_known) {
  *out = (assay_run_times_t)ASSAY_RUN_TIMES_INIT;
  *out_known = e->backend && e->backend->times;
  return *out_known ? e->backend->times(e->state, out) : NULL;
}

size_t assay_executor_planned_bytes(const assay_executor_t* e) {
  return e->backend && e->backend->planned ? e->backend->planned(e->state) : 0;
}

void assay_executor_explain(const assay_executor_t* e, size_t i, assay_str_t* out) {
  if (e->backend && e->backend->explain) e->backend->explain(e->state, i, out);
}

assay_format_t assay_executor_executed(const assay_executor_t* e, size_t i) {
  if (e->backend && e->backend->executed) return e->backend->executed(e->state, i);
  return e->engine ? assay_plan_layers(assay_engine_plan(e->engine))->layers[i].format
                   : ASSAY_FORMAT_NONE;
}
