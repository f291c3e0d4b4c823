// Which assignment is worth the next run, and what a run of it says of those to come.
#include <math.h>

#include "tune/job.h"

enum { PROBES = 2, NEAR_RUNS = 400 };
static const double NEAR_WORK = 1e9;    // operations that runs near the best may take
static const double LATER_PART = 0.97;  // of the budgets, after the first run

// Looks for the fastest assignment within the budgets. *out_new false: there is none, or it has
// been run.
static assay_status_t propose(assay_tune_job_t* j, bool* out_found, bool* out_new) {
  assay_tune_problem_t* p = assay_tune_job_problem(j);
  *out_new = false;
  assay_tune_job_set_budgets(j);
  assay_tune_job_progress(j, "searching");
  ASSAY_TRY(assay_tune_search(p, j->model.setting.seed, &j->state, out_found, NULL));
  *out_new = *out_found && assay_tune_job_find(j, j->state.format) == SIZE_MAX;
  return NULL;
}

assay_status_t assay_tune_job_verify(assay_tune_job_t* j) {
  assay_tune_job_progress(j, "verifying an assignment");
  j->searched++;
  ASSAY_TRY(assay_tune_job_try(j, &j->state, true));
  j->reference = j->out->n_trials - 1;
  const assay_tune_trial_t* t = &j->out->trials[j->reference];
  j->part = LATER_PART;
  assay_tune_job_correct(j, t);
  if (assay_tune_job_has_commands(j) && assay_tune_statistics_hold(t, j->out->n_outputs))
    j->learned = !assay_tune_job_ask_commands(j, t) && t->met;
  return NULL;
}

bool assay_tune_job_is_faster(assay_tune_job_t* j, const uint8_t* format) {
  assay_tune_job_choose(j);
  return !j->out->met ||
         assay_tune_job_price(j, format) <
             ASSAY_TUNE_FASTER * assay_tune_job_price(j, j->out->trials[j->out->chosen].format);
}

// Where the forecast leaves nothing to try, it may be too high: it was made from runs in one
// format. A run somewhat past the budgets sets it right. False: there is nothing to look at,
// either.
static assay_status_t probe_past(assay_tune_job_t* j, bool* out_any) {
  const double part = j->part;
  bool found = false, is_new = false;
  *out_any = false;
  while (j->probes < PROBES && !*out_any) {
    j->probes++;
    j->part *= ASSAY_TUNE_PROBE_PART;
    ASSAY_TRY(propose(j, &found, &is_new));
    *out_any = found && is_new && assay_tune_job_is_faster(j, j->state.format);
  }
  j->part = part;
  return NULL;
}

assay_status_t assay_tune_job_next(assay_tune_job_t* j, size_t max, bool* out_more) {
  *out_more = false;
  while (!j->learned && j->searched < max) {
    bool found = false, is_new = false;
    ASSAY_TRY(propose(j, &found, &is_new));
    const size_t same = found && !is_new ? assay_tune_job_find(j, j->state.format) : SIZE_MAX;
    if (same != SIZE_MAX && !j->out->trials[same].met && j->part > 0.1) {
      // What has been run and did not do comes up again: look further within.
      j->part *= 0.7;
      continue;
    }
    if (!found || !is_new || !assay_tune_job_is_faster(j, j->state.format))
      ASSAY_TRY(probe_past(j, &is_new));
    if (is_new) assay_tune_state_sum(assay_tune_job_problem(j), &j->state);
    *out_more = is_new;
    return NULL;
  }
  return NULL;
}

size_t assay_tune_job_affordable(const assay_tune_job_t* j) {
  const assay_tune_model_t* m = &j->model;
  double work = 1;
  for (size_t u = 0; u < m->layout.n_units; u++)
    work += m->works.unit[u].products + m->works.unit[u].others + m->works.unit[u].floats;
  const double affordable = fmin(NEAR_WORK / (work * (double)j->inputs->n), NEAR_RUNS);
  return j->options->max_runs ? j->options->max_runs : ASSAY_TUNE_MAX_RUNS + (size_t)affordable;
}
