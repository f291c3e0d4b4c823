// What the files of comparison.h share.
#ifndef ASSAY_COMPARE_COMPARISON_INTERNAL_H_
#define ASSAY_COMPARE_COMPARISON_INTERNAL_H_

#include "compare/comparison.h"
#include "compare/numeric.h"

// ---- lines (comparison_print.c) -----------------------------------------------------------------

bool assay_log_shows(const assay_compare_log_t* log, assay_severity_t severity);
void assay_compare_log(const assay_compare_log_t* log, assay_severity_t severity, int depth,
                       const char* format, ...) ASSAY_PRINTF(4, 5);
// The same text once, over all of a comparison.
assay_status_t assay_log_once(const assay_compare_log_t* log, assay_set_t* said,
                              assay_severity_t severity, int depth,
                              const char* text) ASSAY_MUST_USE;
// A text that was put together, which is freed.
assay_status_t assay_log_text(const assay_compare_log_t* log, assay_severity_t severity, int depth,
                              assay_str_t* take_text) ASSAY_MUST_USE;
// "heading\n" and an array below it, each line indented by `indent`.
assay_status_t assay_log_array(const assay_compare_log_t* log, assay_severity_t severity, int depth,
                               const char* heading, int indent,
                               const assay_numeric_t* a) ASSAY_MUST_USE;

// "prefixmean=..., ..." of an array; values and histogram below it, at once if it failed, else for
// those who ask for more. stats NULL: they are made; range NULL: the array's own.
assay_status_t assay_log_stats(const assay_compare_log_t* log, int depth, const char* prefix,
                               const assay_numeric_t* a, const assay_numeric_stats_t* stats,
                               bool failed, const assay_numeric_range_t* range) ASSAY_MUST_USE;

// ---- shapes (comparison_shape.c) ----------------------------------------------------------------

// Gives b the shape of a, if squeezing, reshaping or permuting does it; else, or where it changes
// nothing, b stays.
assay_status_t assay_match_shape(const assay_compare_log_t* log, int depth,
                                 const assay_numeric_t* a, assay_numeric_t* b) ASSAY_MUST_USE;

// ---- metrics ------------------------------------------------------------------------------------

// Two outputs that are compared.
typedef struct assay_compare_job {
  assay_comparing_t* run;
  const char *first, *second;  // runners
  const char *name, *other;    // outputs
  assay_tolerances_t tolerances;
  assay_numeric_t a, b;  // widened; of one shape
} assay_compare_job_t;

// Each fills a result and prints, at depth 2. Indices take shapes that differ.
assay_status_t assay_compare_simple(assay_compare_job_t* j, assay_compared_t* out) ASSAY_MUST_USE;
assay_status_t assay_compare_one_number(assay_compare_job_t* j, assay_metric_t metric,
                                        assay_compared_t* out) ASSAY_MUST_USE;
assay_status_t assay_compare_indices(assay_compare_job_t* j, assay_compared_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_COMPARE_COMPARISON_INTERNAL_H_
