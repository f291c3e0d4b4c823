// Polygraphy's comparisons of what two runners gave, printed as it prints them.
//
// Numbers are those that it would compute with NumPy: in the wider type of the two, in its order of
// summation (numeric.h). b is the second runner, to which errors are relative.
#ifndef ASSAY_COMPARE_COMPARISON_H_
#define ASSAY_COMPARE_COMPARISON_H_

#include "compare/accuracy_results.h"
#include "io/set.h"

// Where lines go. depth: levels of nesting; a text may have several lines.
typedef enum assay_severity {
  ASSAY_LOG_SUPER = -10,  // as many -v as these need
  ASSAY_LOG_EXTRA = 0,
  ASSAY_LOG_VERBOSE = 10,
  ASSAY_LOG_INFO = 20,
  ASSAY_LOG_START = 22,
  ASSAY_LOG_FINISH = 28,
  ASSAY_LOG_WARNING = 30,
  ASSAY_LOG_ERROR = 40,
} assay_severity_t;

typedef struct assay_compare_log {
  void (*line)(void* self, assay_severity_t severity, int depth, const char* text);
  bool (*shows)(void* self, assay_severity_t severity);  // NULL: it shows all
  void* self;
} assay_compare_log_t;

// What is asked of one output.
typedef struct assay_tolerances {
  assay_error_stat_t stat;
  assay_tolerance_t atol, rtol;
  double quantile;
  int64_t index_tolerance;
  assay_tolerance_t limit[ASSAY_N_METRICS];  // of metrics that are one number
} assay_tolerances_t;
// Polygraphy's defaults.
void assay_tolerances_init(assay_tolerances_t* out);

typedef struct assay_comparing_settings {
  assay_metric_t metrics[ASSAY_N_METRICS];  // each once; all must pass
  size_t n_metrics;
  bool no_shape_check;           // shapes that differ are made to match where they can be
  bool fail_fast;                // nothing more of a metric after its first failure
  bool check_average;            // thresholds are for the mean over the iterations
  bool infinities_equal;         // the same infinity on both sides differs by 0, not NaN
  const char *heatmaps, *plots;  // folders for pictures; NULL: none
  // What is asked of an output.
  assay_status_t (*tolerances)(void* self, const char* output, assay_tolerances_t* out);
  // Warns of names in the settings of a metric that no output has; NULL: nothing to warn of.
  void (*unknown)(void* self, assay_metric_t metric, const assay_set_t* a, const assay_set_t* b);
  void* self;
  assay_compare_log_t log;
} assay_comparing_settings_t;

// INVALID_ARGUMENT if the settings exclude each other (an average of what has no number).
assay_status_t assay_comparing_check(const assay_comparing_settings_t* c) ASSAY_MUST_USE;

// A run of the comparison over iterations and pairs of runners. Starts with begin, which makes
// results for the metrics; deinit frees them.
typedef struct assay_comparing {
  const assay_comparing_settings_t* comparison;
  assay_accuracy_results_t results;
  assay_set_t said;  // lines that come only once
} assay_comparing_t;
assay_status_t assay_comparing_begin(const assay_comparing_settings_t* c,
                                     assay_comparing_t* out) ASSAY_MUST_USE;
void assay_comparing_deinit(assay_comparing_t* c);

// Two runners that are to be compared; prints "Accuracy Comparison | A vs. B". *out_pair: its
// number from 0.
assay_status_t assay_comparing_add_pair(assay_comparing_t* c, const char* first, const char* second,
                                        size_t* out_pair) ASSAY_MUST_USE;
// Compares the outputs of one iteration of a pair by every metric, prints (the lines below
// "Iteration: 0", which is the caller's; depth 1), and adds to the results. *out_failed: something
// did not pass, which with fail_fast ends the comparison.
//   a, b     outputs of the first and second runner, in order; tensors are widened as needed
// Errors:    INVALID_ARGUMENT no output of one has a counterpart in the other; UNSUPPORTED elements
//            that are not numbers
assay_status_t assay_comparing_iteration(assay_comparing_t* c, size_t pair, const assay_set_t* a,
                                         const assay_set_t* b, bool* out_failed) ASSAY_MUST_USE;
// Prints "Accuracy Summary | ..." of each pair; not after an end by fail_fast.
assay_status_t assay_comparing_summary(const assay_comparing_t* c) ASSAY_MUST_USE;
// The same of any results whose items have the same pairs.
assay_status_t assay_log_summary(const assay_compare_log_t* log,
                                 const assay_accuracy_results_t* r) ASSAY_MUST_USE;

// The same of one metric, as a check of saved results prints it.
assay_status_t assay_log_result_summary(const assay_compare_log_t* log,
                                        const assay_accuracy_result_t* r) ASSAY_MUST_USE;

// Prints statistics of a tensor as --validate does, then whether it holds NaN or what is not
// finite.
//   prefix   "runner | Iteration 0 | "
assay_status_t assay_validate_output(const assay_compare_log_t* log, int depth, const char* prefix,
                                     const char* name, assay_tensor_t* t, assay_set_t* said,
                                     bool* out_valid) ASSAY_MUST_USE;

#endif  // ASSAY_COMPARE_COMPARISON_H_
