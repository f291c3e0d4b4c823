// A run of all samples with an account, and the statistics of their outputs.
#include "account/samples_run.h"

#include "base/alloc.h"
#include "eval/evaluator.h"

// Adds the outputs of one sample. plain: holds truth for the comparison with golden; NULL: the
// account's.
static assay_status_t add_outputs(assay_account_t* account, const assay_graph_t* g,
                                  const assay_evaluator_t* plain, assay_tensor_t* const* golden,
                                  assay_output_check_t* outputs) {
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_output_check_t* o = &outputs[i];
    assay_tensor_t* e = assay_account_engine_output(account, i);
    assay_tensor_t* t = assay_account_truth_output(account, i);
    if (!e || !t) continue;
    ASSAY_TRY(assay_output_add(o, e, t));
    const assay_tensor_t* exported = plain ? assay_evaluator_get(plain, g->outputs[i]) : t;
    if (golden && golden[i]) ASSAY_TRY(assay_output_add_golden(o, e, exported, golden[i]));
  }
  return NULL;
}

// Outputs of all samples, for the user's commands.
static void keep_outputs(assay_account_t* account, size_t sample, size_t n_outputs,
                         assay_script_data_t* kept) {
  for (size_t i = 0; kept->engine && i < n_outputs; i++) {
    kept->engine[sample * n_outputs + i] =
        assay_tensor_retain(assay_account_engine_output(account, i));
    kept->truth[sample * n_outputs + i] =
        assay_tensor_retain(assay_account_truth_output(account, i));
  }
}

static assay_status_t run_sample(assay_account_t* account, const assay_model_t* model,
                                 assay_tensor_t* const* inputs, assay_tensor_t* const* golden,
                                 bool golden_quantized, assay_output_check_t* outputs) {
  assay_evaluator_t* plain = NULL;
  assay_status_t st = assay_account_run(account, inputs);
  if (!st && golden && !golden_quantized && assay_model_quantizes(model))
    st = assay_truth_unquantized(model, inputs, &plain);
  if (!st) st = add_outputs(account, model->graph, plain, golden, outputs);
  assay_evaluator_destroy(plain);
  return st;
}

static assay_status_t add_all(assay_account_t* account, bool golden_quantized,
                              assay_script_data_t* data, assay_output_check_t* outputs) {
  const assay_graph_t* g = data->model->graph;
  const assay_samples_t* golden = data->golden;
  for (size_t k = 0; k < data->inputs->n; k++) {
    assay_tensor_t* const* want =
        golden && golden->n ? assay_samples_get(golden, golden->n == 1 ? 0 : k) : NULL;
    assay_outputs_note_inputs(outputs, g->n_outputs, g->n_inputs,
                              assay_samples_get(data->inputs, k));
    ASSAY_TRY(run_sample(account, data->model, assay_samples_get(data->inputs, k), want,
                         golden_quantized, outputs));
    keep_outputs(account, k, g->n_outputs, data);
  }
  return NULL;
}

assay_status_t assay_samples_add(assay_account_t* account, const assay_model_t* model,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 bool golden_quantized, assay_output_check_t* outputs) {
  assay_script_data_t data = {.model = model, .inputs = inputs, .golden = golden};
  return add_all(account, golden_quantized, &data, outputs);
}

assay_status_t assay_samples_judge(const assay_model_t* model, const assay_requirements_t* require,
                                   assay_output_check_t* outputs, bool* out_faithful) {
  ASSAY_TRY(assay_outputs_want_any(outputs, model->graph->n_outputs));
  *out_faithful = assay_outputs_hold(outputs, model->graph->n_outputs, require);
  return NULL;
}

static assay_status_t run_all(assay_account_t* account, bool golden_quantized,
                              const assay_requirements_t* require, assay_script_data_t* data,
                              assay_output_check_t* outputs, bool* out_faithful, bool* met,
                              assay_str_t* unmet) {
  ASSAY_TRY(add_all(account, golden_quantized, data, outputs));
  ASSAY_TRY(assay_samples_judge(data->model, require, outputs, out_faithful));
  return data->engine ? assay_outputs_ask(require, data, out_faithful, met, unmet) : NULL;
}

assay_status_t assay_samples_run(assay_account_t* account, const assay_model_t* model,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 bool golden_quantized, const assay_requirements_t* require,
                                 assay_output_check_t* outputs, bool* out_faithful, bool* met,
                                 assay_str_t* unmet) {
  assay_script_data_t data = {.model = model, .inputs = inputs, .golden = golden};
  const size_t n = inputs->n * model->graph->n_outputs;
  assay_status_t st = NULL;
  if (require && assay_require_has_commands(require)) {
    st = assay_new_array(n, sizeof *data.engine, &data.engine);
    if (!st) st = assay_new_array(n, sizeof *data.truth, &data.truth);
  }
  if (!st)
    st = run_all(account, golden_quantized, require, &data, outputs, out_faithful, met, unmet);
  for (size_t i = 0; i < n; i++) {
    if (data.engine) assay_tensor_release(data.engine[i]);
    if (data.truth) assay_tensor_release(data.truth[i]);
  }
  assay_free(data.engine);
  assay_free(data.truth);
  return st;
}
