// How many iterations passed, or which averages: the lines at the end of a comparison, and of a
// check of saved results.
#include <string.h>

#include "base/alloc.h"
#include "compare/comparison_internal.h"

static assay_severity_t severity(bool passed) {
  return passed ? ASSAY_LOG_FINISH : ASSAY_LOG_ERROR;
}

// ---- iterations ---------------------------------------------------------------------------------

// Whether all outputs of an iteration passed by all metrics.
static assay_status_t run_passed(const assay_accuracy_results_t* r, size_t pair, size_t at,
                                 bool* out) {
  *out = true;
  for (size_t i = 0; i < r->n; i++) {
    const assay_compared_pair_t* p = &r->items[i].pairs[pair];
    for (size_t k = 0; at < p->n && k < p->runs[at].n; k++) {
      bool passed = false;
      ASSAY_TRY(assay_compared_passed(r->items[i].metric, &p->runs[at].outputs[k], &passed));
      *out &= passed;
    }
  }
  return NULL;
}

static assay_status_t print_rate(const assay_compare_log_t* log, const assay_accuracy_results_t* r,
                                 size_t pair_at) {
  const assay_compared_pair_t* pair = &r->items[0].pairs[pair_at];
  size_t passed = 0;
  for (size_t i = 0; i < pair->n; i++) {
    bool one = false;
    ASSAY_TRY(run_passed(r, pair_at, i, &one));
    passed += one;
  }
  assay_compare_log(log, severity(passed == pair->n), 0,
                    "Accuracy Summary | %s vs. %s | Passed: %zu/%zu iterations | Pass Rate: %.2f%%",
                    pair->first, pair->second, passed, pair->n,
                    pair->n ? 100 * (double)passed / (double)pair->n : 100.0);
  return NULL;
}

// ---- averages -----------------------------------------------------------------------------------

// Averages of the outputs of one pair, a run for each metric.
typedef struct averages {
  const assay_accuracy_results_t* results;
  assay_compared_run_t* of;  // results->n
} averages_t;

static const assay_compared_t* find(const assay_compared_run_t* run, const char* output) {
  for (size_t i = 0; i < run->n; i++)
    if (strcmp(run->outputs[i].output, output) == 0) return &run->outputs[i];
  return NULL;
}

// Whether metric i is the first that an output is in: then it is this one's turn.
static bool is_first(const averages_t* a, size_t i, const char* output) {
  for (size_t k = 0; k < i; k++)
    if (find(&a->of[k], output)) return false;
  return true;
}

static assay_status_t output_passed(const averages_t* a, const char* output, bool* out) {
  *out = true;
  for (size_t i = 0; i < a->results->n; i++) {
    const assay_compared_t* c = find(&a->of[i], output);
    bool passed = true;
    if (c) ASSAY_TRY(assay_compared_passed(a->results->items[i].metric, c, &passed));
    *out &= passed;
  }
  return NULL;
}

static assay_status_t print_output(const assay_compare_log_t* log, const averages_t* a,
                                   const char* output) {
  bool all = false;
  ASSAY_TRY(output_passed(a, output, &all));
  assay_compare_log(log, severity(all), 1, "%s | %s:", output, all ? "PASSED" : "FAILED");
  for (size_t i = 0; i < a->results->n; i++) {
    const assay_metric_t metric = a->results->items[i].metric;
    const assay_compared_t* c = find(&a->of[i], output);
    bool passed = false;
    assay_str_t text = {0};
    if (!c || metric == ASSAY_METRIC_SIMPLE) continue;  // of several numbers there is no line
    ASSAY_TRY(assay_compared_passed(metric, c, &passed));
    assay_compared_describe(metric, c, passed, &text);
    ASSAY_TRY(assay_log_text(log, severity(passed), 2, &text));
  }
  return NULL;
}

static assay_status_t print_averages(const assay_compare_log_t* log, const averages_t* a,
                                     const assay_compared_pair_t* pair) {
  size_t total = 0, passed = 0;
  for (size_t i = 0; i < a->results->n; i++) {
    for (size_t k = 0; k < a->of[i].n; k++) {
      bool one = false;
      if (!is_first(a, i, a->of[i].outputs[k].output)) continue;
      ASSAY_TRY(output_passed(a, a->of[i].outputs[k].output, &one));
      passed += one;
      total++;
    }
  }
  assay_compare_log(log, severity(passed == total), 0,
                    "Accuracy Summary | %s vs. %s | Passed: %zu/%zu outputs", pair->first,
                    pair->second, passed, total);
  for (size_t i = 0; i < a->results->n; i++)
    for (size_t k = 0; k < a->of[i].n; k++)
      if (is_first(a, i, a->of[i].outputs[k].output))
        ASSAY_TRY(print_output(log, a, a->of[i].outputs[k].output));
  return NULL;
}

static assay_status_t average_pair(const assay_compare_log_t* log,
                                   const assay_accuracy_results_t* r, size_t pair) {
  averages_t a = {.results = r};
  ASSAY_TRY(assay_new_array(r->n, sizeof *a.of, &a.of));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < r->n; i++)
    st = assay_compared_average(&r->items[i], &r->items[i].pairs[pair], &a.of[i]);
  if (!st) st = print_averages(log, &a, &r->items[0].pairs[pair]);
  for (size_t i = 0; i < r->n; i++) assay_free(a.of[i].outputs);
  assay_free(a.of);
  return st;
}

// One metric by itself, a line an output.
static assay_status_t print_alone(const assay_compare_log_t* log, const assay_accuracy_result_t* r,
                                  const assay_compared_pair_t* pair,
                                  const assay_compared_run_t* mean) {
  size_t passed = 0;
  for (size_t i = 0; i < mean->n; i++) {
    bool one = false;
    ASSAY_TRY(assay_compared_passed(r->metric, &mean->outputs[i], &one));
    passed += one;
  }
  assay_compare_log(log, severity(passed == mean->n), 0,
                    "Accuracy Summary | %s vs. %s | Passed: %zu/%zu outputs", pair->first,
                    pair->second, passed, mean->n);
  for (size_t i = 0; r->metric != ASSAY_METRIC_SIMPLE && i < mean->n; i++) {
    assay_str_t text = {0};
    bool one = false;
    ASSAY_TRY(assay_compared_passed(r->metric, &mean->outputs[i], &one));
    assay_str_printf(&text, "%s | ", mean->outputs[i].output);
    assay_compared_describe(r->metric, &mean->outputs[i], one, &text);
    ASSAY_TRY(assay_log_text(log, severity(one), 1, &text));
  }
  return NULL;
}

assay_status_t assay_log_result_summary(const assay_compare_log_t* log,
                                        const assay_accuracy_result_t* r) {
  const assay_accuracy_results_t only = {.items = (assay_accuracy_result_t*)r, .n = 1};
  for (size_t i = 0; i < r->n; i++) {
    assay_compared_run_t mean = {0};
    if (!r->average) {
      ASSAY_TRY(print_rate(log, &only, i));
      continue;
    }
    ASSAY_TRY(assay_compared_average(r, &r->pairs[i], &mean));
    assay_status_t st = print_alone(log, r, &r->pairs[i], &mean);
    assay_free(mean.outputs);
    if (st) return st;
  }
  return NULL;
}

assay_status_t assay_log_summary(const assay_compare_log_t* log,
                                 const assay_accuracy_results_t* r) {
  for (size_t i = 0; r->n && i < r->items[0].n; i++)
    ASSAY_TRY(r->items[0].average ? average_pair(log, r, i) : print_rate(log, r, i));
  return NULL;
}

assay_status_t assay_comparing_summary(const assay_comparing_t* c) {
  return assay_log_summary(&c->comparison->log, &c->results);
}
