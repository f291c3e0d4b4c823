// What comparisons found, kept: Polygraphy's --save-accuracy-results, and checks of it against
// other thresholds.
#include "compare/accuracy_results.h"

#include <math.h>
#include <string.h>

#include "io/numpy_text.h"

// ---- metrics ------------------------------------------------------------------------------------

// Source: Polygraphy 0.53, API reference of polygraphy.comparator (thresholds and their defaults).
static const assay_metric_info_t metrics[ASSAY_N_METRICS] = {
    [ASSAY_METRIC_SIMPLE] = {.name = "simple",
                             .label = "simple",
                             .field = "max_absdiff",
                             .result = "OutputCompareResult",
                             .threshold = "SimpleThreshold"},
    [ASSAY_METRIC_INDICES] = {.name = "indices", .label = "indices"},
    [ASSAY_METRIC_L2] = {.name = "l2",
                         .label = "L2 Norm",
                         .field = "l2_norm",
                         .result = "L2Result",
                         .threshold = "L2Threshold",
                         .unit = "",
                         .limit = 1e-5},
    [ASSAY_METRIC_COSINE] = {.name = "cosine_similarity",
                             .label = "Cosine Similarity",
                             .field = "cosine_similarity",
                             .result = "CosineSimilarityResult",
                             .threshold = "CosineSimilarityThreshold",
                             .unit = "",
                             .higher = true,
                             .limit = 0.997},
    [ASSAY_METRIC_PSNR] = {.name = "psnr",
                           .label = "PSNR",
                           .field = "psnr",
                           .result = "PsnrResult",
                           .threshold = "PsnrThreshold",
                           .unit = " dB",
                           .higher = true,
                           .limit = 30},
    [ASSAY_METRIC_SNR] = {.name = "snr",
                          .label = "SNR",
                          .field = "snr",
                          .result = "SnrResult",
                          .threshold = "SnrThreshold",
                          .unit = " dB",
                          .higher = true,
                          .limit = 20},
    [ASSAY_METRIC_LPIPS] = {.name = "perceptual_metrics",
                            .label = "LPIPS",
                            .field = "lpips",
                            .result = "PerceptualMetricsResult",
                            .threshold = "LpipsThreshold",
                            .unit = "",
                            .limit = 0.1},
};

const assay_metric_info_t* assay_metric_info(assay_metric_t metric) { return &metrics[metric]; }

static const char* const stats[ASSAY_N_STATS] = {"elemwise", "max", "mean", "median", "quantile"};

const char* assay_error_stat_name(assay_error_stat_t stat) { return stats[stat]; }

bool assay_error_stat_parse(const char* name, assay_error_stat_t* out) {
  for (int i = 0; i < ASSAY_N_STATS; i++) {
    if (strcmp(stats[i], name) != 0) continue;
    *out = (assay_error_stat_t)i;
    return true;
  }
  return false;
}

void assay_tolerance_put(assay_tolerance_t b, assay_str_t* out) {
  if (b.whole)
    assay_str_printf(out, "%.0f", b.x);
  else
    assay_numpy_print_float(ASSAY_TYPE_DOUBLE, b.x, out);
}

// ---- building -----------------------------------------------------------------------------------

void assay_accuracy_results_deinit(assay_accuracy_results_t* r) {
  for (size_t i = 0; i < r->n; i++) {
    for (size_t k = 0; k < r->items[i].n; k++) {
      const assay_compared_pair_t* pair = &r->items[i].pairs[k];
      for (size_t run = 0; run < pair->n; run++) assay_free(pair->runs[run].outputs);
      assay_free(pair->runs);
    }
    assay_free(r->items[i].pairs);
  }
  assay_free(r->items);
  assay_arena_destroy(r->arena);
  *r = (assay_accuracy_results_t){0};
}

// A copy in the results' arena, which the first text makes.
static assay_status_t keep_text(assay_accuracy_results_t* r, const char* text, const char** out) {
  if (!r->arena) ASSAY_TRY(assay_arena_create(&r->arena));
  return assay_arena_strdup(r->arena, text, out);
}

assay_status_t assay_accuracy_results_add(assay_accuracy_results_t* r, assay_metric_t metric,
                                          bool average, assay_accuracy_result_t** out) {
  ASSAY_TRY(assay_grow(&r->items, &r->cap, r->n + 1, sizeof *r->items));
  r->items[r->n] = (assay_accuracy_result_t){.metric = metric, .average = average};
  *out = &r->items[r->n++];
  return NULL;
}

assay_status_t assay_accuracy_result_add_pair(assay_accuracy_results_t* r,
                                              assay_accuracy_result_t* result, const char* first,
                                              const char* second, assay_compared_pair_t** out) {
  assay_compared_pair_t pair = {0};
  ASSAY_TRY(keep_text(r, first, &pair.first));
  ASSAY_TRY(keep_text(r, second, &pair.second));
  ASSAY_TRY(assay_grow(&result->pairs, &result->cap, result->n + 1, sizeof *result->pairs));
  result->pairs[result->n] = pair;
  *out = &result->pairs[result->n++];
  return NULL;
}

assay_status_t assay_compared_pair_add(assay_compared_pair_t* pair, assay_compared_run_t** out) {
  ASSAY_TRY(assay_grow(&pair->runs, &pair->cap, pair->n + 1, sizeof *pair->runs));
  pair->runs[pair->n] = (assay_compared_run_t){0};
  *out = &pair->runs[pair->n++];
  return NULL;
}

static assay_status_t add_output(assay_compared_run_t* run, const assay_compared_t* c) {
  ASSAY_TRY(assay_grow(&run->outputs, &run->cap, run->n + 1, sizeof *run->outputs));
  run->outputs[run->n++] = *c;
  return NULL;
}

assay_status_t assay_compared_run_add(assay_accuracy_results_t* r, assay_compared_run_t* run,
                                      const char* output, const char* other,
                                      assay_compared_t** out) {
  assay_compared_t c = {0};
  ASSAY_TRY(keep_text(r, output, &c.output));
  if (other) ASSAY_TRY(keep_text(r, other, &c.other));
  ASSAY_TRY(add_output(run, &c));
  *out = &run->outputs[run->n - 1];
  return NULL;
}

// ---- verdicts -----------------------------------------------------------------------------------

static bool exceeds(double x, assay_tolerance_t bound) { return isnan(x) || x > bound.x; }

// What a statistic is kept as; elemwise has none.
static int diff_of(assay_error_stat_t stat) { return (int)stat - (int)ASSAY_STAT_MAX; }

static assay_status_t simple_passed(const assay_compared_t* c, bool* out) {
  const assay_threshold_t* t = &c->threshold;
  if (t->stat == ASSAY_STAT_ELEMWISE)
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "output '%s': an 'elemwise' comparison cannot be checked again: it looks at "
        "every element, and only statistics are kept; choose --check-error-stat max, "
        "mean, median or quantile, or compare saved outputs (run --save-outputs, "
        "then --load-outputs)",
        c->output);
  const assay_diff_t* d = &c->diffs[diff_of(t->stat)];
  if (!d->known)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "output '%s': the saved results hold no '%s'; quantiles are kept only where "
                       "--check-error-stat quantile asked for them; choose max, mean or median, or "
                       "compare saved outputs",
                       c->output, stats[t->stat]);
  *out = !(exceeds(d->abs, t->atol) && exceeds(d->rel, t->rtol));
  return NULL;
}

assay_status_t assay_compared_passed(assay_metric_t metric, const assay_compared_t* c, bool* out) {
  const assay_metric_info_t* m = &metrics[metric];
  if (!c->measured || c->decided)
    *out = c->verdict;
  else if (metric == ASSAY_METRIC_SIMPLE)
    return simple_passed(c, out);
  else if (!c->known)  // a picture measure that could not be computed counts as passed
    *out = metric == ASSAY_METRIC_LPIPS;
  else
    *out = m->higher ? c->value >= c->threshold.limit.x : c->value <= c->threshold.limit.x;
  return NULL;
}

assay_status_t assay_compared_count(assay_metric_t metric, const assay_compared_pair_t* pair,
                                    size_t* out_passed) {
  size_t passed = 0;
  for (size_t i = 0; i < pair->n; i++) {
    bool all = true;
    for (size_t k = 0; k < pair->runs[i].n; k++) {
      bool one = false;
      ASSAY_TRY(assay_compared_passed(metric, &pair->runs[i].outputs[k], &one));
      all &= one;
    }
    passed += all;
  }
  *out_passed = passed;
  return NULL;
}

static const assay_compared_t* find(const assay_compared_run_t* run, const char* output) {
  for (size_t i = 0; i < run->n; i++)
    if (strcmp(run->outputs[i].output, output) == 0) return &run->outputs[i];
  return NULL;
}

// Adds 1/n of each number in order, as a sum that is divided at the end.
static assay_status_t average(const assay_compared_pair_t* pair, const assay_compared_t* first,
                              assay_compared_t* out) {
  size_t known[ASSAY_N_DIFFS] = {0}, values = 0;
  assay_compared_t mean = *first;
  mean.decided = mean.known = false;
  mean.value = 0;
  memset(mean.diffs, 0, sizeof mean.diffs);
  for (size_t i = 0; i < pair->n; i++) {
    const assay_compared_t* c = find(&pair->runs[i], first->output);
    if (c && !c->measured)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "output '%s': there is no average, for iteration %zu gave no number (its "
                         "shapes differ, for one); leave --check-average out to see the iterations",
                         first->output, i);
    for (int k = 0; c && k < ASSAY_N_DIFFS; k++) {
      if (!c->diffs[k].known) continue;
      mean.diffs[k].abs += c->diffs[k].abs;
      mean.diffs[k].rel += c->diffs[k].rel;
      known[k]++;
    }
    if (c && c->known) mean.value += c->value;
    values += c && c->known;
  }
  for (int k = 0; k < ASSAY_N_DIFFS; k++) {
    if (!known[k]) continue;
    mean.diffs[k].abs /= (double)known[k];
    mean.diffs[k].rel /= (double)known[k];
    mean.diffs[k].known = true;
  }
  mean.known = values != 0;
  if (values) mean.value /= (double)values;
  *out = mean;
  return NULL;
}

assay_status_t assay_compared_average(const assay_accuracy_result_t* result,
                                      const assay_compared_pair_t* pair,
                                      assay_compared_run_t* out) {
  assay_compared_run_t run = {0};
  assay_status_t st = NULL;
  if (!metrics[result->metric].field)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' gives no number, so there is no average of it",
                       metrics[result->metric].name);
  for (size_t i = 0; !st && i < pair->n; i++) {
    for (size_t k = 0; !st && k < pair->runs[i].n; k++) {
      assay_compared_t mean;
      if (find(&run, pair->runs[i].outputs[k].output)) continue;
      st = average(pair, &pair->runs[i].outputs[k], &mean);
      if (!st) st = add_output(&run, &mean);
    }
  }
  if (st) return assay_free(run.outputs), st;
  *out = run;
  return NULL;
}

static assay_status_t pair_passed(const assay_accuracy_result_t* result,
                                  const assay_compared_pair_t* pair, bool* out) {
  size_t passed = 0;
  if (!result->average) {
    ASSAY_TRY(assay_compared_count(result->metric, pair, &passed));
    *out = passed == pair->n;
    return NULL;
  }
  assay_compared_run_t mean = {0};
  ASSAY_TRY(assay_compared_average(result, pair, &mean));
  const assay_compared_pair_t alone = {.runs = &mean, .n = 1};
  assay_status_t st = assay_compared_count(result->metric, &alone, &passed);
  assay_free(mean.outputs);
  if (!st) *out = passed == 1;
  return st;
}

assay_status_t assay_accuracy_results_passed(const assay_accuracy_results_t* r, bool* out) {
  bool all = true;
  for (size_t i = 0; i < r->n; i++) {
    for (size_t k = 0; k < r->items[i].n; k++) {
      bool one = false;
      ASSAY_TRY(pair_passed(&r->items[i], &r->items[i].pairs[k], &one));
      all &= one;
    }
  }
  *out = all;
  return NULL;
}

void assay_compared_describe(assay_metric_t metric, const assay_compared_t* c, bool passed,
                             assay_str_t* out) {
  enum { MAX = 17 };
  const assay_metric_info_t* m = &metrics[metric];
  const double limit = c->threshold.limit.x;
  assay_str_t value = {0}, bound = {0};
  for (int digits = 5; digits <= MAX; digits++) {
    value.len = bound.len = 0;
    assay_numpy_print_g(c->value, digits, &value);
    assay_numpy_print_g(limit, digits, &bound);
    if (c->value == limit || strcmp(assay_str_get(&value), assay_str_get(&bound)) != 0) break;
  }
  assay_str_printf(out, "%s: %s%s (%s: %s%s) | %s", m->label, assay_str_get(&value), m->unit,
                   m->higher ? "min required" : "tolerance", assay_str_get(&bound), m->unit,
                   passed ? "PASSED" : "FAILED");
  out->failed |= value.failed || bound.failed;
  assay_str_deinit(&value);
  assay_str_deinit(&bound);
}
