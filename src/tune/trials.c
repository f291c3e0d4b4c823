// Assignments that tune runs: what each would do, what it did, and which is the best so far.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tune/job.h"

assay_tune_problem_t* assay_tune_job_problem(assay_tune_job_t* j) {
  return &j->model.layout.problem;
}

void assay_tune_job_progress(const assay_tune_job_t* j, const char* what) {
  const assay_check_setting_t* o = &j->model.setting;
  if (o->progress) o->progress(o->user, what, 0);
}

void assay_tune_trial_deinit(assay_tune_trial_t* t) {
  assay_free(t->format);
  assay_free(t->predicted);
  assay_free(t->outputs);
  assay_str_deinit(&t->unmet);
}

assay_status_t assay_tune_job_describe(const assay_tune_job_t* j, const uint8_t* format,
                                       assay_tune_trial_t* t) {
  const assay_tune_layout_t* l = &j->model.layout;
  ASSAY_TRY(assay_new_array(l->n_units, sizeof *t->format, &t->format));
  memcpy(t->format, format, l->n_units * sizeof *format);
  for (size_t u = 0; u < l->n_units; u++) t->count[format[u]] += l->floats[u];
  return assay_tune_model_seconds(&j->model, format, &t->seconds);
}

// What the problem says of the state, in statistics; the reference is the run that they start from.
assay_status_t assay_tune_job_predict(assay_tune_job_t* j, const assay_tune_state_t* s,
                                      assay_output_check_t** out) {
  const assay_tune_problem_t* p = assay_tune_job_problem(j);
  const assay_output_check_t* reference = j->out->trials[j->reference].outputs;
  ASSAY_TRY(assay_new_array(p->n_outputs, sizeof **out, out));
  for (size_t o = 0; o < p->n_outputs; o++) {
    const double was = assay_tune_mean_square(&reference[o]);
    const double ratio = was > 0 ? assay_tune_error(p, s, o) / was : 1;
    (*out)[o] = assay_tune_forecast(&reference[o], &j->model.gaps[o], ratio);
  }
  assay_outputs_hold(*out, p->n_outputs, j->model.setting.require);
  return NULL;
}

// Runs all samples with the formats of the units.
static assay_status_t run_trial(assay_tune_job_t* j, assay_tune_trial_t* t) {
  assay_precision_t precision = j->model.bases[0].precision;
  assay_run_result_t got = {0};
  memset(j->given, 0, (size_t)j->model.model->n_node_ids * sizeof *j->given);
  assay_tune_model_given(&j->model, t->format, j->given);
  precision.given = j->given;
  ASSAY_TRY(assay_runs_try(j->runs, &precision, &got, NULL, NULL));
  t->outputs = got.outputs;
  t->met = got.faithful;
  t->unmet = got.unmet;
  return NULL;
}

// The trial goes over to the list, or is freed.
static assay_status_t add_trial(assay_tune_job_t* j, assay_tune_trial_t* t) {
  assay_tuned_t* out = j->out;
  assay_status_t st = assay_grow(&out->trials, &out->cap_trials, out->n_trials + 1, sizeof *t);
  if (st) return assay_tune_trial_deinit(t), st;
  out->trials[out->n_trials++] = *t;
  return NULL;
}

assay_status_t assay_tune_job_try(assay_tune_job_t* j, const assay_tune_state_t* s, bool forecast) {
  assay_tune_trial_t t = {0};
  assay_status_t st = assay_tune_job_describe(j, s->format, &t);
  if (!st && forecast) st = assay_tune_job_predict(j, s, &t.predicted);
  if (!st) st = run_trial(j, &t);
  if (st) return assay_tune_trial_deinit(&t), st;
  return add_trial(j, &t);
}

size_t assay_tune_job_find(const assay_tune_job_t* j, const uint8_t* format) {
  for (size_t i = 0; i < j->out->n_trials; i++)
    if (!memcmp(j->out->trials[i].format, format, j->model.layout.n_units)) return i;
  return SIZE_MAX;
}

// By what is to be made small.
double assay_tune_job_price(assay_tune_job_t* j, const uint8_t* format) {
  const assay_tune_problem_t* p = assay_tune_job_problem(j);
  memcpy(j->scratch.format, format, p->n_units * sizeof *format);
  assay_tune_state_sum(p, &j->scratch);
  return j->scratch.time;
}

void assay_tune_job_choose(assay_tune_job_t* j) {
  assay_tuned_t* out = j->out;
  double best = (double)INFINITY;
  for (size_t i = 0; i < out->n_trials; i++) {
    const double price = assay_tune_job_price(j, out->trials[i].format);
    if (!out->trials[i].met || price >= best) continue;
    best = price;
    out->chosen = i;
    out->met = true;
  }
}
