// polygraphy run: runs the runners of the line on its inputs, saves what they give, compares.
#include "frontends/polygraphy/run.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "data/tensor_files.h"
#include "frontends/polygraphy/cause.h"
#include "frontends/polygraphy/data/compare_flags.h"
#include "frontends/polygraphy/data/compare_script.h"
#include "frontends/polygraphy/data/feed.h"
#include "frontends/polygraphy/data/postprocess.h"
#include "frontends/polygraphy/model.h"
#include "io/numpy_text.h"
#include "io/run_results.h"

// A run: what it holds on to, freed together.
typedef struct session {
  pg_job_t* j;
  assay_model_t* model;  // whose inputs they are
  assay_saved_t inputs;
  pg_runner_t* runners;
  size_t n;
  assay_run_results_t results;  // of the runners, and after them what was loaded
  assay_set_t said;             // lines of validation that come once
  pg_compare_t compare;
  assay_comparing_t comparing;
  bool compares;
  size_t* pairs;  // numbers of neighbours, by the first one's
} session_t;

static void session_deinit(session_t* s) {
  if (s->compares) assay_comparing_deinit(&s->comparing);
  pg_compare_deinit(&s->compare);
  assay_set_deinit(&s->said);
  assay_run_results_deinit(&s->results);
  for (size_t i = 0; i < s->n; i++) pg_runner_close(&s->runners[i]);
  assay_saved_deinit(&s->inputs);
  assay_model_release(s->model);
}

// ---- lines --------------------------------------------------------------------------------------

// "{x [dtype=float32, shape=(1, 3)],\n y [...]}"
static void put_set(assay_str_t* out, const assay_set_t* set) {
  assay_str_append(out, "{");
  for (size_t i = 0; i < set->n; i++) {
    const assay_tensor_t* t = set->tensors[i];
    assay_str_printf(out, ASSAY_LINES "%s [dtype=%s, shape=", i ? ",\n " : "", set->names[i],
                     assay_numpy_type_name(t->type));
    assay_numpy_print_shape(t->rank, t->dims, out);
    assay_str_append(out, "]");
  }
  assay_str_append(out, "}");
}

static void report_set(const char* head, const char* title, const assay_set_t* set) {
  assay_str_t text = {0};
  put_set(&text, set);
  pg_log(PG_INFO, "%s\n---- %s ----\n" ASSAY_LINES, head, title, assay_str_get(&text));
  assay_str_deinit(&text);
}

static void report_iteration(size_t i, const assay_set_t* inputs) {
  char head[64];
  snprintf(head, sizeof head, "Streaming iteration %zu", i);
  report_set(head, "Inference Input(s)", inputs);
}

// ---- running ------------------------------------------------------------------------------------

static assay_status_t open_runner(session_t* s, size_t i) {
  const pg_args_t* a = s->j->args;
  assay_runner_results_t* results = NULL;
  size_t number = 0;
  for (size_t k = 0; k < i; k++) number += a->runners[k] == a->runners[i];
  ASSAY_TRY(pg_runner_open(s->j, a->runners[i], number, &s->inputs, &s->runners[i]));
  return assay_run_results_add(&s->results, s->runners[i].name, &results);
}

static assay_status_t warm_up(session_t* s, size_t r) {
  const int64_t n = pg_int(s->j->args, PG_FLAG_warm_up);
  if (n > 0) pg_log(PG_INFO, "%s  | Running %lld warm-up run(s)", s->runners[r].name, (long long)n);
  for (int64_t i = 0; i < n; i++) {
    assay_set_t outputs = {0};
    double seconds;
    assay_status_t st = pg_runner_run(&s->runners[r], &s->inputs.runs[0], &outputs, &seconds);
    assay_set_deinit(&outputs);
    if (st) return st;
  }
  if (n > 0)
    pg_log(PG_INFO, "%s  | Finished %lld warm-up run(s)", s->runners[r].name, (long long)n);
  return NULL;
}

// What a runner takes or gives is told of its first iteration.
static void report_first(const session_t* s, size_t r, size_t i, const char* title,
                         const assay_set_t* set) {
  char head[160];
  snprintf(head, sizeof head, "%s ", s->runners[r].name);
  if (!i) report_set(head, title, set);
}

static assay_status_t run_one(session_t* s, size_t r, size_t i) {
  assay_set_t* outputs = NULL;
  ASSAY_TRY(assay_runner_results_add(&s->results.runners[r], (double)NAN, &outputs));
  double* seconds = &s->results.runners[r].seconds[i];
  ASSAY_TRY(pg_runner_run(&s->runners[r], &s->inputs.runs[i], outputs, seconds));
  report_first(s, r, i, "Inference Output(s)", outputs);
  pg_log(PG_VERBOSE, "%s  | Iteration %zu took %.3f ms", s->runners[r].name, i, 1e3 * *seconds);
  return NULL;
}

// ---- judging ------------------------------------------------------------------------------------

// --validate: neither NaN nor infinity in what a runner gave.
static assay_status_t validate(session_t* s, size_t r, size_t i) {
  const assay_runner_results_t* one = &s->results.runners[r];
  const assay_compare_log_t log = pg_compare_log();
  char prefix[160];
  bool all = true;
  if (!pg_given(s->j->args, PG_FLAG_validate)) return NULL;
  snprintf(prefix, sizeof prefix, "%s  | Iteration %zu | ", one->name, i);
  for (size_t k = 0; k < one->saved.runs[i].n; k++) {
    bool valid = true;
    ASSAY_TRY(assay_validate_output(&log, 0, prefix, one->saved.runs[i].names[k],
                                    one->saved.runs[i].tensors[k], &s->said, &valid));
    all &= valid;
  }
  if (all) return NULL;
  if (r < s->n) pg_cause_invalid(s->j, &s->runners[r], &s->inputs.runs[i]);
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "Output validation failed: iteration %zu contains invalid values (NaNs/Infs). "
                     "See the errors above.",
                     i);
}

// One pair of neighbours in one iteration.
static assay_status_t compare_pair(session_t* s, size_t first, size_t i, bool* out_failed) {
  const assay_runner_results_t *a = &s->results.runners[first], *b = a + 1;
  const bool scripted = pg_given(s->j->args, PG_FLAG_compare_func_script);
  assay_set_t left = {0}, right = {0};
  *out_failed = false;
  if (i >= a->saved.n || i >= b->saved.n) return NULL;
  assay_status_t st = pg_postprocess(s->j, a->name, &a->saved.runs[i], &left);
  if (!st) st = pg_postprocess(s->j, b->name, &b->saved.runs[i], &right);
  if (!st && scripted)
    st = pg_compare_by_script(s->j, &s->comparing, s->pairs[first], &left, &right, out_failed);
  else if (!st)
    st = assay_comparing_iteration(&s->comparing, s->pairs[first], &left, &right, out_failed);
  // Of averages the whole decides (conclude).
  if (!st && *out_failed && !pg_given(s->j->args, PG_FLAG_check_average)) s->j->failed = true;
  if (!st && *out_failed && !scripted) {  // why a script's function says no, it alone knows
    const pg_disputed_t d = {.first = first < s->n ? &s->runners[first] : NULL,
                             .second = first + 1 < s->n ? &s->runners[first + 1] : NULL,
                             .inputs = i < s->inputs.n ? &s->inputs.runs[i] : NULL,
                             .a = &left,
                             .b = &right};
    pg_cause(s->j, &d);
  }
  assay_set_deinit(&left);
  assay_set_deinit(&right);
  return st;
}

static bool ends(const session_t* s, bool failed) {
  return failed && pg_given(s->j->args, PG_FLAG_fail_fast);
}

static assay_status_t add_pairs(session_t* s) {
  for (size_t r = 0; r + 1 < s->results.n; r++) {
    const assay_runner_results_t *a = &s->results.runners[r], *b = a + 1;
    if (a->saved.n && b->saved.n)
      ASSAY_TRY(assay_comparing_add_pair(&s->comparing, a->name, b->name, &s->pairs[r]));
  }
  return NULL;
}

// All that is done with an iteration after its runs. *out_end: nothing more is to be done.
static assay_status_t judge(session_t* s, size_t i, bool* out_end) {
  for (size_t r = 0; r < s->results.n; r++)
    if (i < s->results.runners[r].saved.n) ASSAY_TRY(validate(s, r, i));
  if (!i && s->results.n > 1) ASSAY_TRY(add_pairs(s));
  pg_log(PG_INFO, "Iteration: %zu", i);
  for (size_t r = 0; !*out_end && r + 1 < s->results.n; r++) {
    bool failed;
    ASSAY_TRY(compare_pair(s, r, i, &failed));
    *out_end = ends(s, failed);
  }
  return NULL;
}

// ---- files --------------------------------------------------------------------------------------

// --load-outputs: the runners of each file after ours.
static assay_status_t load_outputs(session_t* s) {
  const pg_words_t* paths = pg_words(s->j->args, PG_FLAG_load_outputs);
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < paths->n; i++) {
    const assay_tensor_request_t request = {paths->items[i], g->outputs, g->n_outputs, true, NULL};
    assay_run_results_t read = {0};
    pg_log(PG_INFO, "Loading inference results from %s", paths->items[i]);
    ASSAY_TRY(assay_status_note(assay_tensor_file_read_all(&request, &read), "--load-outputs"));
    assay_status_t st = NULL;
    for (size_t r = 0; !st && r < read.n; r++) {
      assay_runner_results_t* added = NULL;
      st = assay_run_results_add(&s->results, read.runners[r].name, &added);
      if (st) break;
      added->saved = read.runners[r].saved;
      added->seconds = read.runners[r].seconds;
      added->cap = read.runners[r].cap;
      read.runners[r].saved = (assay_saved_t){0};
      read.runners[r].seconds = NULL;
    }
    assay_run_results_deinit(&read);
    if (st) return st;
  }
  return NULL;
}

// The iterations of one runner, for formats that know no runners; shared.
static assay_status_t write_plain(const char* path, const assay_runner_results_t* r,
                                  assay_str_t* notes) {
  assay_saved_t shared = {.results = true};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < r->saved.n; i++) {
    assay_set_t* run = NULL;
    st = assay_saved_add_run(&shared, &run);
    for (size_t k = 0; !st && k < r->saved.runs[i].n; k++)
      st = assay_set_add(run, r->saved.runs[i].names[k],
                         assay_tensor_retain(r->saved.runs[i].tensors[k]));
  }
  if (!st) st = assay_tensor_file_write(path, &shared, r->name, notes);
  assay_saved_deinit(&shared);
  return st;
}

static assay_status_t save_outputs(session_t* s) {
  const char* path = pg_text(s->j->args, PG_FLAG_save_outputs);
  assay_str_t notes = {0};
  if (!path) return NULL;
  assay_run_results_t own = s->results;  // without those that were loaded
  own.n = s->n;
  const char* slash = strrchr(path, '/');
  const bool json = assay_ends_with(path, ".json") || !strchr(slash ? slash + 1 : path, '.');
  pg_log(PG_INFO, "Saving inference results to %s", path);
  if (!json && own.n > 1)
    pg_log(PG_WARNING, "--save-outputs: '%s' holds one runner: %s", path, own.runners[0].name);
  assay_status_t st = json ? assay_run_results_write(path, &own, &notes)
                           : write_plain(path, &own.runners[0], &notes);
  if (notes.len) pg_log(PG_WARNING, ASSAY_LINES, assay_str_get(&notes));
  assay_str_deinit(&notes);
  return st;
}

static assay_status_t save_onnx(session_t* s) {
  const char* path = pg_text(s->j->args, PG_FLAG_save_onnx);
  assay_model_t* raw = NULL;
  if (!path) return NULL;
  ASSAY_TRY(pg_load_model(s->j, &raw));
  assay_status_t st = pg_save_model(s->j, raw, path);
  assay_model_release(raw);
  return st;
}

// ---- the order of things ------------------------------------------------------------------------

static assay_status_t open_comparison(session_t* s) {
  if (s->results.n < 2 && s->n + pg_words(s->j->args, PG_FLAG_load_outputs)->n < 2) return NULL;
  ASSAY_TRY(assay_arena_new(s->j->arena, s->results.n + 1, sizeof *s->pairs, &s->pairs));
  ASSAY_TRY(assay_comparing_begin(&s->compare.comparison, &s->comparing));
  s->compares = true;
  return NULL;
}

// Turn about: each iteration is run by all, and judged, before the next one.
static assay_status_t run_aside(session_t* s) {
  bool end = false;
  for (size_t r = 0; r < s->n; r++) ASSAY_TRY(open_runner(s, r));
  for (size_t r = 0; r < s->n; r++) ASSAY_TRY(warm_up(s, r));
  ASSAY_TRY(load_outputs(s));
  ASSAY_TRY(open_comparison(s));
  for (size_t i = 0; !end && i < s->inputs.n; i++) {
    report_iteration(i, &s->inputs.runs[i]);
    for (size_t r = 0; r < s->n; r++) ASSAY_TRY(run_one(s, r, i));
    ASSAY_TRY(judge(s, i, &end));
  }
  return NULL;
}

// One after the other, as older versions did it.
static assay_status_t run_in_turn(session_t* s) {
  bool end = false;
  for (size_t r = 0; r < s->n; r++) {
    ASSAY_TRY(open_runner(s, r));
    ASSAY_TRY(warm_up(s, r));
    double all = 0;
    for (size_t i = 0; i < s->inputs.n; i++) {
      report_first(s, r, i, "Inference Input(s)", &s->inputs.runs[i]);
      ASSAY_TRY(run_one(s, r, i));
      all += 1e3 * s->results.runners[r].seconds[i];
    }
    pg_log(PG_INFO,
           "%s  | Completed %zu iteration(s) in %.4g ms | Average inference time: %.4g ms.",
           s->runners[r].name, s->inputs.n, all, all / (double)s->inputs.n);
  }
  ASSAY_TRY(load_outputs(s));
  ASSAY_TRY(open_comparison(s));
  for (size_t i = 0; !end && i < s->inputs.n; i++) ASSAY_TRY(judge(s, i, &end));
  return NULL;
}

// Without runners: what was loaded is compared.
static assay_status_t compare_loaded(session_t* s) {
  bool end = false;
  size_t max = 0;
  ASSAY_TRY(load_outputs(s));
  ASSAY_TRY(open_comparison(s));
  for (size_t r = 0; r < s->results.n; r++)
    if (s->results.runners[r].saved.n > max) max = s->results.runners[r].saved.n;
  for (size_t i = 0; !end && i < max; i++) ASSAY_TRY(judge(s, i, &end));
  return NULL;
}

static assay_status_t judge_averages(session_t* s) {
  bool passed = true;
  if (pg_given(s->j->args, PG_FLAG_check_average))
    ASSAY_TRY(assay_accuracy_results_passed(&s->comparing.results, &passed));
  s->j->failed |= !passed;
  return NULL;
}

static assay_status_t conclude(session_t* s) {
  if (s->n) ASSAY_TRY(save_outputs(s));
  if (!s->compares) return NULL;
  ASSAY_TRY(pg_save_accuracy(s->j->args, &s->comparing.results));
  ASSAY_TRY(judge_averages(s));
  return pg_given(s->j->args, PG_FLAG_fail_fast) && s->j->failed
             ? NULL
             : assay_comparing_summary(&s->comparing);
}

static assay_status_t prepare(session_t* s) {
  const pg_args_t* a = s->j->args;
  if (!a->positional.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "The runners need a model: polygraphy run MODEL %s",
                       pg_flags[a->runners[0]].names);
  ASSAY_TRY(pg_runner_inputs(s->j, &s->model));
  ASSAY_TRY(pg_feed_make(s->j, s->model->graph->inputs, s->model->graph->n_inputs, &s->inputs));
  ASSAY_TRY(pg_feed_save(s->j, &s->inputs));
  return save_onnx(s);
}

static assay_status_t run(session_t* s) {
  const pg_args_t* a = s->j->args;
  if (pg_given(a, PG_FLAG_postprocess_func_script) && pg_given(a, PG_FLAG_postprocess))
    pg_log(PG_WARNING,
           "Argument: '--postprocess/--postprocess-func' will be ignored since "
           "'--postprocess-func-script' was provided.");
  ASSAY_TRY(pg_compare_init(a, s->j->arena, &s->compare));
  if (!a->n_runners) {
    pg_log(PG_WARNING, "No runners have been selected. Inference will not be run!");
    if (!a->positional.n || pg_words(a, PG_FLAG_load_outputs)->n < 1) return NULL;
    ASSAY_TRY(pg_runner_inputs(s->j, &s->model));
    ASSAY_TRY(compare_loaded(s));
    return conclude(s);
  }
  ASSAY_TRY(prepare(s));
  s->n = a->n_runners;
  ASSAY_TRY(assay_arena_new(s->j->arena, s->n, sizeof *s->runners, &s->runners));
  ASSAY_TRY(pg_given(a, PG_FLAG_sequential_runners) ? run_in_turn(s) : run_aside(s));
  return conclude(s);
}

assay_status_t pg_run_run(pg_job_t* j) {
  session_t s = {.j = j};
  if (pg_given(j->args, PG_FLAG_show_native)) return pg_run_print_native(j);
  if (pg_given(j->args, PG_FLAG_gen)) return pg_run_write_script(j);
  assay_status_t st = run(&s);
  session_deinit(&s);
  return st;
}
