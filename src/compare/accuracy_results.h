// What comparisons found, kept: Polygraphy's --save-accuracy-results, and checks of it against
// other thresholds.
//
// A result is of one metric; within it are pairs of runners, iterations, outputs. It is passed or
// failed by its threshold, so that another one can take its place.
#ifndef ASSAY_COMPARE_ACCURACY_RESULTS_H_
#define ASSAY_COMPARE_ACCURACY_RESULTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/str.h"

typedef enum assay_metric {
  ASSAY_METRIC_SIMPLE,
  ASSAY_METRIC_INDICES,
  ASSAY_METRIC_L2,
  ASSAY_METRIC_COSINE,
  ASSAY_METRIC_PSNR,
  ASSAY_METRIC_SNR,
  ASSAY_METRIC_LPIPS,  // in files only
  ASSAY_N_METRICS
} assay_metric_t;

typedef struct assay_metric_info {
  const char* name;    // of --compare
  const char* label;   // in the log
  const char* field;   // in files; NULL: indices, which keeps passed or failed only
  const char* result;  // classes in files
  const char* threshold;
  const char* unit;
  bool higher;   // more is better
  double limit;  // default
} assay_metric_info_t;
const assay_metric_info_t* assay_metric_info(assay_metric_t metric);

typedef enum assay_error_stat {
  ASSAY_STAT_ELEMWISE,
  ASSAY_STAT_MAX,
  ASSAY_STAT_MEAN,
  ASSAY_STAT_MEDIAN,
  ASSAY_STAT_QUANTILE,
  ASSAY_N_STATS
} assay_error_stat_t;
const char* assay_error_stat_name(assay_error_stat_t stat);
bool assay_error_stat_parse(const char* name, assay_error_stat_t* out);

// A number as Python keeps it: whole ones have no point.
typedef struct assay_tolerance {
  double x;
  bool whole;
} assay_tolerance_t;
// Appends it as Python prints it: "1e-05", "1", "0.25".
void assay_tolerance_put(assay_tolerance_t b, assay_str_t* out);

typedef struct assay_threshold {
  assay_error_stat_t stat;  // simple
  assay_tolerance_t atol, rtol;
  assay_tolerance_t limit;  // the others
} assay_threshold_t;

// Fields of `simple`, in the order of files: those of the absolute and the relative difference.
enum { ASSAY_DIFF_MAX, ASSAY_DIFF_MEAN, ASSAY_DIFF_MEDIAN, ASSAY_DIFF_QUANTILE, ASSAY_N_DIFFS };
typedef struct assay_diff {
  bool known;  // the quantile is computed only where it is checked
  double abs, rel;
} assay_diff_t;

// One output of one iteration. Texts live in the results' arena.
typedef struct assay_compared {
  const char* output;
  const char* other;  // the second runner's; NULL: read from a file
  bool measured;      // false: passed or failed without a number (indices, shapes that differ)
  bool decided;       // `verdict` was found while comparing and cannot be found again
  bool verdict;
  assay_diff_t diffs[ASSAY_N_DIFFS];  // simple
  bool known;                         // the others: there is a value
  double value;
  assay_threshold_t threshold;
} assay_compared_t;

typedef struct assay_compared_run {  // one iteration
  assay_compared_t* outputs;
  size_t n, cap;
} assay_compared_run_t;

typedef struct assay_compared_pair {
  const char *first, *second;  // runners
  assay_compared_run_t* runs;
  size_t n, cap;
} assay_compared_pair_t;

typedef struct assay_accuracy_result {
  assay_metric_t metric;
  bool average;
  assay_compared_pair_t* pairs;
  size_t n, cap;
} assay_accuracy_result_t;

// Starts as {0}.
typedef struct assay_accuracy_results {
  assay_arena_t* arena;
  assay_accuracy_result_t* items;
  size_t n, cap;
} assay_accuracy_results_t;
void assay_accuracy_results_deinit(assay_accuracy_results_t* r);

// At the end of what is there. Texts are copied.
assay_status_t assay_accuracy_results_add(assay_accuracy_results_t* r, assay_metric_t metric,
                                          bool average,
                                          assay_accuracy_result_t** out) ASSAY_MUST_USE;
assay_status_t assay_accuracy_result_add_pair(assay_accuracy_results_t* r,
                                              assay_accuracy_result_t* result, const char* first,
                                              const char* second,
                                              assay_compared_pair_t** out) ASSAY_MUST_USE;
assay_status_t assay_compared_pair_add(assay_compared_pair_t* pair,
                                       assay_compared_run_t** out) ASSAY_MUST_USE;
assay_status_t assay_compared_run_add(assay_accuracy_results_t* r, assay_compared_run_t* run,
                                      const char* output, const char* other,
                                      assay_compared_t** out) ASSAY_MUST_USE;

// Whether an output passed. INVALID_ARGUMENT if it cannot be told: a statistic that was not kept.
assay_status_t assay_compared_passed(assay_metric_t metric, const assay_compared_t* c,
                                     bool* out) ASSAY_MUST_USE;
// Outputs with the mean of their iterations, under the same thresholds; the caller's, whose
// `outputs` is freed with assay_free. INVALID_ARGUMENT if one of them has no numbers.
assay_status_t assay_compared_average(const assay_accuracy_result_t* result,
                                      const assay_compared_pair_t* pair,
                                      assay_compared_run_t* out) ASSAY_MUST_USE;
// Iterations of a pair in which all outputs passed.
assay_status_t assay_compared_count(assay_metric_t metric, const assay_compared_pair_t* pair,
                                    size_t* out_passed) ASSAY_MUST_USE;
// Whether all passed; of the averages, where these are to be checked.
assay_status_t assay_accuracy_results_passed(const assay_accuracy_results_t* r,
                                             bool* out) ASSAY_MUST_USE;
// "L2 Norm: 0.0037332 (tolerance: 1e-05) | FAILED", with as many digits as tell the two apart.
void assay_compared_describe(assay_metric_t metric, const assay_compared_t* c, bool passed,
                             assay_str_t* out);

// Files. Errors: NOT_FOUND; CORRUPT not what it should be; UNSUPPORTED comparisons of one's own
// making.
assay_status_t assay_accuracy_results_parse(const void* data, size_t size,
                                            assay_accuracy_results_t* out) ASSAY_MUST_USE;
assay_status_t assay_accuracy_results_read(const char* path,
                                           assay_accuracy_results_t* out) ASSAY_MUST_USE;
assay_status_t assay_accuracy_results_write(const char* path,
                                            const assay_accuracy_results_t* r) ASSAY_MUST_USE;

#endif  // ASSAY_COMPARE_ACCURACY_RESULTS_H_
