// The fastest assignment of formats to layers whose outputs meet what is required: `assay tune`.
#include "tune/tune.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tune/model.h"
#include "tune/near.h"

enum { MAX_RUNS = 8, PROBES = 2, NEAR = 24, NEAR_RUNS = 400, DEAD_ENDS = 6 };
static const double NEAR_WORK = 1e9;  // operations that runs near the best may take
// Forecasts are a little off: the first assignment is looked for within a part of the budget.
static const double FIRST_PART = 0.9, LATER_PART = 0.97;
static const double FASTER = 0.995;       // what is worth another run
static const double PROBE_PART = 8;       // how far past the budgets a look goes
static const double COMMAND_PART = 0.25;  // of an error that a command of the user's has refused

typedef struct job {
  const assay_tune_setting_t* options;
  const assay_samples_t* inputs;
  assay_runs_t* runs;
  assay_tune_model_t model;
  assay_tuned_t* out;
  assay_tune_state_t state, scratch;
  assay_format_t* given;  // by node id
  size_t reference;       // the trial that forecasts start from
  double *cap, *refused;  // by output: errors that commands of the user's leave, have refused
  size_t searched;        // runs of assignments that were searched for
  size_t probes;          // of them: past the budgets
  double part;            // of the budgets, to look within
} job_t;

static assay_tune_problem_t* problem(job_t* j) { return &j->model.layout.problem; }

static void progress(const job_t* j, const char* what) {
  const assay_check_setting_t* o = &j->model.setting;
  if (o->progress) o->progress(o->user, what, 0);
}

// ---- trials -------------------------------------------------------------------------------------

static void trial_deinit(assay_tune_trial_t* t) {
  assay_free(t->format);
  assay_free(t->predicted);
  assay_free(t->outputs);
  assay_str_deinit(&t->unmet);
}

static assay_status_t describe(const job_t* j, const uint8_t* format, assay_tune_trial_t* t) {
  const assay_tune_layout_t* l = &j->model.layout;
  ASSAY_TRY(assay_new_array(l->n_units, sizeof *t->format, &t->format));
  memcpy(t->format, format, l->n_units * sizeof *format);
  for (size_t u = 0; u < l->n_units; u++) t->count[format[u]] += l->floats[u];
  return assay_tune_model_seconds(&j->model, format, &t->seconds);
}

// What the problem says of the state, in statistics; the reference is the run that they start from.
static assay_status_t predict(job_t* j, const assay_tune_state_t* s, assay_output_check_t** out) {
  const assay_tune_problem_t* p = problem(j);
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
static assay_status_t run_trial(job_t* j, assay_tune_trial_t* t) {
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
static assay_status_t add_trial(job_t* j, assay_tune_trial_t* t) {
  assay_tuned_t* out = j->out;
  assay_status_t st = assay_grow(&out->trials, &out->cap_trials, out->n_trials + 1, sizeof *t);
  if (st) return trial_deinit(t), st;
  out->trials[out->n_trials++] = *t;
  return NULL;
}

static assay_status_t try_state(job_t* j, const assay_tune_state_t* s, bool forecast) {
  assay_tune_trial_t t = {0};
  assay_status_t st = describe(j, s->format, &t);
  if (!st && forecast) st = predict(j, s, &t.predicted);
  if (!st) st = run_trial(j, &t);
  if (st) return trial_deinit(&t), st;
  return add_trial(j, &t);
}

static size_t find_trial(const job_t* j, const uint8_t* format) {
  for (size_t i = 0; i < j->out->n_trials; i++)
    if (!memcmp(j->out->trials[i].format, format, j->model.layout.n_units)) return i;
  return SIZE_MAX;
}

// By what is to be made small.
static double price_of(job_t* j, const uint8_t* format) {
  const assay_tune_problem_t* p = problem(j);
  memcpy(j->scratch.format, format, p->n_units * sizeof *format);
  assay_tune_state_sum(p, &j->scratch);
  return j->scratch.time;
}

static void choose(job_t* j) {
  assay_tuned_t* out = j->out;
  double best = (double)INFINITY;
  for (size_t i = 0; i < out->n_trials; i++) {
    const double price = price_of(j, out->trials[i].format);
    if (!out->trials[i].met || price >= best) continue;
    best = price;
    out->chosen = i;
    out->met = true;
  }
}

// ---- the ends -----------------------------------------------------------------------------------

static bool is_finite(const assay_tune_trial_t* t, size_t n_outputs) {
  for (size_t o = 0; o < n_outputs; o++)
    if (t->outputs[o].error.mismatched) return false;
  return true;
}

static assay_status_t run_all_in(job_t* j, size_t format, size_t* out_trial) {
  assay_tune_state_t s = {0};
  ASSAY_TRY(assay_tune_state_create(problem(j), format, &s));
  assay_status_t st = find_trial(j, s.format) == SIZE_MAX ? try_state(j, &s, false) : NULL;
  *out_trial = find_trial(j, s.format);
  assay_tune_state_deinit(&s);
  return st;
}

// With all in a low format that may be; where that gives NaN or infinities all the same, without
// all that passes its range.
static assay_status_t run_low(job_t* j, size_t format, size_t* out_trial) {
  progress(j, "running in a low format");
  for (int all = 0; all <= 1; all++) {
    if (all) ASSAY_TRY(assay_tune_model_leave_range(&j->model, format, true));
    ASSAY_TRY(run_all_in(j, format, out_trial));
    if (is_finite(&j->out->trials[*out_trial], j->out->n_outputs)) return NULL;
  }
  return NULL;
}

static assay_status_t run_high(job_t* j) {
  size_t trial = 0;
  progress(j, "running in the highest format");
  ASSAY_TRY(run_all_in(j, j->options->n_formats - 1, &trial));
  for (size_t o = 0; o < j->out->n_outputs; o++)
    problem(j)->floor[o] = assay_tune_mean_square(&j->out->trials[0].outputs[o]);
  return NULL;
}

// ---- budgets ------------------------------------------------------------------------------------

// How large each output's error may be, by the statistics of the reference and by what commands
// have said.
static void set_budgets(job_t* j) {
  assay_tune_problem_t* p = problem(j);
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
static void correct(job_t* j, const assay_tune_trial_t* t) {
  assay_tune_problem_t* p = problem(j);
  for (size_t o = 0; o < p->n_outputs; o++) {
    const double has = assay_tune_mean_square(&t->outputs[o]);
    const double said = assay_tune_error(p, &j->state, o);
    if (said > has && assay_tune_is_lost(&t->outputs[o])) continue;
    if (said > p->floor[o] && has > p->floor[o])
      p->scale[o] *= (has - p->floor[o]) / (said - p->floor[o]);
  }
  set_budgets(j);
  if (t->met) return;
  for (size_t o = 0; o < p->n_outputs; o++) {
    const double said = assay_tune_error(p, &j->state, o) - p->floor[o];
    const double max = p->budget[o] - p->floor[o];
    if (!t->outputs[o].faithful && said > 0 && max > 0 && said <= max)
      p->scale[o] *= 1.05 * max / said;
  }
}

static bool statistics_hold(const assay_tune_trial_t* t, size_t n) {
  for (size_t o = 0; o < n; o++)
    if (!t->outputs[o].faithful) return false;
  return true;
}

static bool has_commands(const job_t* j) {
  const assay_requirements_t* r = j->model.setting.require;
  return r && assay_require_has_commands(r);
}

// A command has spoken: much less error than it refused, or between what it took and what it
// refused. False: there is nothing left to learn.
static bool learn(job_t* j, const assay_tune_trial_t* t) {
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

// ---- searching ----------------------------------------------------------------------------------

// Looks for the fastest assignment within the budgets. *out_new false: there is none, or it has
// been run.
static assay_status_t propose(job_t* j, bool* out_found, bool* out_new) {
  assay_tune_problem_t* p = problem(j);
  *out_new = false;
  set_budgets(j);
  progress(j, "searching");
  ASSAY_TRY(assay_tune_search(p, j->model.setting.seed, &j->state, out_found, NULL));
  *out_new = *out_found && find_trial(j, j->state.format) == SIZE_MAX;
  return NULL;
}

static assay_status_t verify(job_t* j, bool* out_more) {
  progress(j, "verifying an assignment");
  j->searched++;
  ASSAY_TRY(try_state(j, &j->state, true));
  j->reference = j->out->n_trials - 1;
  const assay_tune_trial_t* t = &j->out->trials[j->reference];
  j->part = LATER_PART;
  correct(j, t);
  *out_more = true;
  if (has_commands(j) && statistics_hold(t, j->out->n_outputs)) *out_more = learn(j, t) || !t->met;
  return NULL;
}

static bool is_faster(job_t* j, const uint8_t* format) {
  choose(j);
  return !j->out->met ||
         price_of(j, format) < FASTER * price_of(j, j->out->trials[j->out->chosen].format);
}

// Where the forecast leaves nothing to try, it may be too high: it was made from runs in one
// format. A run somewhat past the budgets sets it right. False: there is nothing to look at,
// either.
static assay_status_t probe_past(job_t* j, bool* out_any) {
  const double part = j->part;
  bool found = false, is_new = false;
  *out_any = false;
  while (j->probes < PROBES && !*out_any) {
    j->probes++;
    j->part *= PROBE_PART;
    ASSAY_TRY(propose(j, &found, &is_new));
    *out_any = found && is_new && is_faster(j, j->state.format);
  }
  j->part = part;
  return NULL;
}

static assay_status_t search(job_t* j) {
  const size_t max = j->options->max_runs ? j->options->max_runs : MAX_RUNS;
  for (bool more = true; more && j->searched < max;) {
    bool found = false, is_new = false;
    ASSAY_TRY(propose(j, &found, &is_new));
    const size_t same = found && !is_new ? find_trial(j, j->state.format) : SIZE_MAX;
    if (same != SIZE_MAX && !j->out->trials[same].met && j->part > 0.1) {
      // What has been run and did not do comes up again: look further within.
      j->part *= 0.7;
      continue;
    }
    if (!found || !is_new || !is_faster(j, j->state.format)) ASSAY_TRY(probe_past(j, &is_new));
    if (!is_new) return NULL;
    assay_tune_state_sum(problem(j), &j->state);
    ASSAY_TRY(verify(j, &more));
  }
  return NULL;
}

// ---- near the best ------------------------------------------------------------------------------

static bool has_run(void* user, const uint8_t* format) {
  return find_trial(user, format) != SIZE_MAX;
}

static assay_status_t try_near(job_t* j, const assay_tune_near_t* near, size_t max, bool* out_any) {
  const assay_tune_problem_t* p = problem(j);
  *out_any = false;
  for (size_t i = 0; i < near->n && j->searched < max && !*out_any; i++) {
    memcpy(j->state.format, &near->formats[i * p->n_units], p->n_units);
    assay_tune_state_sum(p, &j->state);
    progress(j, "trying assignments nearby");
    j->searched++;
    ASSAY_TRY(try_state(j, &j->state, true));
    *out_any = j->out->trials[j->out->n_trials - 1].met;
  }
  return NULL;
}

// Forecasts are off by some per cent, and errors cancel by chance: where runs cost little, cheaper
// assignments near the best are tried, those with least error by the forecast first.
static assay_status_t refine(job_t* j) {
  const assay_tune_model_t* m = &j->model;
  double work = 1;
  for (size_t u = 0; u < m->layout.n_units; u++)
    work += m->works.unit[u].products + m->works.unit[u].others + m->works.unit[u].floats;
  const double affordable = fmin(NEAR_WORK / (work * (double)j->inputs->n), NEAR_RUNS);
  const size_t max = j->options->max_runs ? j->options->max_runs : MAX_RUNS + (size_t)affordable;
  bool any = j->out->met;
  j->part = 1;
  set_budgets(j);
  for (size_t fruitless = 0; any && j->searched < max;) {
    choose(j);
    const uint8_t* best = j->out->trials[j->out->chosen].format;
    const assay_tune_near_options_t o = {.below = FASTER * price_of(j, best),
                                         .within = PROBE_PART,
                                         .max = NEAR,
                                         .seen = has_run,
                                         .user = j};
    assay_tune_near_t near = {0};
    bool better = false;
    ASSAY_TRY(assay_tune_near(problem(j), best, &o, &near));
    assay_status_t st = try_near(j, &near, max, &better);
    any = near.n > 0 && (better || ++fruitless < DEAD_ENDS);
    assay_tune_near_deinit(&near);
    if (st) return st;
  }
  return NULL;
}

// The fastest of all, whatever its errors: if it was run and does, nothing has to be searched for.
static assay_status_t try_fastest(job_t* j) {
  assay_tune_problem_t* p = problem(j);
  bool found = false;
  for (size_t o = 0; o < p->n_outputs; o++) p->budget[o] = (double)INFINITY;
  ASSAY_TRY(assay_tune_search(p, j->model.setting.seed, &j->state, &found, NULL));
  choose(j);
  if (j->out->met &&
      price_of(j, j->out->trials[j->out->chosen].format) * FASTER <= price_of(j, j->state.format))
    return NULL;
  ASSAY_TRY(search(j));
  choose(j);
  return refine(j);
}

// ---- the front ----------------------------------------------------------------------------------

static assay_status_t add_front(job_t* j, const assay_tune_point_t* point) {
  assay_tuned_t* out = j->out;
  assay_tune_trial_t t = {0};
  const size_t run = find_trial(j, point->format);
  memcpy(j->state.format, point->format, j->model.layout.n_units);
  assay_tune_state_sum(problem(j), &j->state);
  assay_status_t st = describe(j, point->format, &t);
  if (!st) st = predict(j, &j->state, &t.predicted);
  if (!st && run != SIZE_MAX) {
    st = assay_new_array(out->n_outputs, sizeof *t.outputs, &t.outputs);
    if (!st) memcpy(t.outputs, out->trials[run].outputs, out->n_outputs * sizeof *t.outputs);
    t.met = out->trials[run].met;
  }
  if (!st) st = assay_grow(&out->front, &out->cap_front, out->n_front + 1, sizeof t);
  if (st) return trial_deinit(&t), st;
  out->front[out->n_front++] = t;
  return NULL;
}

static assay_status_t make_front(job_t* j) {
  assay_tune_front_t front = {0};
  bool found = false;
  if (!j->options->front) return NULL;
  if (j->out->met) j->reference = j->out->chosen;
  set_budgets(j);
  assay_status_t st =
      assay_tune_search(problem(j), j->model.setting.seed, &j->state, &found, &front);
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
static assay_status_t record_redeclared(job_t* j) {
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
static assay_status_t record(job_t* j) {
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

static assay_status_t note_units(job_t* j) {
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

static assay_status_t reserve(job_t* j) {
  const size_t n = j->out->n_outputs;
  ASSAY_TRY(assay_tune_state_create(problem(j), 0, &j->state));
  ASSAY_TRY(assay_tune_state_create(problem(j), 0, &j->scratch));
  ASSAY_TRY(assay_new_array((size_t)j->model.model->n_node_ids, sizeof *j->given, &j->given));
  ASSAY_TRY(assay_new_array(n, sizeof *j->cap, &j->cap));
  ASSAY_TRY(assay_new_array(n, sizeof *j->refused, &j->refused));
  for (size_t o = 0; o < n; o++) j->cap[o] = j->refused[o] = (double)INFINITY;
  return NULL;
}

static assay_status_t tune(job_t* j) {
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
    choose(j);
    return j->out->met ? record(j) : NULL;
  }
  for (size_t f = 0; f < low; f++)
    ASSAY_TRY(assay_tune_model_errors(&j->model, f, j->out->trials[base[f]].outputs));
  j->out->unknown = j->model.n_unknown;
  const assay_tune_trial_t* first = &j->out->trials[base[0]];
  if (has_commands(j) && !first->met && statistics_hold(first, j->out->n_outputs)) learn(j, first);
  ASSAY_TRY(try_fastest(j));
  choose(j);
  ASSAY_TRY(make_front(j));
  return record(j);
}

static assay_status_t run(job_t* j, assay_model_t* model, assay_check_setting_t* check,
                          const assay_samples_t* golden) {
  const assay_check_setting_t o = *check;
  const assay_runs_setting_t setting = {.backend = o.backend,
                                        .plan = &o.plan,
                                        .require = o.require,
                                        .inputs = j->inputs,
                                        .golden = golden,
                                        .unquantized = o.unquantized,
                                        .seed = o.seed};
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
  job_t j = {.options = options, .inputs = inputs, .out = &t};
  if (options->n_formats < 2 || options->n_formats > ASSAY_TUNE_FORMATS)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "give one to %d formats below the highest",
                       ASSAY_TUNE_FORMATS - 1);
  assay_status_t st = run(&j, model, check, golden);
  if (st) return assay_tuned_deinit(&t), st;
  *out = t;
  return NULL;
}

void assay_tuned_deinit(assay_tuned_t* t) {
  for (size_t i = 0; i < t->n_trials; i++) trial_deinit(&t->trials[i]);
  for (size_t i = 0; i < t->n_front; i++) trial_deinit(&t->front[i]);
  for (size_t f = 0; t->fixes && f < t->options.n_formats; f++) assay_free(t->fixes[f].nodes);
  assay_free(t->trials);
  assay_free(t->front);
  assay_free(t->fixes);
  assay_free(t->redeclared.nodes);
  assay_free(t->free_unit);
  assay_model_release(t->model);
  *t = (assay_tuned_t){0};
}
