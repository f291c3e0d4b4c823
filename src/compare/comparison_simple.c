// The comparison by absolute and relative tolerances.
#include <math.h>

#include "base/alloc.h"
#include "compare/comparison_internal.h"
#include "compare/comparison_pictures.h"
#include "io/numpy_text.h"

enum { DEPTH = 2 };
static const double epsilon = 2.220446049250313e-16;  // what a zero denominator becomes

// ---- differences --------------------------------------------------------------------------------

// |a - b|; of two bools whether they differ.
static assay_status_t absolute(const assay_compare_job_t* j, assay_numeric_t* out) {
  const assay_numeric_t *a = &j->a, *b = &j->b;
  if (a->number == ASSAY_NUMERIC_BOOL && b->number == ASSAY_NUMERIC_BOOL) {
    ASSAY_TRY(assay_numeric_like(a, ASSAY_NUMERIC_BOOL, out));
    for (int64_t i = 0; i < a->n; i++) out->i[i] = a->i[i] != b->i[i];
    return NULL;
  }
  ASSAY_TRY(assay_numeric_subtract(a, b, out));
  assay_numeric_abs(out);
  for (int64_t i = 0; j->run->comparison->infinities_equal && a->f && i < a->n; i++)
    if (isinf(a->f[i]) && a->f[i] == assay_numeric_at(b, i)) out->f[i] = 0;
  return NULL;
}

// |b| without zeros where it is of floats.
static assay_status_t denominator(const assay_compare_job_t* j, assay_numeric_t* out) {
  const assay_numeric_t* b = &j->b;
  bool zero = false;
  ASSAY_TRY(assay_numeric_like(b, b->number, out));
  for (int64_t i = 0; i < b->n; i++) {
    if (!b->f) {
      out->i[i] = b->i[i];
      continue;
    }
    zero |= b->f[i] == 0;
    out->f[i] = b->f[i] == 0 ? assay_numeric_round(b->number, epsilon) : b->f[i];
  }
  assay_numeric_abs(out);
  if (!zero) return NULL;
  assay_str_t text = {0};
  assay_str_printf(&text,
                   "%-35s | Output: %s: Some values are 0. Will add a small epsilon quantity to "
                   "these when computing relative difference. Note that this may cause some "
                   "relative differences to be extremely high. ",
                   j->second, j->other);
  assay_status_t st = assay_str_status(&text);
  if (!st)
    st = assay_log_once(&j->run->comparison->log, &j->run->said, ASSAY_LOG_WARNING, DEPTH,
                        text.text);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t relative(const assay_compare_job_t* j, const assay_numeric_t* abs,
                               assay_numeric_t* out) {
  assay_numeric_t below = {0};
  assay_status_t st = denominator(j, &below);
  if (!st) st = assay_numeric_divide(abs, &below, out);
  assay_numeric_deinit(&below);
  return st;
}

// ---- statistics ---------------------------------------------------------------------------------

// Of the absolute and of the relative differences, made once.
typedef struct both_stats {
  assay_numeric_stats_t abs, rel;
} both_stats_t;

static assay_status_t quantile(const assay_numeric_t* d, double q, double* out) {
  assay_ranked_t ranked;
  ASSAY_TRY(assay_ranked_init(d, &ranked));
  *out = assay_ranked_quantile(&ranked, q);
  assay_ranked_deinit(&ranked);
  return NULL;
}

static assay_diff_t known(double abs, double rel) {
  return (assay_diff_t){.known = true, .abs = abs, .rel = rel};
}

static assay_status_t summarize(const assay_compare_job_t* j, const assay_numeric_t* abs,
                                const assay_numeric_t* rel, both_stats_t* s,
                                assay_compared_t* out) {
  const assay_tolerances_t* d = &j->tolerances;
  ASSAY_TRY(assay_numeric_stats(abs, &s->abs));
  ASSAY_TRY(assay_numeric_stats(rel, &s->rel));
  out->diffs[ASSAY_DIFF_MAX] = known(s->abs.max.x, s->rel.max.x);
  out->diffs[ASSAY_DIFF_MEAN] = known(s->abs.mean, s->rel.mean);
  out->diffs[ASSAY_DIFF_MEDIAN] = known(s->abs.median, s->rel.median);
  out->diffs[ASSAY_DIFF_QUANTILE] = (assay_diff_t){0};
  if (d->stat == ASSAY_STAT_QUANTILE) {
    double a, r;
    ASSAY_TRY(quantile(abs, d->quantile, &a));
    ASSAY_TRY(quantile(rel, d->quantile, &r));
    out->diffs[ASSAY_DIFF_QUANTILE] = known(a, r);
  }
  out->measured = true;
  out->threshold = (assay_threshold_t){.stat = d->stat, .atol = d->atol, .rtol = d->rtol};
  return NULL;
}

// ---- element by element -------------------------------------------------------------------------

// A tolerance in the type that it is compared in.
static double in_type(const assay_numeric_t* d, assay_tolerance_t b) {
  return d->f ? assay_numeric_round(d->number, b.x) : b.x;
}

static bool is_past(const assay_numeric_t* d, int64_t i, double bound) {
  const double x = assay_numeric_at(d, i);
  return isnan(x) || x > bound;
}

// The elements of an array that `where` marks, as a vector.
static assay_status_t pick(const assay_numeric_t* a, const assay_numeric_t* where, int64_t n,
                           assay_numeric_t* out) {
  const assay_numeric_t shape = {.rank = 1, .dims = {n}, .n = n};
  int64_t to = 0;
  ASSAY_TRY(assay_numeric_like(&shape, a->number, out));
  out->type = a->type;
  for (int64_t i = 0; i < a->n; i++) {
    if (!where->i[i]) continue;
    if (a->f)
      out->f[to++] = a->f[i];
    else
      out->i[to++] = a->i[i];
  }
  return NULL;
}

static assay_status_t print_places(const assay_compare_job_t* j, const assay_numeric_t* where,
                                   int64_t n) {
  const assay_compare_log_t* log = &j->run->comparison->log;
  assay_numeric_t places = {0};
  const int rank = where->rank;
  const assay_numeric_t shape = {.rank = 2, .dims = {n, rank}, .n = n * rank};
  if (!assay_log_shows(log, ASSAY_LOG_SUPER)) return NULL;
  ASSAY_TRY(assay_numeric_like(&shape, ASSAY_NUMERIC_I64, &places));
  for (int64_t i = 0, row = 0; i < where->n; i++) {
    if (!where->i[i]) continue;
    int64_t rest = i;
    for (int k = rank; k-- > 0; rest /= where->dims[k])
      places.i[row * rank + k] = rest % where->dims[k];
    row++;
  }
  assay_status_t st =
      assay_log_array(log, ASSAY_LOG_SUPER, DEPTH + 1, "Mismatched indices:", 0, &places);
  assay_numeric_deinit(&places);
  return st;
}

static assay_status_t print_values(const assay_compare_job_t* j, const char* runner,
                                   const assay_numeric_t* a, const assay_numeric_t* where,
                                   int64_t n) {
  const assay_compare_log_t* log = &j->run->comparison->log;
  assay_numeric_t values = {0};
  assay_str_t heading = {0};
  if (!assay_log_shows(log, ASSAY_LOG_EXTRA)) return NULL;
  assay_str_printf(&heading, "%-35s | Mismatched values:", runner);
  assay_status_t st = assay_str_status(&heading);
  if (!st) st = pick(a, where, n, &values);
  if (!st) st = assay_log_array(log, ASSAY_LOG_EXTRA, DEPTH + 1, heading.text, 0, &values);
  assay_str_deinit(&heading);
  assay_numeric_deinit(&values);
  return st;
}

static assay_status_t elementwise(const assay_compare_job_t* j, const assay_numeric_t* abs,
                                  const assay_numeric_t* rel, bool* out_passed) {
  const double atol = in_type(abs, j->tolerances.atol), rtol = in_type(rel, j->tolerances.rtol);
  assay_numeric_t where = {0};
  int64_t n = 0;
  for (int64_t i = 0; i < abs->n; i++) n += is_past(abs, i, atol) && is_past(rel, i, rtol);
  *out_passed = n == 0;
  // Which ones they are is told to those who ask for more.
  if (!assay_log_shows(&j->run->comparison->log, ASSAY_LOG_EXTRA)) return NULL;
  ASSAY_TRY(assay_numeric_like(abs, ASSAY_NUMERIC_BOOL, &where));
  for (int64_t i = 0; i < abs->n; i++) where.i[i] = is_past(abs, i, atol) && is_past(rel, i, rtol);
  assay_status_t st = print_places(j, &where, n);
  if (!st) st = print_values(j, j->first, &j->a, &where, n);
  if (!st) st = print_values(j, j->second, &j->b, &where, n);
  assay_numeric_deinit(&where);
  return st;
}

// ---- the comparison -----------------------------------------------------------------------------

static assay_status_t print_required(const assay_compare_job_t* j, const assay_compared_t* c) {
  const assay_error_stat_t stat = j->tolerances.stat;
  const assay_diff_t* d =
      &c->diffs[stat == ASSAY_STAT_ELEMWISE ? ASSAY_DIFF_MAX : (int)stat - (int)ASSAY_STAT_MAX];
  assay_str_t text = {0};
  assay_str_printf(&text,
                   "Minimum Required Tolerance: %s error | [abs=", assay_error_stat_name(stat));
  assay_numpy_print_g(d->abs, 5, &text);
  assay_str_append(&text, "] OR [rel=");
  assay_numpy_print_g(d->rel, 5, &text);
  assay_str_append(&text, "]");
  if (stat == ASSAY_STAT_ELEMWISE)
    assay_str_append(&text, " (requirements may be lower if both abs/rel tolerances are set)");
  if (stat == ASSAY_STAT_QUANTILE)
    assay_str_printf(&text, " (quantile=%.4g)", j->tolerances.quantile);
  return assay_log_text(&j->run->comparison->log, ASSAY_LOG_INFO, DEPTH + 1, &text);
}

static assay_status_t report(const assay_compare_job_t* j, const assay_numeric_t* abs,
                             const assay_numeric_t* rel, const both_stats_t* stats,
                             const assay_compared_t* c, bool passed) {
  const assay_comparing_settings_t* s = j->run->comparison;
  assay_compare_log(&s->log, ASSAY_LOG_INFO, DEPTH, "Error Metrics: %s", j->name);
  ASSAY_TRY(print_required(j, c));
  if (s->plots) ASSAY_TRY(assay_draw_errors(j, abs, rel, s->plots, DEPTH + 2));
  ASSAY_TRY(assay_log_stats(&s->log, DEPTH + 1, "Absolute Difference | Stats: ", abs, &stats->abs,
                            !passed, NULL));
  if (s->heatmaps) ASSAY_TRY(assay_draw_heatmap(j, abs, "Absolute", s->heatmaps, DEPTH + 2));
  ASSAY_TRY(assay_log_stats(&s->log, DEPTH + 1, "Relative Difference | Stats: ", rel, &stats->rel,
                            !passed, NULL));
  return s->heatmaps ? assay_draw_heatmap(j, rel, "Relative", s->heatmaps, DEPTH + 2) : NULL;
}

static assay_status_t print_verdict(const assay_compare_job_t* j, bool passed) {
  assay_str_t text = {0};
  assay_str_printf(&text, "%s | Output: '%s' | Difference %s tolerance (rel=",
                   passed ? "PASSED" : "FAILED", j->name, passed ? "is within" : "exceeds");
  assay_tolerance_put(j->tolerances.rtol, &text);
  assay_str_append(&text, ", abs=");
  assay_tolerance_put(j->tolerances.atol, &text);
  assay_str_append(&text, ")");
  return assay_log_text(&j->run->comparison->log, passed ? ASSAY_LOG_FINISH : ASSAY_LOG_ERROR,
                        DEPTH, &text);
}

static assay_status_t judge(const assay_compare_job_t* j, const assay_numeric_t* abs,
                            const assay_numeric_t* rel, assay_compared_t* c) {
  bool passed = false;
  both_stats_t stats;
  ASSAY_TRY(summarize(j, abs, rel, &stats, c));
  if (j->tolerances.stat == ASSAY_STAT_ELEMWISE) {
    ASSAY_TRY(elementwise(j, abs, rel, &passed));
    c->decided = true;
    c->verdict = passed;
  }
  ASSAY_TRY(assay_compared_passed(ASSAY_METRIC_SIMPLE, c, &passed));
  ASSAY_TRY(report(j, abs, rel, &stats, c, passed));
  return print_verdict(j, passed);
}

assay_status_t assay_compare_simple(assay_compare_job_t* j, assay_compared_t* out) {
  assay_numeric_t abs = {0}, rel = {0};
  assay_numeric_widen(&j->a);
  assay_numeric_widen(&j->b);
  assay_status_t st = absolute(j, &abs);
  if (!st) st = relative(j, &abs, &rel);
  if (!st) st = judge(j, &abs, &rel, out);
  assay_numeric_deinit(&abs);
  assay_numeric_deinit(&rel);
  return st;
}
