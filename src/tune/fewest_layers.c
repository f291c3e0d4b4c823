// The goal of fewest layers: assignments that the forecast proposes are run, and made smaller, by
// the search for the fewest layers in higher precision (diagnose/fewest.h).
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/fewest.h"
#include "tune/job.h"

typedef struct layers {
  assay_tune_job_t* job;
  assay_fewest_setting_t setting;
  uint8_t* low;   // by unit: its format where it is not in the set
  bool proposed;  // what is run next is the job's state
  bool ended;     // the best trial was proposed at the end
} layers_t;

static bool is_free(const assay_tune_model_t* m, size_t unit) {
  return m->layout.floats[unit] && !m->pinned[unit];
}

// What a unit in a low format does to the outputs, by the forecast.
static double energy_of(const assay_tune_problem_t* p, size_t unit, size_t format) {
  double sum = 0;
  for (size_t o = 0; o < p->n_outputs; o++)
    sum += p->weight[o] * p->energy[(unit * p->n_formats + format) * p->n_outputs + o];
  return sum;
}

// The low format with the least error; the highest where none is allowed.
static uint8_t low_format(const assay_tune_problem_t* p, size_t unit) {
  size_t best = p->n_formats - 1;
  for (size_t f = 0; f + 1 < p->n_formats; f++)
    if (assay_tune_allowed(p, unit, f) &&
        (best + 1 == p->n_formats || energy_of(p, unit, f) < energy_of(p, unit, best)))
      best = f;
  return (uint8_t)best;
}

// ---- what is proposed ---------------------------------------------------------------------------

// The job's state: units in the highest format are the set, all others say which low format is
// theirs.
static void set_of_state(layers_t* l, assay_fp32_set_t* set) {
  const assay_tune_job_t* j = l->job;
  const assay_plan_t* plan = j->model.bases[0].plan;
  const uint8_t highest = (uint8_t)(j->options->n_formats - 1);
  assay_fp32_set_empty(set);
  for (size_t u = 0; u < j->model.layout.n_units; u++) {
    const uint8_t format = j->state.format[u];
    if (!is_free(&j->model, u) || format != highest)
      l->low[u] = format;
    else
      assay_fp32_set_add(set, plan, &assay_plan_layers(plan)->layers[u]);
  }
}

// The best trial so far: at least all in the highest format does.
static bool propose_best(layers_t* l) {
  assay_tune_job_t* j = l->job;
  if (l->ended) return false;
  l->ended = true;
  assay_tune_job_choose(j);
  if (!j->out->met) return false;
  memcpy(j->state.format, j->out->trials[j->out->chosen].format, j->model.layout.n_units);
  assay_tune_state_sum(assay_tune_job_problem(j), &j->state);
  return true;
}

// What the forecast proposes; where nothing more is worth a run, the runs that are left are for
// less than the best has.
static assay_status_t propose(void* user, assay_fp32_set_t* set, bool* out_more) {
  layers_t* l = user;
  assay_tune_job_t* j = l->job;
  const size_t all = j->options->max_runs ? j->options->max_runs : ASSAY_TUNE_MAX_RUNS;
  const size_t max = assay_tune_job_affordable(j);
  *out_more = false;
  if (!l->ended) ASSAY_TRY(assay_tune_job_next(j, all, out_more));
  if (!*out_more) *out_more = propose_best(l);
  l->proposed = *out_more;
  if (*out_more) set_of_state(l, set);
  l->setting.max_removals = max > j->searched ? max - j->searched : 0;
  return NULL;
}

// ---- what is run --------------------------------------------------------------------------------

static bool is_in(const assay_tune_model_t* m, size_t unit, const bool* chosen) {
  const assay_plan_t* plan = m->bases[0].plan;
  const assay_layer_t* layer = &assay_plan_layers(plan)->layers[unit];
  bool any = false;
  for (size_t k = 0; k < layer->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(plan, &layer->nodes[k]);
    for (size_t i = 0; i < o.n; i++) any |= chosen[o.nodes[i]->id];
  }
  return any;
}

static void state_of_set(const layers_t* l, const bool* chosen) {
  assay_tune_job_t* j = l->job;
  const size_t highest = j->options->n_formats - 1;
  for (size_t u = 0; u < j->model.layout.n_units; u++) {
    if (!is_free(&j->model, u)) continue;
    j->state.format[u] = is_in(&j->model, u, chosen) ? (uint8_t)highest : l->low[u];
  }
  assay_tune_state_sum(assay_tune_job_problem(j), &j->state);
}

// Trials keep their statistics; what has been run is not run again.
static assay_status_t run(void* user, const assay_precision_t* precision, assay_run_result_t* out,
                          assay_plan_t** out_plan, assay_taken_t** out_taken) {
  layers_t* l = user;
  assay_tune_job_t* j = l->job;
  assay_run_result_t result = {0};
  (void)out_plan, (void)out_taken;
  if (!l->proposed) state_of_set(l, precision->pinned);
  size_t at = assay_tune_job_find(j, j->state.format);
  if (at == SIZE_MAX) {
    at = j->out->n_trials;
    if (!l->proposed) j->searched++;
    ASSAY_TRY(l->proposed ? assay_tune_job_verify(j) : assay_tune_job_try(j, &j->state, true));
  }
  const assay_tune_trial_t* t = &j->out->trials[at];
  ASSAY_TRY(assay_new_array(j->out->n_outputs, sizeof *result.outputs, &result.outputs));
  memcpy(result.outputs, t->outputs, j->out->n_outputs * sizeof *result.outputs);
  result.faithful = t->met;
  *out = result;
  return NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t search(layers_t* l, double* need) {
  assay_tune_job_t* j = l->job;
  const assay_tune_model_t* m = &j->model;
  const assay_tune_base_t* base = &m->bases[0];
  const assay_tune_problem_t* p = assay_tune_job_problem(j);
  for (size_t u = 0; u < m->layout.n_units; u++) {
    l->low[u] = low_format(p, u);
    const bool fixed = !is_free(m, u) || l->low[u] + 1u == p->n_formats;
    need[u] = fixed ? (double)INFINITY : energy_of(p, u, l->low[u]);
  }
  l->setting = (assay_fewest_setting_t){.strategy = ASSAY_FEWEST_PROPOSED,
                                        .subject = {.model = m->model,
                                                    .plan = base->plan,
                                                    .account = base->account,
                                                    .precision = &base->precision,
                                                    .require = m->setting.require},
                                        .need = need,
                                        .propose = propose,
                                        .run = run,
                                        .runner = l,
                                        .progress = m->setting.progress,
                                        .user = m->setting.user};
  assay_fewest_found_t found = {0};
  ASSAY_TRY(assay_fewest_find(&l->setting, &found));
  assay_fewest_found_deinit(&found);
  return NULL;
}

assay_status_t assay_tune_job_fewest_layers(assay_tune_job_t* j) {
  layers_t l = {.job = j};
  double* need = NULL;
  ASSAY_TRY(assay_new_array(j->model.layout.n_units, sizeof *need, &need));
  assay_status_t st = assay_new_array(j->model.layout.n_units, sizeof *l.low, &l.low);
  if (!st) st = search(&l, need);
  assay_free(l.low);
  assay_free(need);
  return st;
}
