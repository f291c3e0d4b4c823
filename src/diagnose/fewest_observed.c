// The fewest layers in higher precision, from the account of a run as asked (fewest.h).
#include "diagnose/fewest_strategies.h"

enum { MAX_RUNS = 2 };

typedef struct state {
  int n_runs;
} state_t;

// Where nothing passes a range: by shares, as many as the requirements ask for, and some to spare.
static assay_status_t choose_first(assay_fewest_t* f) {
  const assay_output_check_t* outputs = f->setting->outputs;
  assay_fp32_set_add_by_range(&f->set, false);
  if (f->set.n_chosen) return NULL;
  assay_fp32_set_add_by_range(&f->set, true);
  if (f->set.n_chosen) return NULL;
  ASSAY_TRY(assay_fp32_set_add_by_share(&f->set, f->subject.plan, f->setting->shares, outputs,
                                        assay_fp32_set_tolerated(&f->subject, outputs) / 1.5,
                                        false));
  if (!f->set.n_chosen) assay_fp32_set_add_by_error(&f->set, 0.1);
  return NULL;
}

// What did not do shows how much error is left, and where it comes from.
static assay_status_t choose_more(assay_fewest_t* f) {
  const assay_fewest_setting_t* s = f->setting;
  const assay_output_check_t* outputs = f->found->fix.outputs;
  const size_t before = f->set.n_chosen;
  const assay_shares_options_t options = {.unquantized = s->unquantized};
  assay_shares_t shares = {0};
  assay_fp32_set_add_by_range(&f->set, true);
  ASSAY_TRY(
      assay_shares_run(f->plan, s->backend, assay_samples_get(s->inputs, 0), &options, &shares));
  assay_status_t st =
      assay_fp32_set_add_by_share(&f->set, f->plan, &shares, outputs,
                                  assay_fp32_set_tolerated(&f->subject, outputs) / 4, false);
  assay_shares_deinit(&shares);
  if (!st && f->set.n_chosen == before) assay_fp32_set_add_by_error(&f->set, 0.001);
  return st;
}

// ---- the strategy -------------------------------------------------------------------------------

static assay_status_t propose(assay_fewest_t* f, assay_fewest_step_t* out) {
  state_t* s = f->state;
  const size_t before = f->set.n_chosen;
  if (s->n_runs == MAX_RUNS || f->fix->verified) return NULL;
  ASSAY_TRY(s->n_runs ? choose_more(f) : choose_first(f));
  if (f->set.n_chosen == before) return NULL;
  assay_fewest_progress(f, "verifying a fix", 0);
  *out = ASSAY_FEWEST_TRY;
  return NULL;
}

static assay_status_t learn(assay_fewest_t* f, bool tried_none) {
  state_t* s = f->state;
  (void)tried_none;
  s->n_runs++;
  assay_fewest_take_fix(f);
  return NULL;
}

static assay_status_t finish(assay_fewest_t* f) {
  ASSAY_TRY(assay_fp32_set_record(&f->set, f->fix));
  f->found->has_fix = true;
  return NULL;
}

const assay_fewest_row_t assay_fewest_observed = {
    .state_bytes = sizeof(state_t), .propose = propose, .learn = learn, .finish = finish};
