// The account of a run: for each layer, what it did to the numbers and what came in.
#include "account/account.h"

#include <math.h>

#include "account/account_internal.h"
#include "account/external.h"
#include "base/alloc.h"

const char* assay_verdict_name(assay_verdict_t v) {
  static const char* const names[] = {
      "exact",   "rounding",  "truth uncertain", "less accurate", "unclassified", "amplified",
      "flipped", "underflow", "overflow",        "invalid",       "defect"};
  return names[v];
}

assay_status_t assay_account_create(const assay_plan_t* plan, const assay_backend_t* backend,
                                    const assay_account_options_t* options, assay_account_t** out) {
  assay_account_t* a = NULL;
  ASSAY_TRY(ASSAY_NEW(&a));
  a->layers = assay_plan_layers(plan);
  a->backend = backend;
  a->options = *options;
  const assay_model_t* m = a->layers->model;
  a->tap = (assay_tap_t){.layer = assay_account_on_layer, .user = a};
  assay_evaluator_config_t truth = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = options->unquantized, .seed = a->layers->seed};
  if (!options->outputs_only)
    truth.hooks = (assay_evaluator_hooks_t){
        .after = options->predict ? assay_account_reference_only : assay_account_after_truth,
        .user = a};
  assay_status_t st = assay_evaluator_create(m, &truth, &a->truth);
  if (!st) st = assay_locals_create(a->layers, options->unquantized, &a->locals);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->queues, &a->queues);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->entering, &a->entering);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->accounts, &a->accounts);
  if (!st && !options->predict)
    st = assay_new_array((size_t)m->n_node_ids, sizeof *a->sums, &a->sums);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *a->value_error, &a->value_error);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *a->value_max, &a->value_max);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *a->stored, &a->stored);
  if (!st && !options->predict)
    st = assay_backend_open(backend, a->layers, NULL, options->outputs_only ? NULL : &a->tap,
                            &a->engine);
  if (!st && backend->external && a->engine) {
    const assay_outer_t outer = {.get = backend->get, .user = a->engine};
    assay_locals_set_outer(a->locals, &outer);
  }
  if (st) return assay_account_destroy(a), st;
  *out = a;
  return NULL;
}

static void empty_queues(assay_account_t* a) {
  if (!a->queues) return;
  for (int i = 0; i < a->layers->model->n_node_ids; i++)
    for (assay_record_t* r; (r = assay_record_pop(&a->queues[i]));) assay_record_free(r);
  for (int i = 0; a->entering && i < a->layers->model->n_node_ids; i++)
    assay_entering_deinit(&a->entering[i]);
}

void assay_account_destroy(assay_account_t* a) {
  if (!a) return;
  empty_queues(a);
  if (a->engine) a->backend->close(a->engine);
  assay_evaluator_destroy(a->truth);
  assay_locals_destroy(a->locals);
  assay_evaluator_destroy(a->plain);
  assay_free(a->queues);
  assay_free(a->entering);
  assay_free(a->accounts);
  assay_free(a->sums);
  assay_free(a->order);
  assay_free(a->value_error);
  assay_free(a->value_max);
  assay_free(a->stored);
  assay_free(a);
}

static assay_status_t set_inputs(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = a->layers->model->graph;
  assay_evaluator_reset(a->truth);
  if (a->engine) a->backend->reset(a->engine);
  empty_queues(a);
  // Of the last sample: a value that this one does not have carries nothing over.
  for (int v = 0; v < a->layers->model->n_values; v++) a->value_error[v] = a->value_max[v] = 0;
  ASSAY_TRY(assay_evaluator_set_inputs_widened(a->truth, inputs));
  // The same canonical tensors: one copy of an input serves both.
  for (size_t i = 0; a->engine && i < g->n_inputs; i++)
    if (inputs[i])
      ASSAY_TRY(
          a->backend->set(a->engine, g->inputs[i], assay_evaluator_get(a->truth, g->inputs[i])));
  return assay_evaluator_check_inputs(a->truth);
}

static void judge(const assay_account_t* a, assay_layer_account_t* acc) {
  const assay_judgement_t* j = &acc->judged;
  const bool past = j->beyond || acc->outlying || acc->shape_mismatches;
  acc->verdict =
      past && a->backend->external && assay_external_is_near(acc) ? ASSAY_VERDICT_LESS_ACCURATE
      : past                                                      ? ASSAY_VERDICT_DEFECT
      : j->born_nan                                               ? ASSAY_VERDICT_INVALID
      : j->overflowed                                             ? ASSAY_VERDICT_OVERFLOW
      : j->underflowed                                            ? ASSAY_VERDICT_UNDERFLOW
      : acc->flipped || j->flipped                                ? ASSAY_VERDICT_FLIPPED
      : acc->condition > ASSAY_CONDITION_LIMIT                    ? ASSAY_VERDICT_AMPLIFIED
      : j->exact == j->elements                                   ? ASSAY_VERDICT_EXACT
      : j->unbounded || j->exact + j->not_judged == j->elements   ? ASSAY_VERDICT_UNCLASSIFIED
      : j->uncertain                                              ? ASSAY_VERDICT_UNCERTAIN
                                                                  : ASSAY_VERDICT_ROUNDING;
}

void assay_account_judge_all(assay_account_t* a) {
  for (size_t i = 0; a->engine && i < a->n_order; i++) judge(a, &a->accounts[a->order[i]->id]);
}

// Runs truth by itself, following nothing.
static assay_status_t run_plain(assay_account_t* a, assay_tensor_t* const* inputs) {
  assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = a->options.unquantized, .seed = a->layers->seed};
  if (!a->plain) ASSAY_TRY(assay_evaluator_create(a->layers->model, &config, &a->plain));
  ASSAY_TRY(assay_evaluator_run_on(a->plain, inputs));
  a->has_plain = true;
  return NULL;
}

// Truth of the nodes up to the one that a layer ends in.
static assay_status_t catch_up(assay_account_t* a, const assay_layer_t* layer, size_t* next) {
  const assay_graph_t* g = a->layers->model->graph;
  const assay_node_t* last = layer->nodes[layer->n_nodes - 1];
  for (const assay_node_t* node = NULL; node != last && *next < g->n_nodes;) {
    node = g->nodes[(*next)++];
    ASSAY_TRY(assay_evaluator_step(a->truth, node));
  }
  return NULL;
}

assay_status_t assay_account_run(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_layers_t* l = a->layers;
  const assay_graph_t* g = l->model->graph;
  ASSAY_TRY(set_inputs(a, inputs));
  a->flipped = 0;
  a->has_plain = false;
  bool drawn = false;
  for (size_t i = 0, next = 0; i < l->n_layers; i++) {
    if (a->engine) ASSAY_TRY(a->backend->step(a->engine, i));
    if (!a->options.own_only) ASSAY_TRY(catch_up(a, &l->layers[i], &next));
    drawn |= l->layers[i].drawn;
    if (a->options.progress)
      a->options.progress(a->options.user, (double)(i + 1) / (double)l->n_layers);
  }
  // Outputs are judged by truth itself, not by truth that went on with the engine's choices.
  if (a->flipped && !drawn) ASSAY_TRY(run_plain(a, inputs));
  // What the backend has not brought over yet.
  for (size_t i = 0; a->engine && i < g->n_outputs; i++) {
    assay_tensor_t* e = NULL;
    ASSAY_TRY(assay_backend_output(a->backend, a->engine, g->outputs[i], &e));
  }
  assay_account_judge_all(a);
  return NULL;
}

assay_tensor_t* assay_account_engine_output(const assay_account_t* a, size_t i) {
  return a->engine ? a->backend->get(a->engine, a->layers->model->graph->outputs[i]) : NULL;
}

assay_tensor_t* assay_account_truth_output(const assay_account_t* a, size_t i) {
  return assay_evaluator_get(a->has_plain ? a->plain : a->truth,
                             a->layers->model->graph->outputs[i]);
}

size_t assay_account_layer_count(const assay_account_t* a) { return a->n_order; }
const assay_layer_account_t* assay_account_layer(const assay_account_t* a, size_t i) {
  return &a->accounts[a->order[i]->id];
}
const assay_layer_account_t* assay_account_of_node(const assay_account_t* a,
                                                   const assay_node_t* node) {
  const assay_layer_account_t* acc = &a->accounts[node->id];
  return acc->node ? acc : NULL;
}
assay_storage_loss_t assay_account_stored(const assay_account_t* a, const assay_value_t* value) {
  return a->stored ? a->stored[value->id] : (assay_storage_loss_t){0};
}
