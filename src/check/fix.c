// The fix: the fewest layers in higher precision, found from the account and verified by running.
#include "check/fix.h"

#include "account/runs.h"
#include "diagnose/fewest.h"

// Fewer layers are tried for in so much work of the samples' runs, and in so many runs.
static const double REMOVAL_WORK = 2e9;
enum { MIN_REMOVALS = 4, MAX_REMOVALS = 512 };

// Truth of samples is kept from run to run up to so much.
static const int64_t MAX_KNOWN_BYTES = (int64_t)256 << 20;

// All samples in this precision, judged by the truth that the check judged by.
static assay_status_t run(void* user, const assay_precision_t* precision, assay_run_result_t* out,
                          assay_plan_t** out_plan, assay_taken_t** out_taken) {
  (void)out_taken;
  return assay_runs_try(user, precision, out, out_plan, NULL);
}

static bool draws(const assay_check_t* c) {
  const assay_layers_t* l = assay_plan_layers(c->plan);
  for (size_t i = 0; i < l->n_all_layers; i++)
    if (l->layers[i].drawn) return true;
  return false;
}

assay_status_t assay_fix_search(assay_check_t* c, const assay_samples_t* inputs,
                                const assay_samples_t* golden) {
  const assay_check_setting_t* o = &c->options;
  assay_runs_t* runs = NULL;
  const assay_runs_setting_t how = {.backend = o->backend,
                                    .plan = &o->plan,
                                    .require = o->require,
                                    .inputs = inputs,
                                    .golden = golden,
                                    .unquantized = o->unquantized,
                                    .golden_quantized = c->golden_quantized,
                                    .max_known_bytes = MAX_KNOWN_BYTES,
                                    .seed = o->seed};
  ASSAY_TRY(assay_runs_create(c->model, &how, &runs));
  // The account holds truth of the sample that it ran last; with what an engine drew, not by
  // itself, of a rewritten model not to the bit, and of parts of the samples none.
  assay_status_t st = NULL;
  if (inputs->n && !c->n_added && !draws(c) && !assay_plan_rewrite(c->plan))
    st = assay_runs_know(runs, inputs->n - 1, c->account);
  const assay_fewest_setting_t setting = {
      .strategy = ASSAY_FEWEST_OBSERVED,
      .subject = {.model = c->model,
                  .plan = c->plan,
                  .account = c->account,
                  .precision = &o->precision,
                  .require = o->require},
      .backend = o->backend,
      .unquantized = o->unquantized,
      .inputs = inputs,
      .shares = &c->shares,
      .outputs = c->outputs,
      .max_removals = assay_fewest_affordable(c->account, inputs->n, REMOVAL_WORK, MAX_REMOVALS),
      .min_removals = MIN_REMOVALS,
      .best = o->fix != ASSAY_FIX_ANY,
      .run = run,
      .runner = runs,
      .progress = o->progress,
      .user = o->user};
  assay_fewest_found_t found = {0};
  if (!st) st = assay_mended_find(c, runs, setting.max_removals);
  if (!st) st = assay_fewest_find(&setting, &found);
  assay_runs_destroy(runs);
  if (st) return st;
  assay_fix_front_take(o->fix, c->plan, c->account, &found, &c->front);
  c->fix = found.fix;
  c->has_fix = found.has_fix;
  found.fix = (assay_fix_t){0};
  assay_fewest_found_deinit(&found);
  return NULL;
}
