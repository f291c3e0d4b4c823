// Which layers need more precision than was asked for, so that the outputs do: what `debug
// precision` finds.
#include "debug/precision.h"

#include <math.h>
#include <stdio.h>

#include "base/functions.h"
#include "diagnose/golden/golden_kind.h"
#include "formats/format.h"

// Fewer layers are tried for in so much work of the samples' runs, and in so many runs.
static const double REMOVAL_WORK = 1e10;
enum { MIN_REMOVALS = 12, MAX_REMOVALS = 512 };

static assay_fp32_subject_t subject_of(const assay_precision_found_t* f) {
  return (assay_fp32_subject_t){.model = f->model,
                                .plan = f->plan,
                                .account = f->account,
                                .precision = &f->options.precision,
                                .require = f->options.require};
}

// Truth of all samples, and what it says of the ranges of the layers.
static assay_status_t predict(assay_precision_found_t* f, const assay_samples_t* inputs,
                              assay_runs_t* runs) {
  const assay_check_setting_t* o = &f->options;
  const assay_account_options_t options = {.unquantized = o->unquantized, .predict = true};
  ASSAY_TRY(assay_account_create(f->plan, o->backend, &options, &f->account));
  for (size_t k = 0; k < inputs->n; k++) {
    if (o->progress) o->progress(o->user, "truth", (double)k / (double)inputs->n);
    ASSAY_TRY(assay_account_run(f->account, assay_samples_get(inputs, k)));
    ASSAY_TRY(assay_runs_know(runs, k, f->account));
  }
  return NULL;
}

// The plan is of interest with what was made in it only: a run that builds anew makes none.
static assay_status_t run(void* runs, const assay_precision_t* precision, assay_run_result_t* out,
                          assay_plan_t** out_plan, assay_taken_t** out_taken) {
  return assay_runs_try(runs, precision, out, out_taken ? out_plan : NULL, out_taken);
}

static assay_status_t search(assay_precision_found_t* f, const assay_precision_options_t* options,
                             const assay_samples_t* inputs, assay_runs_t* runs) {
  static const assay_fewest_strategy_t strategies[] = {
      [ASSAY_PRECISION_ACCOUNT] = ASSAY_FEWEST_PREDICTED,
      [ASSAY_PRECISION_BISECT] = ASSAY_FEWEST_BISECT,
      [ASSAY_PRECISION_LINEAR] = ASSAY_FEWEST_LINEAR};
  const assay_check_setting_t* o = &f->options;
  const size_t max_removals =
      f->account ? assay_fewest_affordable(f->account, inputs->n, REMOVAL_WORK, MAX_REMOVALS) : 0;
  const assay_fewest_setting_t setting = {.strategy = strategies[options->mode],
                                          .subject = subject_of(f),
                                          .backend = o->backend,
                                          .unquantized = o->unquantized,
                                          .inputs = inputs,
                                          .shares = &f->shares,
                                          .account = &f->account,
                                          .as_asked = options->as_asked,
                                          .from_end = options->from_end,
                                          .max_removals = max_removals,
                                          .min_removals = MIN_REMOVALS,
                                          .best = options->fix != ASSAY_FIX_ANY,
                                          .run = run,
                                          .runner = runs,
                                          .progress = o->progress,
                                          .user = o->user};
  ASSAY_TRY(assay_fewest_find(&setting, &f->fewest));
  assay_fix_front_take(options->fix, f->plan, f->account, &f->fewest, &f->front);
  return NULL;
}

// Layers that pass a range, or have the error's shares; the sum that takes from what is kept.
static assay_status_t blame(assay_precision_found_t* f) {
  const assay_fewest_found_t* k = &f->fewest;
  const assay_layers_t* layers = assay_plan_layers(f->plan);
  char why[ASSAY_CULPRIT_WHY];
  ASSAY_TRY(assay_culprits_by_range(f->account, &f->culprits));
  if (!f->culprits.n)
    ASSAY_TRY(assay_culprits_by_share(f->plan, f->account, &f->shares, &f->culprits));
  if (!k->cancels || f->culprits.n) return NULL;
  const int l = layers->layer_of_node[k->cancels->id];
  const assay_layer_t* layer = l < 0 ? NULL : &layers->layers[l];
  const assay_layer_account_t* a =
      assay_account_of_node(f->account, layer ? layer->nodes[layer->n_nodes - 1] : k->cancels);
  if (!a || !layer) return NULL;
  snprintf(why, sizeof why, "cancellation: values of %.3g leave %.3g, %s has steps of %.2g there",
           k->cancels_from, k->cancels_to, assay_format_name(layer->format),
           2 * assay_format_info(layer->format)->unit_roundoff *
               assay_exp2(floor(assay_log2(k->cancels_from))));
  return assay_culprits_add(&f->culprits, a, ASSAY_VERDICT_AMPLIFIED, why);
}

static assay_status_t find(assay_precision_found_t* f, const assay_precision_options_t* options,
                           const assay_samples_t* inputs, const assay_samples_t* golden) {
  const assay_check_setting_t* o = &f->options;
  if (!o->unquantized)
    ASSAY_TRY(assay_golden_outputs_are_quantized(f->model, inputs, golden, o->seed,
                                                 &f->golden_quantized));
  const assay_runs_setting_t setting = {.backend = o->backend,
                                        .golden_quantized = f->golden_quantized,
                                        .plan = &o->plan,
                                        .require = o->require,
                                        .inputs = inputs,
                                        .golden = golden,
                                        .unquantized = o->unquantized,
                                        .seed = o->seed,
                                        .rebuild = options->rebuild,
                                        .shapes = options->shapes,
                                        .n_shapes = options->n_shapes};
  const bool predicts = options->mode == ASSAY_PRECISION_ACCOUNT;
  assay_runs_t* runs = NULL;
  if (o->require) ASSAY_TRY(assay_require_resolve(o->require, f->model->graph));
  ASSAY_TRY(assay_plan_create(f->model, &o->precision, &o->plan, o->seed, &f->plan));
  ASSAY_TRY(assay_runs_create(f->model, &setting, &runs));
  assay_status_t st = predicts ? predict(f, inputs, runs) : NULL;
  if (!st) st = search(f, options, inputs, runs);
  if (!st && f->account && f->fewest.has_fix) st = blame(f);
  f->builds = assay_runs_builds(runs);
  assay_runs_destroy(runs);
  return st;
}

assay_status_t assay_precision_find(assay_model_t* model, assay_check_setting_t* check,
                                    const assay_precision_options_t* options,
                                    const assay_samples_t* inputs, const assay_samples_t* golden,
                                    assay_precision_found_t* out) {
  assay_precision_found_t f = {.model = assay_model_retain(model),
                               .options = *check,
                               .n_samples = inputs->n,
                               .n_outputs = model->graph->n_outputs,
                               .n_layers = model->graph->n_nodes};
  check->precision = (assay_precision_t){0};
  assay_status_t st = find(&f, options, inputs, golden);
  if (st) return assay_precision_found_deinit(&f), st;
  *out = f;
  return NULL;
}

void assay_precision_found_deinit(assay_precision_found_t* f) {
  assay_fewest_found_deinit(&f->fewest);
  assay_fix_front_deinit(&f->front);
  assay_culprits_deinit(&f->culprits);
  assay_shares_deinit(&f->shares);
  assay_account_destroy(f->account);
  assay_plan_destroy(f->plan);
  assay_precision_deinit(&f->options.precision);
  assay_model_release(f->model);
  *f = (assay_precision_found_t){0};
}
