// Runs of one model in one precision after the other, judged by one truth: what searches for a
// precision are made of.
#include "account/runs.h"

#include "base/alloc.h"
#include "runtime/executor.h"

// Truth of one sample, by graph output.
typedef struct known {
  assay_tensor_t** truth;     // NULL: not known yet
  assay_tensor_t** exported;  // what golden is held against; NULL: truth
} known_t;

struct assay_runs {
  assay_model_t* model;
  const assay_runs_setting_t* setting;
  known_t* known;  // by sample
  void* shared;    // the backend's
  assay_evaluator_t* evaluator;
  int64_t known_bytes;
  size_t n, n_builds;
};

void assay_run_result_deinit(assay_run_result_t* r) {
  assay_free(r->outputs);
  assay_str_deinit(&r->unmet);
  *r = (assay_run_result_t){0};
}

assay_status_t assay_runs_create(assay_model_t* model, const assay_runs_setting_t* setting,
                                 assay_runs_t** out) {
  assay_runs_t* r = NULL;
  ASSAY_TRY(ASSAY_NEW(&r));
  r->model = model;
  r->setting = setting;
  assay_status_t st = assay_new_array(setting->inputs->n, sizeof *r->known, &r->known);
  if (st) return assay_runs_destroy(r), st;
  *out = r;
  return NULL;
}

static void release_all(assay_tensor_t** at, size_t n) {
  for (size_t i = 0; at && i < n; i++) assay_tensor_release(at[i]);
  assay_free(at);
}

void assay_runs_destroy(assay_runs_t* r) {
  if (!r) return;
  const size_t n = r->model->graph->n_outputs;
  for (size_t k = 0; r->known && k < r->setting->inputs->n; k++) {
    release_all(r->known[k].truth, n);
    release_all(r->known[k].exported, n);
  }
  if (r->shared) r->setting->backend->unshare(r->shared);
  assay_evaluator_destroy(r->evaluator);
  assay_free(r->known);
  assay_free(r);
}

void assay_runs_drop(assay_runs_t* r) {
  if (r->shared) r->setting->backend->unshare(r->shared);
  r->shared = NULL;
}

size_t assay_runs_count(const assay_runs_t* r) { return r->n; }
size_t assay_runs_builds(const assay_runs_t* r) { return r->n_builds; }

// ---- truth --------------------------------------------------------------------------------------

static assay_status_t keep_outputs(const assay_evaluator_t* m, const assay_graph_t* g,
                                   assay_tensor_t*** out) {
  assay_tensor_t** at = NULL;
  ASSAY_TRY(assay_new_array(g->n_outputs, sizeof *at, &at));
  for (size_t i = 0; i < g->n_outputs; i++)
    at[i] = assay_tensor_retain(assay_evaluator_get(m, g->outputs[i]));
  *out = at;
  return NULL;
}

static bool has_golden(const assay_runs_t* r) {
  return r->setting->golden && r->setting->golden->n;
}

// Golden of the network before quantization is held against truth without it.
static assay_status_t know_exported(assay_runs_t* r, size_t sample) {
  assay_evaluator_t* m = NULL;
  if (!has_golden(r) || r->setting->golden_quantized || !assay_model_quantizes(r->model))
    return NULL;
  assay_status_t st =
      assay_truth_unquantized(r->model, assay_samples_get(r->setting->inputs, sample), &m);
  if (!st) st = keep_outputs(m, r->model->graph, &r->known[sample].exported);
  assay_evaluator_destroy(m);
  return st;
}

static int64_t bytes_of(assay_tensor_t* const* at, size_t n) {
  int64_t bytes = 0;
  for (size_t i = 0; i < n; i++)
    if (at[i] && at[i]->kind == ASSAY_KIND_TENSOR)
      bytes += at[i]->size * (int64_t)assay_store_elem_bytes(at[i]->store);
  return bytes;
}

assay_status_t assay_runs_know(assay_runs_t* r, size_t sample, const assay_account_t* account) {
  const size_t n = r->model->graph->n_outputs;
  assay_tensor_t** truth = NULL;
  if (r->known[sample].truth) return NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *truth, &truth));
  for (size_t i = 0; i < n; i++)
    truth[i] = assay_tensor_retain(assay_account_truth_output(account, i));
  r->known[sample].truth = truth;
  r->known_bytes += bytes_of(truth, n);
  return know_exported(r, sample);
}

static assay_status_t evaluate(assay_runs_t* r, size_t sample) {
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = r->setting->unquantized, .seed = r->setting->seed};
  assay_tensor_t* const* inputs = assay_samples_get(r->setting->inputs, sample);
  if (r->known[sample].truth) return NULL;
  const assay_model_t* model = r->model;
  if (!r->evaluator) ASSAY_TRY(assay_evaluator_create(model, &config, &r->evaluator));
  ASSAY_TRY(assay_evaluator_run_on(r->evaluator, inputs));
  ASSAY_TRY(keep_outputs(r->evaluator, model->graph, &r->known[sample].truth));
  assay_evaluator_reset(r->evaluator);
  r->known_bytes += bytes_of(r->known[sample].truth, model->graph->n_outputs);
  return know_exported(r, sample);
}

// Of many samples with large outputs truth would take more than the model.
static void forget_if_full(assay_runs_t* r, size_t sample) {
  const size_t n = r->model->graph->n_outputs;
  known_t* k = &r->known[sample];
  if (!r->setting->max_known_bytes || r->known_bytes <= r->setting->max_known_bytes) return;
  r->known_bytes -= k->truth ? bytes_of(k->truth, n) : 0;
  release_all(k->truth, n);
  release_all(k->exported, n);
  *k = (known_t){0};
}

// ---- judging ------------------------------------------------------------------------------------

// Adds what an engine gave for a sample; kept: for the user's commands, by sample and output.
static assay_status_t add_sample(assay_runs_t* r, size_t sample, assay_tensor_t* const* engine,
                                 assay_run_result_t* out, assay_tensor_t** kept) {
  const known_t* k = &r->known[sample];
  const assay_samples_t* golden = has_golden(r) ? r->setting->golden : NULL;
  assay_tensor_t* const* want =
      golden ? assay_samples_get(golden, golden->n == 1 ? 0 : sample) : NULL;
  const size_t n = r->model->graph->n_outputs;
  assay_outputs_note_inputs(out->outputs, n, r->model->graph->n_inputs,
                            assay_samples_get(r->setting->inputs, sample));
  for (size_t i = 0; i < n; i++) {
    if (kept) kept[sample * n + i] = assay_tensor_retain(engine[i]);
    if (!engine[i] || !k->truth[i]) continue;
    ASSAY_TRY(assay_output_add(&out->outputs[i], engine[i], k->truth[i]));
    if (want && want[i])
      ASSAY_TRY(assay_output_add_golden(&out->outputs[i], engine[i],
                                        (k->exported ? k->exported : k->truth)[i], want[i]));
  }
  return NULL;
}

static assay_status_t ask(assay_runs_t* r, assay_tensor_t** engine, assay_run_result_t* out) {
  const assay_samples_t* inputs = r->setting->inputs;
  const size_t n = r->model->graph->n_outputs;
  assay_tensor_t** truth = NULL;
  ASSAY_TRY(assay_new_array(inputs->n * n, sizeof *truth, &truth));
  for (size_t k = 0; k < inputs->n; k++)
    for (size_t i = 0; i < n; i++) truth[k * n + i] = r->known[k].truth[i];
  const assay_script_data_t data = {.model = r->model,
                                    .inputs = inputs,
                                    .golden = r->setting->golden,
                                    .engine = engine,
                                    .truth = truth};
  assay_status_t st =
      assay_outputs_ask(r->setting->require, &data, &out->faithful, NULL, &out->unmet);
  assay_free(truth);
  return st;
}

// ---- running ------------------------------------------------------------------------------------

// Something that runs the samples: a state of the backend's, or an executor of an engine.
typedef struct engine {
  const assay_graph_t* graph;
  void* state;
  const assay_backend_t* backend;
  size_t n_layers;
  assay_executor_t* executor;  // NULL: the state
} engine_t;

static assay_status_t run_sample(const engine_t* e, assay_tensor_t* const* inputs) {
  if (e->executor) {
    assay_executor_reset(e->executor);
    ASSAY_TRY(assay_executor_set_inputs(e->executor, inputs));
    return assay_executor_run(e->executor);
  }
  e->backend->reset(e->state);
  ASSAY_TRY(assay_backend_set_inputs(e->backend, e->state, e->graph, inputs));
  for (size_t l = 0; l < e->n_layers; l++) ASSAY_TRY(e->backend->step(e->state, l));
  return NULL;
}

static assay_status_t output_of(const engine_t* e, size_t i, assay_tensor_t** out) {
  const assay_value_t* v = e->graph->outputs[i];
  return e->executor ? assay_executor_output(e->executor, v, out)
                     : assay_backend_output(e->backend, e->state, v, out);
}

// A search by what cannot be judged would find anything.
static assay_status_t want_judgeable(const assay_runs_t* r, const assay_output_check_t* outputs,
                                     size_t n) {
  assay_str_t why = {0};
  assay_status_t st = assay_outputs_want_any(outputs, n);
  if (!st && assay_outputs_are_open(outputs, n, r->setting->require, &why))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "no precision meets what is required: %s",
                     assay_str_get(&why));
  assay_str_deinit(&why);
  return st;
}

static assay_status_t run_samples(assay_runs_t* r, const engine_t* e, assay_taken_t* taken,
                                  assay_run_result_t* out, assay_tensor_t** kept) {
  const size_t n = e->graph->n_outputs;
  assay_tensor_t** got = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *got, &got));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < r->setting->inputs->n; k++) {
    st = evaluate(r, k);
    if (!st) st = run_sample(e, assay_samples_get(r->setting->inputs, k));
    if (taken) assay_taken_end(taken);
    for (size_t i = 0; !st && i < n; i++) st = output_of(e, i, &got[i]);
    if (!st) st = add_sample(r, k, got, out, kept);
    if (!kept) forget_if_full(r, k);  // commands of the user's are asked about all samples at once
  }
  assay_free(got);
  if (!st && !r->setting->part) st = want_judgeable(r, out->outputs, n);
  if (st) return st;
  out->faithful = assay_outputs_hold(out->outputs, n, r->setting->require);
  return kept ? ask(r, kept, out) : NULL;
}

// All samples on an engine, and what is said about them.
static assay_status_t judge(assay_runs_t* r, const engine_t* e, assay_taken_t* taken,
                            assay_run_result_t* out) {
  const assay_requirements_t* require = r->setting->require;
  const size_t n = r->setting->inputs->n * r->model->graph->n_outputs;
  assay_tensor_t** kept = NULL;
  if (require && assay_require_has_commands(require))
    ASSAY_TRY(assay_new_array(n, sizeof *kept, &kept));
  assay_status_t st = run_samples(r, e, taken, out, kept);
  release_all(kept, n);
  r->n++;
  return st;
}

static assay_status_t try_state(assay_runs_t* r, const assay_plan_t* plan, assay_taken_t* taken,
                                assay_run_result_t* out) {
  const assay_backend_t* b = r->setting->backend;
  const assay_layers_t* layers = assay_plan_layers(plan);
  engine_t e = {.graph = layers->model->graph, .backend = b, .n_layers = layers->n_layers};
  if (b->share && !r->shared) ASSAY_TRY(assay_backend_share(b, layers, NULL, &r->shared));
  ASSAY_TRY(
      assay_backend_open(b, layers, r->shared, taken ? assay_taken_tap(taken) : NULL, &e.state));
  assay_status_t st = judge(r, &e, taken, out);
  b->close(e.state);
  return st;
}

// ---- builds -------------------------------------------------------------------------------------

static assay_status_t run_first(void* user, assay_engine_t* engine) {
  const assay_runs_t* r = user;
  assay_executor_t* x = NULL;
  ASSAY_TRY(assay_executor_run_engine(engine, NULL, &x));
  const engine_t e = {.graph = assay_executor_graph(x), .executor = x};
  assay_status_t st =
      r->setting->inputs->n ? run_sample(&e, assay_samples_get(r->setting->inputs, 0)) : NULL;
  assay_executor_destroy(x);
  return st;
}

static assay_status_t build(assay_runs_t* r, const assay_precision_t* precision,
                            assay_engine_t** out) {
  static const assay_backend_options_t timed = {.measure = true};
  const assay_runs_setting_t* s = r->setting;
  assay_model_t* model = NULL;
  assay_plan_t* plan = NULL;
  assay_engine_t* engine = NULL;
  ASSAY_TRY(assay_onnx_load(s->rebuild, s->n_shapes, s->shapes, &model));
  assay_status_t st = assay_plan_create(model, precision, s->plan, s->seed, &plan);
  if (!st) st = assay_engine_create(plan, s->backend, &timed, &engine);
  // Kernels are made and timed in a run; a backend that shares nothing has none.
  if (!st && s->backend->share) st = run_first(r, engine);
  if (!st && s->backend->share) st = assay_engine_settle(engine, &timed, NULL, run_first, r);
  assay_model_release(model);
  if (st) return assay_engine_release(engine), st;
  *out = engine;
  return NULL;
}

static assay_status_t try_build(assay_runs_t* r, const assay_precision_t* precision,
                                assay_run_result_t* out) {
  assay_engine_t* engine = NULL;
  engine_t e = {0};
  ASSAY_TRY(build(r, precision, &engine));
  r->n_builds++;
  assay_status_t st = assay_executor_run_engine(engine, NULL, &e.executor);
  if (!st) e.graph = assay_executor_graph(e.executor);
  if (!st) st = judge(r, &e, NULL, out);
  assay_executor_destroy(e.executor);
  assay_engine_release(engine);
  return st;
}

static assay_status_t try_elsewhere(assay_runs_t* r, const assay_precision_t* precision,
                                    assay_run_result_t* out) {
  const assay_runs_setting_t* s = r->setting;
  const size_t n = r->model->graph->n_outputs;
  ASSAY_TRY(s->elsewhere(s->user, precision, out->outputs));
  ASSAY_TRY(want_judgeable(r, out->outputs, n));
  out->faithful = assay_outputs_hold(out->outputs, n, s->require);
  r->n++;
  return NULL;
}

assay_status_t assay_runs_try(assay_runs_t* r, const assay_precision_t* precision,
                              assay_run_result_t* out, assay_plan_t** out_plan,
                              assay_taken_t** out_taken) {
  assay_run_result_t result = {0};
  assay_plan_t* plan = NULL;
  assay_taken_t* taken = NULL;
  ASSAY_TRY(assay_output_checks_create(r->model->graph, r->setting->require, &result.outputs));
  assay_status_t st = NULL;
  const bool elsewhere = r->setting->elsewhere && !out_plan && !out_taken;
  if (!elsewhere && (!r->setting->rebuild || out_plan))
    st = assay_plan_create(r->model, precision, r->setting->plan, r->setting->seed, &plan);
  if (!st && out_taken) st = assay_taken_create(plan, &taken);
  if (!st)
    st = elsewhere             ? try_elsewhere(r, precision, &result)
         : r->setting->rebuild ? try_build(r, precision, &result)
                               : try_state(r, plan, taken, &result);
  if (st) {
    assay_taken_destroy(taken);
    assay_plan_destroy(plan);
    assay_run_result_deinit(&result);
    return st;
  }
  *out = result;
  if (out_taken) *out_taken = taken;
  if (out_plan)
    *out_plan = plan;
  else
    assay_plan_destroy(plan);
  return NULL;
}

assay_status_t assay_runs_try_model(assay_runs_t* r, assay_model_t* model,
                                    const assay_precision_t* precision, assay_run_result_t* out) {
  assay_run_result_t result = {0};
  assay_plan_t* plan = NULL;
  // Packed weights are those of the own model.
  void* shared = r->shared;
  ASSAY_TRY(assay_output_checks_create(r->model->graph, r->setting->require, &result.outputs));
  assay_status_t st =
      assay_plan_create(model, precision, r->setting->plan, r->setting->seed, &plan);
  r->shared = NULL;
  if (!st) st = try_state(r, plan, NULL, &result);
  assay_runs_drop(r);
  r->shared = shared;
  assay_plan_destroy(plan);
  if (st) return assay_run_result_deinit(&result), st;
  *out = result;
  return NULL;
}
