// polygraphy check accuracy: saved comparisons against other thresholds.
#include <string.h>

#include "base/alloc.h"
#include "frontends/polygraphy/data/compare_flags.h"

static const char* const simple_fields =
    "'max_absdiff', 'max_reldiff', 'mean_absdiff', 'mean_reldiff', 'median_absdiff', "
    "'median_reldiff', 'quantile_absdiff', 'quantile_reldiff'";

static void put_fields(assay_str_t* out, assay_metric_t metric) {
  const char* field = assay_metric_info(metric)->field;
  if (metric == ASSAY_METRIC_SIMPLE)
    assay_str_printf(out, "[%s]", simple_fields);
  else
    assay_str_printf(out, field ? "['%s']" : "[]", field);
}

static assay_status_t nothing_matches(assay_metric_t metric, const assay_accuracy_results_t* r) {
  assay_str_t text = {0};
  assay_str_append(&text,
                   "No saved comparison results match the requested threshold (metric fields: ");
  put_fields(&text, metric);
  assay_str_append(&text, "); the saved results contain these: [");
  for (size_t i = 0; i < r->n; i++) {
    if (i) assay_str_append(&text, ", ");
    put_fields(&text, r->items[i].metric);
  }
  assay_str_append(&text, "]");
  assay_status_t st = assay_str_status(&text);
  if (!st) st = ASSAY_ERROR(ASSAY_NOT_FOUND, "%s", text.text);
  assay_str_deinit(&text);
  return st;
}

// ---- other thresholds ---------------------------------------------------------------------------

static assay_status_t set_threshold(const pg_compare_t* c, assay_metric_t metric,
                                    assay_compared_t* out) {
  assay_tolerances_t d;
  if (!out->measured)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "Output: '%s' has no numbers that could be checked again (its shapes "
                       "differed); compare saved outputs (run --save-outputs, then --load-outputs)",
                       out->output);
  ASSAY_TRY(c->comparison.tolerances(c->comparison.self, out->output, &d));
  out->decided = false;
  out->threshold =
      (assay_threshold_t){.stat = d.stat, .atol = d.atol, .rtol = d.rtol, .limit = d.limit[metric]};
  return NULL;
}

static assay_status_t set_thresholds(const pg_compare_t* c, assay_accuracy_result_t* r) {
  r->average = c->comparison.check_average;
  for (size_t p = 0; p < r->n; p++)
    for (size_t i = 0; i < r->pairs[p].n; i++)
      for (size_t k = 0; k < r->pairs[p].runs[i].n; k++)
        ASSAY_TRY(set_threshold(c, r->metric, &r->pairs[p].runs[i].outputs[k]));
  return NULL;
}

// Brings the result of each metric that is asked for to the front, in that order.
static assay_status_t choose(const pg_compare_t* c, assay_accuracy_results_t* r, size_t* out_n) {
  size_t n = 0;
  for (size_t i = 0; i < c->comparison.n_metrics; i++) {
    const assay_metric_t metric = c->comparison.metrics[i];
    size_t at = n;
    if (!assay_metric_info(metric)->field) continue;
    while (at < r->n && r->items[at].metric != metric) at++;
    if (at == r->n) return nothing_matches(metric, r);
    const assay_accuracy_result_t found = r->items[at];
    memmove(&r->items[n + 1], &r->items[n], (at - n) * sizeof *r->items);
    r->items[n++] = found;
  }
  *out_n = n;
  return NULL;
}

static assay_status_t report_ignored(const assay_accuracy_result_t* r) {
  assay_str_t text = {0};
  put_fields(&text, r->metric);
  assay_status_t st = assay_str_status(&text);
  if (!st)
    pg_log(PG_INFO,
           "Ignoring saved comparison with metric fields %s: no matching threshold was requested.",
           text.text);
  assay_str_deinit(&text);
  return st;
}

// Flags of comparisons whose outputs are at hand.
static void warn_unused(const pg_args_t* a) {
  static const pg_flag_id_t flags[] = {
      PG_FLAG_no_shape_check, PG_FLAG_infinities_compare_equal, PG_FLAG_error_quantile,
      PG_FLAG_save_heatmaps,  PG_FLAG_save_error_metrics_plot,  PG_FLAG_fail_fast};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (pg_given(a, flags[i]))
      pg_log(PG_WARNING,
             "%.*s has no effect on saved results, which keep numbers alone: give it to "
             "'polygraphy run'",
             (int)strcspn(pg_flags[flags[i]].names, " "), pg_flags[flags[i]].names);
}

// ---- the command --------------------------------------------------------------------------------

static assay_status_t check(pg_job_t* j, const pg_compare_t* c, assay_accuracy_results_t* r) {
  const assay_compare_log_t log = pg_compare_log();
  size_t n = 0;
  bool passed = false;
  ASSAY_TRY(choose(c, r, &n));
  if (!n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "nothing was checked: comparisons of indices keep no numbers; compare saved "
                       "outputs (run --save-outputs, then --load-outputs)");
  for (size_t i = 0; i < n; i++) ASSAY_TRY(set_thresholds(c, &r->items[i]));
  for (size_t i = n; i < r->n; i++) ASSAY_TRY(report_ignored(&r->items[i]));
  const assay_accuracy_results_t checked = {.arena = r->arena, .items = r->items, .n = n};
  for (size_t i = 0; i < n; i++) ASSAY_TRY(assay_log_result_summary(&log, &r->items[i]));
  ASSAY_TRY(assay_accuracy_results_passed(&checked, &passed));
  ASSAY_TRY(pg_save_accuracy(j->args, &checked));
  if (passed)
    pg_log(PG_FINISH, "PASSED | Accuracy results passed the requested thresholds.");
  else
    pg_log(PG_ERROR, "FAILED | Accuracy results did not pass the requested thresholds.");
  j->failed = !passed;
  return NULL;
}

assay_status_t pg_run_check_accuracy(pg_job_t* j) {
  const char* path = j->args->positional.items[0];
  assay_accuracy_results_t results = {0};
  pg_compare_t compare = {0};
  if (pg_given(j->args, PG_FLAG_compare_func_script))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--compare-func-script needs outputs, of which saved comparisons keep only "
                       "numbers: give it to 'polygraphy run', with --load-outputs");
  assay_status_t st = pg_compare_init(j->args, j->arena, &compare);
  if (!st) warn_unused(j->args);
  if (!st) {
    pg_log(PG_INFO, "Loading accuracy results from %s", path);
    st = assay_accuracy_results_read(path, &results);
  }
  if (!st) st = check(j, &compare, &results);
  assay_accuracy_results_deinit(&results);
  pg_compare_deinit(&compare);
  return st;
}
