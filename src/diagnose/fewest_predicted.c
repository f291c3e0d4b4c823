// The fewest layers in higher precision, from what truth alone predicts, and the run of that
// (fewest.h).
#include <math.h>

#include "diagnose/fewest_strategies.h"

enum { MAX_RUNS = 3 };

typedef struct state {
  bool started, ended;  // choosing layers
  bool confirms;        // that the model as asked does not do
  size_t n_accounts;    // runs with a whole account
} state_t;

// The relative RMS error at which cosines are the default's 0.999.
static const double TOLERATED = 0.0447;

// Before anything ran, what loses so much that no output could be right; a requirement of the
// user's may be for less.
static assay_status_t choose_before(assay_fewest_t* f) {
  static const double SURELY = 10;
  const assay_requirements_t* r = f->subject.require;
  assay_fp32_set_add_by_range(&f->set, false);
  return r && r->n ? NULL : assay_fp32_set_add_by_loss(&f->set, SURELY * TOLERATED);
}

// The relative RMS error that the run's output with the least room can bear.
static double tolerated(const assay_fewest_t* f, const assay_output_check_t* outputs) {
  const double part = assay_fp32_set_tolerated(&f->subject, outputs);
  double min = INFINITY;
  for (size_t i = 0; i < f->subject.model->graph->n_outputs; i++) {
    const assay_error_sum_t* e = &outputs[i].error;
    if (outputs[i].faithful || !outputs[i].is_float || !(e->sum_ref2 > 0)) continue;
    min = fmin(min, sqrt(part * e->sum_err2 / e->sum_ref2));
  }
  return min < (double)INFINITY ? min : TOLERATED;
}

// What the last run has made tells where its error comes from. Where it has no shares (integers),
// what each layer does to the numbers decides: only a whole account of another run knows that.
static assay_status_t choose_by_run(assay_fewest_t* f, bool first) {
  const assay_fewest_setting_t* s = f->setting;
  const assay_shares_options_t options = {.unquantized = s->unquantized};
  const assay_output_check_t* outputs = first ? f->found->outputs : f->found->fix.outputs;
  const double rest = assay_fp32_set_tolerated(&f->subject, outputs) / (first ? 1.5 : 4);
  assay_shares_t shares = {0};
  assay_fewest_progress(f, "splitting the error", 0);
  ASSAY_TRY(assay_shares_of(f->taken, assay_samples_get(s->inputs, 0), &options, &shares));
  assay_status_t st = assay_fp32_set_add_by_share(&f->set, f->plan, &shares, outputs, rest, first);
  if (!s->shares->n && !f->found->fix.runs)
    *s->shares = shares;
  else
    assay_shares_deinit(&shares);
  return st;
}

static assay_status_t account_for_run(assay_fewest_t* f, state_t* state) {
  const assay_fewest_setting_t* s = f->setting;
  const assay_account_options_t options = {.unquantized = s->unquantized};
  assay_account_t* seen = NULL;
  if (f->n_runs + state->n_accounts + 2 > MAX_RUNS) return NULL;
  ASSAY_TRY(assay_account_create(f->subject.plan, s->backend, &options, &seen));
  state->n_accounts++;
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < s->inputs->n; k++)
    st = assay_account_run(seen, assay_samples_get(s->inputs, k));
  if (st) return assay_account_destroy(seen), st;
  assay_account_destroy(*s->account);
  *s->account = seen;
  f->subject.account = seen;
  assay_fp32_set_add_by_error(&f->set, 0.1);
  return NULL;
}

// After a run that did not do: more layers.
static assay_status_t choose_more(assay_fewest_t* f, state_t* s) {
  const size_t before = f->set.n_chosen;
  const bool first = !before;
  const assay_output_check_t* outputs = first ? f->found->outputs : f->found->fix.outputs;
  if (before) assay_fp32_set_add_by_range(&f->set, true);
  ASSAY_TRY(assay_fp32_set_add_by_loss(&f->set, tolerated(f, outputs)));
  if (f->taken && f->set.n_chosen == before) ASSAY_TRY(choose_by_run(f, first));
  return f->set.n_chosen == before && first ? account_for_run(f, s) : NULL;
}

// A range that values leave need not show in the outputs, though no reader absorbs it. Where a run
// is left, it tells whether any layer has to be kept.
static bool can_confirm(const assay_fewest_t* f, const state_t* s) {
  return !s->confirms && f->setting->as_asked && f->found->fix.verified &&
         !f->found->ran_as_asked && f->n_runs < MAX_RUNS;
}

// Whether nothing foretold is enough, a run shows; what it makes is needed if it does not do.
static assay_status_t propose(assay_fewest_t* f, assay_fewest_step_t* out) {
  state_t* s = f->state;
  if (!s->started) {
    ASSAY_TRY(choose_before(f));
    f->take = !f->set.n_chosen;
    s->started = true;
  }
  if (!s->ended && f->n_runs + s->n_accounts < MAX_RUNS) {
    assay_fewest_progress(f, f->set.n_chosen ? "verifying a fix" : "running", 0);
    *out = ASSAY_FEWEST_TRY;
  } else if (can_confirm(f, s)) {
    assay_fewest_progress(f, "running as asked", 0);
    s->ended = s->confirms = true;
    f->take = false;
    *out = ASSAY_FEWEST_TRY_NONE;
  }
  return NULL;
}

static assay_status_t learn(assay_fewest_t* f, bool tried_none) {
  state_t* s = f->state;
  if (tried_none)
    assay_fewest_take_asked(f);
  else
    assay_fewest_take_fix(f);
  if (s->confirms) {
    if (!f->found->faithful) return NULL;
    assay_fp32_set_empty(&f->set);
    f->found->fix.verified = false;
    return NULL;
  }
  s->ended = f->found->faithful || f->found->fix.verified;
  if (s->ended) return NULL;
  const size_t before = f->set.n_chosen;
  f->take = true;
  ASSAY_TRY(choose_more(f, s));
  // The same again would only show what it made, of which the last run has no use.
  s->ended = f->set.n_chosen == before && (f->taken || f->n_runs + 1 >= MAX_RUNS);
  return NULL;
}

static assay_status_t finish(assay_fewest_t* f) {
  const state_t* s = f->state;
  f->found->runs += s->n_accounts;
  f->found->has_fix = f->set.n_chosen > 0;
  return f->found->has_fix ? assay_fp32_set_record(&f->set, &f->found->fix) : NULL;
}

const assay_fewest_row_t assay_fewest_predicted = {
    .state_bytes = sizeof(state_t), .propose = propose, .learn = learn, .finish = finish};
