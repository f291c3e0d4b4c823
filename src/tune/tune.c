// The fastest assignment of formats to layers whose outputs meet what is required: `assay tune`.
#include "tune/tune.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/golden/golden_kind.h"
#include "tune/job.h"
#include "tune/near.h"

enum { NEAR = 24, DEAD_ENDS = 6 };
// Forecasts are a little off: the first assignment is looked for within a part of the budget.
static const double FIRST_PART = 0.9;

// ---- the ends -----------------------------------------------------------------------------------

static bool is_finite(const assay_tune_trial_t* t, size_t n_outputs) {
  for (size_t o = 0; o < n_outputs; o++)
    if (t->outputs[o].error.mismatched) return false;
  return true;
}

static assay_status_t run_all_in(assay_tune_job_t* j, size_t format, size_t* out_trial) {
  assay_tune_state_t s = {0};
  ASSAY_TRY(assay_tune_state_create(assay_tune_job_problem(j), format, &s));
  assay_status_t st =
      assay_tune_job_find(j, s.format) == SIZE_MAX ? assay_tune_job_try(j, &s, false) : NULL;
  *out_trial = assay_tune_job_find(j, s.format);
  assay_tune_state_deinit(&s);
  return st;
}

// With all in a low format that may be; where that gives NaN or infinities all the same, without
// all that passes its range.
static assay_status_t run_low(assay_tune_job_t* j, size_t format, size_t* out_trial) {
  assay_tune_job_progress(j, "running in a low format");
  for (int all = 0; all <= 1; all++) {
    if (all) ASSAY_TRY(assay_tune_model_leave_range(&j->model, format, true));
    ASSAY_TRY(run_all_in(j, format, out_trial));
    if (is_finite(&j->out->trials[*out_trial], j->out->n_outputs)) return NULL;
  }
  return NULL;
}

static assay_status_t run_high(assay_tune_job_t* j) {
  size_t trial = 0;
  assay_tune_job_progress(j, "running in the highest format");
  ASSAY_TRY(run_all_in(j, j->options->n_formats - 1, &trial));
  for (size_t o = 0; o < j->out->n_outputs; o++)
    assay_tune_job_problem(j)->floor[o] = assay_tune_mean_square(&j->out->trials[0].outputs[o]);
  return NULL;
}

// ---- searching ----------------------------------------------------------------------------------

static assay_status_t search(assay_tune_job_t* j) {
  const size_t max = j->options->max_runs ? j->options->max_runs : ASSAY_TUNE_MAX_RUNS;
  for (bool more = true; more;) {
    ASSAY_TRY(assay_tune_job_next(j, max, &more));
    if (more) ASSAY_TRY(assay_tune_job_verify(j));
  }
  return NULL;
}

// ---- near the best ------------------------------------------------------------------------------

static bool has_run(void* user, const uint8_t* format) {
  return assay_tune_job_find(user, format) != SIZE_MAX;
}

static assay_status_t try_near(assay_tune_job_t* j, const assay_tune_near_t* near, size_t max,
                               bool* out_any) {
  const assay_tune_problem_t* p = assay_tune_job_problem(j);
  *out_any = false;
  for (size_t i = 0; i < near->n && j->searched < max && !*out_any; i++) {
    memcpy(j->state.format, &near->formats[i * p->n_units], p->n_units);
    assay_tune_state_sum(p, &j->state);
    assay_tune_job_progress(j, "trying assignments nearby");
    j->searched++;
    ASSAY_TRY(assay_tune_job_try(j, &j->state, true));
    *out_any = j->out->trials[j->out->n_trials - 1].met;
  }
  return NULL;
}

// Forecasts are off by some per cent, and errors cancel by chance: where runs cost little, cheaper
// assignments near the best are tried, those with least error by the forecast first.
static assay_status_t refine(assay_tune_job_t* j) {
  const size_t max = assay_tune_job_affordable(j);
  bool any = j->out->met;
  j->part = 1;
  assay_tune_job_set_budgets(j);
  for (size_t fruitless = 0; any && j->searched < max;) {
    assay_tune_job_choose(j);
    const uint8_t* best = j->out->trials[j->out->chosen].format;
    const assay_tune_near_options_t o = {.below = ASSAY_TUNE_FASTER * assay_tune_job_price(j, best),
                                         .within = ASSAY_TUNE_PROBE_PART,
                                         .max = NEAR,
                                         .seen = has_run,
                                         .user = j};
    assay_tune_near_t near = {0};
    bool better = false;
    ASSAY_TRY(assay_tune_near(assay_tune_job_problem(j), best, &o, &near));
    assay_status_t st = try_near(j, &near, max, &better);
    any = near.n > 0 && (better || ++fruitless < DEAD_ENDS);
    assay_tune_near_deinit(&near);
    if (st) return st;
  }
  return NULL;
}

// The fastest of all, whatever its errors: if it was run and does, nothing has to be searched for.
static assay_status_t try_fastest(assay_tune_job_t* j) {
  assay_tune_problem_t* p = assay_tune_job_problem(j);
  bool found = false;
  for (size_t o = 0; o < p->n_outputs; o++) p->budget[o] = (double)INFINITY;
  ASSAY_TRY(assay_tune_search(p, j->model.setting.seed, &j->state, &found, NULL));
  assay_tune_job_choose(j);
  if (j->out->met &&
      assay_tune_job_price(j, j->out->trials[j->out->chosen].format) * ASSAY_TUNE_FASTER <=
          assay_tune_job_price(j, j->state.format))
    return NULL;
  if (j->options->goal == ASSAY_TUNE_LAYERS) return assay_tune_job_fewest_layers(j);
  ASSAY_TRY(search(j));
  assay_tune_job_choose(j);
  return refine(j);
}

// ---- the front ----------------------------------------------------------------------------------

static assay_status_t add_front(assay_tune_job_t* j, const assay_tune_point_t* point) {
  assay_tuned_t* out = j->out;
  assay_tune_trial_t t = {0};
  const size_t run = assay_tune_job_find(j, point->format);
  memcpy(j->state.format, point->format, j->model.layout.n_units);
  assay_tune_state_sum(assay_tune_job_problem(j), &j->state);
  assay_status_t st = assay_tune_job_describe(j, point->format, &t);
  if (!st) st = assay_tune_job_predict(j, &j->state, &t.predicted);
  if (!st && run != SIZE_MAX) {
    st = assay_new_array(out->n_outputs, sizeof *t.outputs, &t.outputs);
    if (!st) memcpy(t.outputs, out->trials[run].outputs, out->n_outputs * sizeof *t.outputs);
    t.met = out->trials[run].met;
  }
  if (!st) st = assay_grow(&out->front, &out->cap_front, out->n_front + 1, sizeof t);
  if (st) return assay_tune_trial_deinit(&t), st;
  out->front[out->n_front++] = t;
  return NULL;
}

static assay_status_t make_front(assay_tune_job_t* j) {
  assay_tune_front_t front = {0};
  bool found = false;
  if (!j->options->front) return NULL;
  if (j->out->met) j->reference = j->out->chosen;
  assay_tune_job_set_budgets(j);
  assay_status_t st = assay_tune_search(assay_tune_job_problem(j), j->model.setting.seed, &j->state,
                                        &found, &front);
  assay_tune_front_thin(&front, j->options->front);
  for (size_t i = 0; !st && i < front.n; i++) st = add_front(j, &front.at[i]);
  assay_tune_front_deinit(&front);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

static size_t base_of(const assay_tuned_t* t) {
  size_t base = 0;
  for (size_t f = 1; f < t->options.n_formats; f++)
    if (t->fixes[f].n_nodes > t->fixes[base].n_nodes) base = f;
  return base;
}

// What a plan in the base's format gives other formats than they were chosen to have.
static assay_status_t record_redeclared(assay_tune_job_t* j) {
  const assay_check_setting_t* o = &j->model.setting;
  assay_tuned_t* t = j->out;
  t->base = base_of(t);
  const assay_fix_t* base = &t->fixes[t->base];
  assay_precision_t p = j->model.bases[0].precision;
  assay_plan_t* plan = NULL;
  p.format = base->format;
  p.undeclared = false;
  t->redeclared.format = base->format;
  ASSAY_TRY(assay_new_array(base->n_nodes, sizeof *base->nodes, &t->redeclared.nodes));
  ASSAY_TRY(assay_plan_create(j->model.model, &p, &o->plan, o->seed, &plan));
  assay_plan_node_formats(plan, j->given);
  for (size_t i = 0; i < base->n_nodes; i++)
    if (j->given[base->nodes[i]->id] != base->format)
      t->redeclared.nodes[t->redeclared.n_nodes++] = base->nodes[i];
  assay_plan_destroy(plan);
  return NULL;
}

// By format: the nodes that the chosen assignment has in it.
static assay_status_t record(assay_tune_job_t* j) {
  const assay_model_t* m = j->model.model;
  const assay_tune_trial_t* t = &j->out->trials[j->out->chosen];
  ASSAY_TRY(assay_new_array(j->options->n_formats, sizeof *j->out->fixes, &j->out->fixes));
  memset(j->given, 0, (size_t)m->n_node_ids * sizeof *j->given);
  assay_tune_model_given(&j->model, t->format, j->given);
  for (size_t f = 0; f < j->options->n_formats; f++) {
    assay_fix_t* fix = &j->out->fixes[f];
    fix->format = j->options->formats[f];
    fix->verified = j->out->met;
    ASSAY_TRY(assay_new_array((size_t)m->n_node_ids, sizeof *fix->nodes, &fix->nodes));
    for (size_t g = 0; g < m->n_graphs; g++)
      for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
        if (j->given[m->graphs[g]->nodes[i]->id] == fix->format)
          fix->nodes[fix->n_nodes++] = m->graphs[g]->nodes[i];
  }
  return record_redeclared(j);
}

static assay_status_t note_units(assay_tune_job_t* j) {
  assay_tuned_t* out = j->out;
  const assay_tune_layout_t* l = &j->model.layout;
  ASSAY_TRY(assay_new_array(l->n_units, sizeof *out->free_unit, &out->free_unit));
  for (size_t u = 0; u < l->n_units; u++) {
    out->n_floats += l->floats[u];
    out->n_pinned += l->floats[u] && j->model.pinned[u];
    out->n_out_of_range += j->model.out_of_range[u];
    out->free_unit[u] = l->floats[u] && !j->model.pinned[u];
  }
  memcpy(out->total, j->model.total, sizeof out->total);
  out->unknown = j->model.n_unknown;
  return NULL;
}

static assay_status_t reserve(assay_tune_job_t* j) {
  const size_t n = j->out->n_outputs;
  ASSAY_TRY(assay_tune_state_create(assay_tune_job_problem(j), 0, &j->state));
  ASSAY_TRY(assay_tune_state_create(assay_tune_job_problem(j), 0, &j->scratch));
  ASSAY_TRY(assay_new_array((size_t)j->model.model->n_node_ids, sizeof *j->given, &j->given));
  ASSAY_TRY(assay_new_array(n, sizeof *j->cap, &j->cap));
  ASSAY_TRY(assay_new_array(n, sizeof *j->refused, &j->refused));
  for (size_t o = 0; o < n; o++) j->cap[o] = j->refused[o] = (double)INFINITY;
  return NULL;
}

static assay_status_t tune(assay_tune_job_t* j) {
  const size_t low = j->options->n_formats - 1;
  size_t base[ASSAY_TUNE_FORMATS] = {0};
  ASSAY_TRY(reserve(j));
  ASSAY_TRY(run_high(j));
  for (size_t f = 0; f < low; f++) ASSAY_TRY(run_low(j, f, &base[f]));
  ASSAY_TRY(note_units(j));
  j->reference = base[0];
  j->part = FIRST_PART;
  // What the highest format does not meet, no assignment does.
  if (!j->out->trials[0].met) {
    assay_tune_job_choose(j);
    return j->out->met ? record(j) : NULL;
  }
  for (size_t f = 0; f < low; f++)
    ASSAY_TRY(assay_tune_model_errors(&j->model, f, j->out->trials[base[f]].outputs));
  j->out->unknown = j->model.n_unknown;
  const assay_tune_trial_t* first = &j->out->trials[base[0]];
  if (assay_tune_job_has_commands(j) && !first->met &&
      assay_tune_statistics_hold(first, j->out->n_outputs))
    assay_tune_job_ask_commands(j, first);
  ASSAY_TRY(try_fastest(j));
  assay_tune_job_choose(j);
  ASSAY_TRY(make_front(j));
  return record(j);
}

static assay_status_t run_elsewhere(void* user, const assay_precision_t* precision,
                                    assay_output_check_t* outputs) {
  const assay_tune_job_t* j = user;
  return j->options->elsewhere(j->options->user, precision->given, j->out->golden_quantized,
                               outputs);
}

static assay_status_t run(assay_tune_job_t* j, assay_model_t* model, assay_check_setting_t* check,
                          const assay_samples_t* golden) {
  const assay_check_setting_t o = *check;
  if (!o.unquantized)
    ASSAY_TRY(assay_golden_outputs_are_quantized(model, j->inputs, golden, o.seed,
                                                 &j->out->golden_quantized));
  const assay_runs_setting_t setting = {.backend = o.backend,
                                        .golden_quantized = j->out->golden_quantized,
                                        .plan = &o.plan,
                                        .require = o.require,
                                        .inputs = j->inputs,
                                        .golden = golden,
                                        .unquantized = o.unquantized,
                                        .seed = o.seed,
                                        .elsewhere = j->options->elsewhere ? run_elsewhere : NULL,
                                        .user = j};
  if (o.require) ASSAY_TRY(assay_require_resolve(o.require, model->graph));
  assay_status_t st = assay_runs_create(model, &setting, &j->runs);
  if (!st) st = assay_tune_model_create(model, check, j->options, j->inputs, j->runs, &j->model);
  j->out->n_units = j->model.layout.n_units;
  j->out->n_outputs = model->graph->n_outputs;
  if (!st) st = tune(j);
  j->out->model = assay_model_retain(model);
  j->out->setting = o;
  j->out->setting.precision = (assay_precision_t){0};  // which went over
  assay_tune_state_deinit(&j->state);
  assay_tune_state_deinit(&j->scratch);
  assay_tune_model_deinit(&j->model);
  assay_runs_destroy(j->runs);
  assay_free(j->given);
  assay_free(j->cap);
  assay_free(j->refused);
  return st;
}

assay_status_t assay_tune(assay_model_t* model, assay_check_setting_t* check,
                          const assay_tune_setting_t* options, const assay_samples_t* inputs,
                          const assay_samples_t* golden, assay_tuned_t* out) {
  assay_tuned_t t = {.options = *options};
  assay_tune_job_t j = {.options = options, .inputs = inputs, .out = &t};
  if (options->n_formats < 2 || options->n_formats > ASSAY_TUNE_FORMATS)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "give one to %d formats below the highest",
                       ASSAY_TUNE_FORMATS - 1);
  assay_status_t st = run(&j, model, check, golden);
  if (st) return assay_tuned_deinit(&t), st;
  *out = t;
  return NULL;
}

void assay_tuned_deinit(assay_tuned_t* t) {
  for (size_t i = 0; i < t->n_trials; i++) assay_tune_trial_deinit(&t->trials[i]);
  for (size_t i = 0; i < t->n_front; i++) assay_tune_trial_deinit(&t->front[i]);
  for (size_t f = 0; t->fixes && f < t->options.n_formats; f++) assay_free(t->fixes[f].nodes);
  assay_free(t->trials);
  assay_free(t->front);
  assay_free(t->fixes);
  assay_free(t->redeclared.nodes);
  assay_free(t->free_unit);
  assay_model_release(t->model);
  *t = (assay_tuned_t){0};
}
