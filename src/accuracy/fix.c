#include "accuracy/fix.h"

#include "accuracy/keep.h"
#include "base/alloc.h"

enum { MAX_RUNS = 2 };

// ---- verifying --------------------------------------------------------------------------------------------------

// Runs with the layers chosen so far; *out_plan is the plan of that.
static assay_status_t verify(assay_keep_t* s, assay_check_t* c, const assay_samples_t* inputs,
                             const assay_samples_t* golden, assay_plan_t** out_plan) {
  const assay_precision_t precision = assay_keep_precision(s);
  assay_account_t* account = NULL;
  const assay_account_options_t options = {.unquantized = c->options.unquantized,
                                           .outputs_only = true};
  assay_status_t st =
      assay_plan_create(c->model, &precision, &c->options.plan, c->options.seed, out_plan);
  if (!st) st = assay_account_create(*out_plan, c->options.backend, &options, &account);
  assay_free(c->fix.outputs);
  c->fix.outputs = NULL;
  if (!st) st = assay_outputs_create(c->model->graph, &c->fix.outputs);
  if (!st)
    st = assay_run_samples(account, c->model, inputs, golden, c->options.require, c->fix.outputs,
                           &c->fix.verified, NULL);
  assay_account_destroy(account);
  c->fix.runs++;
  return st;
}

// Where nothing passes a range: by shares, as many as the demands ask for, and some to spare.
static assay_status_t choose_first(assay_keep_t* s) {
  const assay_check_t* c = s->check;
  assay_keep_by_range(s, false);
  if (s->n_chosen) return NULL;
  assay_keep_by_range(s, true);
  if (s->n_chosen) return NULL;
  ASSAY_TRY(assay_keep_by_share(s, c->plan, &c->shares, c->outputs, assay_keep_room(c, c->outputs) / 1.5, false));
  if (!s->n_chosen) assay_keep_by_error(s, 0.1);
  return NULL;
}

// What did not do shows how much error is left, and where it comes from.
static assay_status_t choose_more(assay_keep_t* s, const assay_plan_t* plan,
                                  const assay_samples_t* inputs) {
  const assay_check_t* c = s->check;
  const size_t before = s->n_chosen;
  const assay_shares_options_t options = {.unquantized = c->options.unquantized};
  assay_shares_t shares = {0};
  assay_keep_by_range(s, true);
  ASSAY_TRY(assay_shares_run(plan, c->options.backend, assay_samples_get(inputs, 0), &options,
                             &shares));
  assay_status_t st =
      assay_keep_by_share(s, plan, &shares, c->fix.outputs, assay_keep_room(c, c->fix.outputs) / 4, false);
  assay_shares_deinit(&shares);
  if (!st && s->n_chosen == before) assay_keep_by_error(s, 0.001);
  return st;
}

static assay_status_t search(assay_keep_t* s, assay_check_t* c, const assay_samples_t* inputs,
                             const assay_samples_t* golden) {
  assay_plan_t* plan = NULL;
  assay_status_t st = NULL;
  for (int run = 0; !st && run < MAX_RUNS && !c->fix.verified; run++) {
    const size_t before = s->n_chosen;
    st = run ? choose_more(s, plan, inputs) : choose_first(s);
    if (st || s->n_chosen == before) break;
    assay_plan_destroy(plan);
    plan = NULL;
    if (c->options.progress) c->options.progress(c->options.user, "verifying a fix", 0);
    st = verify(s, c, inputs, golden, &plan);
  }
  assay_plan_destroy(plan);
  if (!st) st = assay_keep_record(s, &c->fix);
  c->has_fix = !st;
  return st;
}

assay_status_t assay_fix_search(assay_check_t* check, const assay_samples_t* inputs,
                                const assay_samples_t* golden) {
  assay_keep_t s = {0};
  ASSAY_TRY(assay_keep_create(check, &s));
  assay_status_t st = search(&s, check, inputs, golden);
  assay_keep_deinit(&s);
  return st;
}
