// How large the outputs' errors may be, and what runs say of the forecast.
#include <math.h>

#include "tune/job.h"

// Of an error that a command of the user's has refused.
static const double COMMAND_PART = 0.25;

// How large each output's error may be, by the statistics of the reference and by what commands
// have said.
void assay_tune_job_set_budgets(assay_tune_job_t* j) {
  assay_tune_problem_t* p = assay_tune_job_problem(j);
  const assay_requirements_t* require = j->model.setting.require;
  const assay_output_check_t* reference = j->out->trials[j->reference].outputs;
  for (size_t o = 0; o < p->n_outputs; o++) {
    const double was = assay_tune_mean_square(&reference[o]);
    const double ratio = was > 0
                             ? assay_tune_largest_ratio(&reference[o], &j->model.gaps[o], require)
                             : (double)INFINITY;
    p->budget[o] = fmin(j->part * ratio * was, j->cap[o]);
    p->weight[o] =
        1 / fmax(isfinite(p->budget[o]) && p->budget[o] > 0 ? p->budget[o] : was, 1e-300);
  }
}

// The forecast of what has just been run is set right. What did not do must not look as if it did.
void assay_tune_job_correct(assay_tune_job_t* j, const assay_tune_trial_t* t) {
  assay_tune_problem_t* p = assay_tune_job_problem(j);
  for (size_t o = 0; o < p->n_outputs; o++) {
    const double has = assay_tune_mean_square(&t->outputs[o]);
    const double said = assay_tune_error(p, &j->state, o);
    if (said > has && assay_tune_is_lost(&t->outputs[o])) continue;
    if (said > p->floor[o] && has > p->floor[o])
      p->scale[o] *= (has - p->floor[o]) / (said - p->floor[o]);
  }
  assay_tune_job_set_budgets(j);
  if (t->met) return;
  for (size_t o = 0; o < p->n_outputs; o++) {
    const double said = assay_tune_error(p, &j->state, o) - p->floor[o];
    const double max = p->budget[o] - p->floor[o];
    if (!t->outputs[o].faithful && said > 0 && max > 0 && said <= max)
      p->scale[o] *= 1.05 * max / said;
  }
}

bool assay_tune_statistics_hold(const assay_tune_trial_t* t, size_t n) {
  for (size_t o = 0; o < n; o++)
    if (!t->outputs[o].faithful) return false;
  return true;
}

bool assay_tune_job_has_commands(const assay_tune_job_t* j) {
  const assay_requirements_t* r = j->model.setting.require;
  return r && assay_require_has_commands(r);
}

// A command has spoken: much less error than it refused, or between what it took and what it
// refused. False: there is nothing left to learn.
bool assay_tune_job_ask_commands(assay_tune_job_t* j, const assay_tune_trial_t* t) {
  bool any = false;
  for (size_t o = 0; o < j->out->n_outputs; o++) {
    const double has = assay_tune_mean_square(&t->outputs[o]);
    if (!t->met) {
      j->refused[o] = fmin(j->refused[o], has);
      j->cap[o] = COMMAND_PART * has;
      any = true;
    } else if (isfinite(j->refused[o])) {
      any |= has > 0 && j->refused[o] > 2 * has;
      j->cap[o] = sqrt(has * j->refused[o]);
    }
  }
  return any;
}
