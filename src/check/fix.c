// The fix: the fewest layers in higher precision, found from the account and verified by running.
#include "check/fix.h"

#include "account/samples_run.h"
#include "base/alloc.h"
#include "diagnose/fewest.h"

// Fewer layers are tried for in so much work of the samples' runs, and in so many runs.
static const double REMOVAL_WORK = 2e9;
enum { MIN_REMOVALS = 4, MAX_REMOVALS = 512 };

typedef struct runner {
  const assay_check_t* check;
  const assay_samples_t *inputs, *golden;
} runner_t;

// All samples in this precision, judged as the check judges: by an account's truth.
static assay_status_t run(void* user, const assay_precision_t* precision, assay_run_result_t* out,
                          assay_plan_t** out_plan, assay_taken_t** out_taken) {
  const runner_t* r = user;
  const assay_check_setting_t* o = &r->check->options;
  const assay_account_options_t options = {.unquantized = o->unquantized, .outputs_only = true};
  assay_model_t* model = r->check->model;
  assay_run_result_t result = {0};
  assay_plan_t* plan = NULL;
  assay_account_t* account = NULL;
  (void)out_taken;
  assay_status_t st = assay_plan_create(model, precision, &o->plan, o->seed, &plan);
  if (!st) st = assay_account_create(plan, o->backend, &options, &account);
  if (!st) st = assay_output_checks_create(model->graph, o->require, &result.outputs);
  if (!st)
    st = assay_samples_run(account, model, r->inputs, r->golden, r->check->golden_quantized,
                           o->require, result.outputs, &result.faithful, NULL, NULL);
  assay_account_destroy(account);
  if (st) return assay_plan_destroy(plan), assay_run_result_deinit(&result), st;
  *out = result;
  *out_plan = plan;
  return NULL;
}

assay_status_t assay_fix_search(assay_check_t* c, const assay_samples_t* inputs,
                                const assay_samples_t* golden) {
  const assay_check_setting_t* o = &c->options;
  runner_t runner = {c, inputs, golden};
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
      .runner = &runner,
      .progress = o->progress,
      .user = o->user};
  assay_fewest_found_t found = {0};
  ASSAY_TRY(assay_fewest_find(&setting, &found));
  assay_fix_front_take(o->fix, c->plan, c->account, &found, &c->front);
  c->fix = found.fix;
  c->has_fix = found.has_fix;
  found.fix = (assay_fix_t){0};
  assay_fewest_found_deinit(&found);
  return NULL;
}
