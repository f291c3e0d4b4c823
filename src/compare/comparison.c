// Polygraphy's comparisons of what two runners gave, printed as it prints them.
#include "compare/comparison.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "compare/comparison_internal.h"
#include "io/numpy_text.h"

void assay_tolerances_init(assay_tolerances_t* out) {
  *out = (assay_tolerances_t){
      .stat = ASSAY_STAT_ELEMWISE, .atol = {.x = 1e-5}, .rtol = {.x = 1e-5}, .quantile = 0.99};
  for (int i = 0; i < ASSAY_N_METRICS; i++)
    out->limit[i] = (assay_tolerance_t){.x = assay_metric_info((assay_metric_t)i)->limit};
}

assay_status_t assay_comparing_check(const assay_comparing_settings_t* c) {
  assay_tolerances_t d;
  if (!c->check_average) return NULL;
  if (c->fail_fast)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check-average cannot be combined with --fail-fast: an average needs all "
                       "iterations");
  ASSAY_TRY(c->tolerances(c->self, "", &d));
  for (size_t i = 0; i < c->n_metrics; i++) {
    if (c->metrics[i] == ASSAY_METRIC_INDICES)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--check-average cannot be used with indices, which give no number to "
                         "average");
    if (c->metrics[i] == ASSAY_METRIC_SIMPLE && d.stat == ASSAY_STAT_ELEMWISE)
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT,
          "--check-average cannot be used with the error statistic 'elemwise' (the "
          "default), which is not a number; give --check-error-stat max, mean, median "
          "or quantile");
  }
  return NULL;
}

// ---- outputs of one name ------------------------------------------------------------------------

static bool contains(const char* text, const char* part) {
  const size_t n = strlen(part);
  for (; *text; text++) {
    size_t i = 0;
    while (i < n && text[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
      i++;
    if (i == n) return true;
  }
  return n == 0;
}

// The output of b that output i of a goes with: of its name, else of a name that holds it or that
// it holds, else the one in its place. b->n: none.
static size_t counterpart(const assay_set_t* a, size_t i, const assay_set_t* b) {
  for (size_t k = 0; k < b->n; k++)
    if (strcmp(a->names[i], b->names[k]) == 0) return k;
  for (size_t k = 0; k < b->n; k++)
    if (contains(b->names[k], a->names[i]) || contains(a->names[i], b->names[k])) return k;
  return i < b->n ? i : b->n;
}

// What output i is compared with; b->n where it is skipped, which is told.
static size_t choose(const assay_comparing_t* run, const assay_compared_pair_t* pair,
                     const assay_set_t* a, size_t i, const assay_set_t* b) {
  const assay_compare_log_t* log = &run->comparison->log;
  const size_t k = counterpart(a, i, b);
  if (k < b->n && strcmp(a->names[i], b->names[k]) == 0) return k;
  if (k < b->n && !assay_set_find(a, b->names[k])) {
    assay_compare_log(
        log, ASSAY_LOG_WARNING, 1,
        "Output names did not match exactly. Assuming %s output: %s corresponds to output: %s",
        pair->second, b->names[k], a->names[i]);
    return k;
  }
  assay_compare_log(
      log, ASSAY_LOG_WARNING, 1,
      "Output: '%s' [%s] is skipped, since [%s] has no output that it could be compared with",
      a->names[i], pair->first, pair->second);
  return b->n;
}

// ---- one output ---------------------------------------------------------------------------------

static assay_status_t print_pair(const assay_compare_job_t* j, assay_metric_t metric) {
  assay_str_t text = {0};
  assay_str_printf(&text, "%s | Comparing Output: '%s' (dtype=%s, shape=",
                   assay_metric_info(metric)->label, j->name, assay_numpy_type_name(j->a.type));
  assay_numpy_print_shape(j->a.rank, j->a.dims, &text);
  assay_str_printf(&text, ") with '%s' (dtype=%s, shape=", j->other,
                   assay_numpy_type_name(j->b.type));
  assay_numpy_print_shape(j->b.rank, j->b.dims, &text);
  assay_str_append(&text, ")");
  return assay_log_text(&j->run->comparison->log, ASSAY_LOG_START, 1, &text);
}

static void print_requirement(const assay_compare_job_t* j, assay_metric_t metric) {
  const assay_compare_log_t* log = &j->run->comparison->log;
  if (metric == ASSAY_METRIC_SIMPLE)
    assay_compare_log(log, ASSAY_LOG_INFO, 2, "Tolerance: [abs=%.5g, rel=%.5g] | Checking %s error",
                      j->tolerances.atol.x, j->tolerances.rtol.x,
                      assay_error_stat_name(j->tolerances.stat));
  if (metric != ASSAY_METRIC_INDICES)
    assay_compare_log(log, ASSAY_LOG_EXTRA, 2, "Note: Comparing %s vs. %s", j->first, j->second);
}

// Makes shapes equal where that is allowed and can be done. False: they differ, which is told.
static assay_status_t align(assay_compare_job_t* j, bool* out_aligned) {
  const assay_comparing_settings_t* s = j->run->comparison;
  assay_str_t text = {0};
  if (s->no_shape_check && !assay_numeric_same_shape(&j->a, &j->b))
    ASSAY_TRY(assay_match_shape(&s->log, 2, &j->a, &j->b));
  *out_aligned = assay_numeric_same_shape(&j->a, &j->b);
  if (*out_aligned) return NULL;
  assay_str_printf(&text,
                   "FAILED | Output: `%s` | Will not compare outputs of different shapes.\nNote: "
                   "Output shapes are ",
                   j->name);
  assay_numpy_print_shape(j->a.rank, j->a.dims, &text);
  assay_str_append(&text, " and ");
  assay_numpy_print_shape(j->b.rank, j->b.dims, &text);
  assay_str_append(&text, ".");
  ASSAY_TRY(assay_log_text(&s->log, ASSAY_LOG_ERROR, 2, &text));
  if (s->no_shape_check) return NULL;
  return assay_log_once(&s->log, &j->run->said, ASSAY_LOG_ERROR, 2,
                        "Note: Use --no-shape-check to attempt to compare values anyway.");
}

static assay_status_t compare_loaded(assay_compare_job_t* j, assay_metric_t metric,
                                     assay_compared_t* out) {
  bool aligned = false;
  ASSAY_TRY(print_pair(j, metric));
  print_requirement(j, metric);
  if (metric == ASSAY_METRIC_INDICES) return assay_compare_indices(j, out);
  ASSAY_TRY(align(j, &aligned));
  if (!aligned) return NULL;
  if (metric == ASSAY_METRIC_SIMPLE) return assay_compare_simple(j, out);
  return assay_compare_one_number(j, metric, out);
}

static assay_status_t compare_outputs(assay_comparing_t* run, const assay_compared_pair_t* pair,
                                      assay_metric_t metric, const assay_set_t* a, size_t i,
                                      const assay_set_t* b, size_t k, assay_compared_t* out) {
  const assay_comparing_settings_t* s = run->comparison;
  assay_compare_job_t j = {.run = run,
                           .first = pair->first,
                           .second = pair->second,
                           .name = a->names[i],
                           .other = b->names[k]};
  ASSAY_TRY(s->tolerances(s->self, j.name, &j.tolerances));
  assay_status_t st =
      assay_status_note(assay_numeric_from(a->tensors[i], &j.a), "output '%s'", j.name);
  if (!st) st = assay_status_note(assay_numeric_from(b->tensors[k], &j.b), "output '%s'", j.other);
  if (!st) st = compare_loaded(&j, metric, out);
  assay_numeric_deinit(&j.a);
  assay_numeric_deinit(&j.b);
  return st;
}

// ---- one metric ---------------------------------------------------------------------------------

// A list of texts as Python prints it.
static void put_quoted(assay_str_t* out, const char* text) {
  const char* quote = strchr(text, '\'') && !strchr(text, '"') ? "\"" : "'";
  assay_str_append(out, quote);
  char shown[8];
  for (size_t n = strlen(text), used; n; text += used, n -= used) {
    used = assay_char_shown(text, n, shown);
    if (*text == '\\' || *text == *quote) assay_str_append(out, "\\");
    assay_str_append(out, shown);
  }
  assay_str_append(out, quote);
}

static void put_names(assay_str_t* out, const assay_set_t* set) {
  assay_str_append(out, "[");
  for (size_t i = 0; i < set->n; i++) {
    if (i) assay_str_append(out, ", ");
    put_quoted(out, set->names[i]);
  }
  assay_str_append(out, "]");
}

static assay_status_t print_outcome(const assay_comparing_t* run, assay_metric_t metric,
                                    const assay_compared_run_t* compared) {
  const char* label = assay_metric_info(metric)->label;
  assay_str_t all = {0}, failed = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < compared->n; i++) {
    bool passed = false;
    st = assay_compared_passed(metric, &compared->outputs[i], &passed);
    for (int k = 0; k < 1 + !passed; k++) {
      assay_str_t* list = k ? &failed : &all;
      if (list->len) assay_str_append(list, ", ");
      put_quoted(list, compared->outputs[i].output);
    }
  }
  if (!st) st = assay_status_join(assay_str_status(&all), assay_str_status(&failed));
  if (!st && failed.len)
    assay_compare_log(&run->comparison->log, ASSAY_LOG_ERROR, 1,
                      "FAILED | %s | Mismatched outputs: [%s]", label, failed.text);
  else if (!st)
    assay_compare_log(&run->comparison->log, ASSAY_LOG_FINISH, 1,
                      "PASSED | %s | All outputs matched | Outputs: [%s]", label,
                      assay_str_get(&all));
  assay_str_deinit(&all);
  assay_str_deinit(&failed);
  return st;
}

static assay_status_t nothing_common(const assay_compared_pair_t* pair, const assay_set_t* a,
                                     const assay_set_t* b) {
  assay_str_t text = {0};
  assay_str_printf(&text, "%s outputs: ", pair->first);
  put_names(&text, a);
  assay_str_printf(&text, "; %s outputs: ", pair->second);
  put_names(&text, b);
  assay_status_t st = assay_str_status(&text);
  if (!st)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "All outputs were skipped, no common outputs found! %s", text.text);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t compare_metric(assay_comparing_t* run, assay_accuracy_result_t* result,
                                     size_t pair_at, const assay_set_t* a, const assay_set_t* b,
                                     bool* failed) {
  const assay_comparing_settings_t* s = run->comparison;
  assay_compared_pair_t* pair = &result->pairs[pair_at];
  assay_compared_run_t* out = NULL;
  if (s->unknown) s->unknown(s->self, result->metric, a, b);
  if (s->no_shape_check && result->metric != ASSAY_METRIC_INDICES)
    ASSAY_TRY(assay_log_once(&s->log, &run->said, ASSAY_LOG_INFO, 1,
                             "Strict shape checking disabled. Will attempt to match output shapes "
                             "before comparisons"));
  ASSAY_TRY(assay_compared_pair_add(pair, &out));
  for (size_t i = 0; i < a->n; i++) {
    const size_t k = choose(run, pair, a, i, b);
    assay_compared_t* c = NULL;
    bool passed = false;
    if (k == b->n) continue;
    ASSAY_TRY(assay_compared_run_add(&run->results, out, a->names[i], b->names[k], &c));
    ASSAY_TRY(compare_outputs(run, pair, result->metric, a, i, b, k, c));
    ASSAY_TRY(assay_compared_passed(result->metric, c, &passed));
    *failed |= !passed;
    if (!passed && s->fail_fast) return NULL;
  }
  ASSAY_TRY(print_outcome(run, result->metric, out));
  return out->n || !(a->n + b->n) ? NULL : nothing_common(pair, a, b);
}

// ---- statistics of what was compared ------------------------------------------------------------

static assay_status_t print_tensor(const assay_comparing_t* run, const char* runner,
                                   const char* name, const assay_numeric_t* t,
                                   const assay_numeric_stats_t* stats, bool failed,
                                   const assay_numeric_range_t* range) {
  assay_str_t prefix = {0};
  assay_str_printf(&prefix, "%s: %s | Stats: ", runner, name);
  assay_status_t st = assay_str_status(&prefix);
  if (!st) st = assay_log_stats(&run->comparison->log, 1, prefix.text, t, stats, failed, range);
  assay_str_deinit(&prefix);
  return st;
}

// Both have the same histogram's range.
static assay_status_t print_both(const assay_comparing_t* run, const assay_compared_pair_t* pair,
                                 const assay_compared_t* c, const assay_numeric_t* a,
                                 const assay_numeric_t* b, bool failed) {
  assay_numeric_stats_t x, y;
  if (!assay_log_shows(&run->comparison->log, ASSAY_LOG_INFO)) return NULL;
  ASSAY_TRY(assay_numeric_stats(a, &x));
  ASSAY_TRY(assay_numeric_stats(b, &y));
  const double low_a = x.min.x, low_b = y.min.x, high_a = x.max.x, high_b = y.max.x;
  const assay_numeric_range_t range = {.first = low_b < low_a ? low_b : low_a,
                                       .last = high_b > high_a ? high_b : high_a};
  ASSAY_TRY(print_tensor(run, pair->first, c->output, a, &x, failed, &range));
  return print_tensor(run, pair->second, c->other, b, &y, failed, &range);
}

// Whether an output failed by any of the metrics in the last iteration.
static assay_status_t any_failed(const assay_comparing_t* run, size_t pair, const char* output,
                                 bool* out) {
  *out = false;
  for (size_t i = 0; i < run->results.n; i++) {
    const assay_compared_pair_t* p = &run->results.items[i].pairs[pair];
    const assay_compared_run_t* last = &p->runs[p->n - 1];
    for (size_t k = 0; k < last->n; k++) {
      bool passed = true;
      if (strcmp(last->outputs[k].output, output) == 0)
        ASSAY_TRY(assay_compared_passed(run->results.items[i].metric, &last->outputs[k], &passed));
      *out |= !passed;
    }
  }
  return NULL;
}

static assay_status_t print_compared(const assay_comparing_t* run, size_t pair_at,
                                     const assay_set_t* a, const assay_set_t* b) {
  const assay_compared_pair_t* pair = &run->results.items[0].pairs[pair_at];
  const assay_compared_run_t* last = &pair->runs[pair->n - 1];
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < last->n; i++) {
    const assay_compared_t* c = &last->outputs[i];
    assay_numeric_t x = {0}, y = {0};
    bool failed = false;
    st = any_failed(run, pair_at, c->output, &failed);
    if (!st) st = assay_numeric_from(assay_set_find(a, c->output), &x);
    if (!st) st = assay_numeric_from(assay_set_find(b, c->other), &y);
    if (!st) st = print_both(run, pair, c, &x, &y, failed);
    assay_numeric_deinit(&x);
    assay_numeric_deinit(&y);
  }
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

assay_status_t assay_comparing_begin(const assay_comparing_settings_t* c, assay_comparing_t* out) {
  assay_comparing_t run = {.comparison = c};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < c->n_metrics; i++) {
    assay_accuracy_result_t* result;
    st = assay_accuracy_results_add(&run.results, c->metrics[i], c->check_average, &result);
  }
  if (st) return assay_comparing_deinit(&run), st;
  *out = run;
  return NULL;
}

void assay_comparing_deinit(assay_comparing_t* c) {
  assay_accuracy_results_deinit(&c->results);
  assay_set_deinit(&c->said);
}

assay_status_t assay_comparing_add_pair(assay_comparing_t* c, const char* first, const char* second,
                                        size_t* out_pair) {
  for (size_t i = 0; i < c->results.n; i++) {
    assay_compared_pair_t* pair;
    *out_pair = c->results.items[i].n;
    ASSAY_TRY(
        assay_accuracy_result_add_pair(&c->results, &c->results.items[i], first, second, &pair));
  }
  assay_compare_log(&c->comparison->log, ASSAY_LOG_START, 0, "Accuracy Comparison | %s vs. %s",
                    first, second);
  return NULL;
}

assay_status_t assay_comparing_iteration(assay_comparing_t* c, size_t pair, const assay_set_t* a,
                                         const assay_set_t* b, bool* out_failed) {
  bool failed = false;
  for (size_t i = 0; i < c->results.n; i++)
    ASSAY_TRY(compare_metric(c, &c->results.items[i], pair, a, b, &failed));
  if (c->results.n) ASSAY_TRY(print_compared(c, pair, a, b));
  *out_failed = failed;
  return NULL;
}
