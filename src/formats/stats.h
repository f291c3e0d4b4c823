// Statistics of tensors, in one pass and without a copy: of the error of one against another, and
// of the values of one.
//
// Results are the same bits for any number of threads and on every CPU: elements are taken in
// chunks of fixed size, sums within a chunk in one order, and chunks are joined in order.
// (Decibels and divergence also take libm's logarithms, whose last bit may depend on the CPU.)
#ifndef ASSAY_FORMATS_STATS_H_
#define ASSAY_FORMATS_STATS_H_

#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "formats/histogram.h"

// ---- error of one tensor against another ------------------------------------------------------

typedef struct assay_error_stats assay_error_stats_t;

// 0 ulp, 1, 2, 3..4, 5..8 ...: slot k > 0 counts distances in (2^(k-2), 2^(k-1)].
enum { ASSAY_ULP_SLOTS = 65 };

typedef struct assay_error_summary {
  int64_t n;           // pairs of elements
  int64_t n_compared;  // finite on both sides; what follows below `worst_at` is over these only
  int64_t engine_nan, engine_inf, reference_nan, reference_inf;
  int64_t equal_nan, equal_inf;  // NaN against NaN, infinity against the same one: no error
  int64_t mismatched;            // not finite on one side, and something else on the other
  int64_t first_mismatched_at;   // -1: none
  int64_t worst_at;  // first mismatch, else the element with the largest error, -1 if all are exact
  double max_abs;    // largest |engine - reference|
  int64_t max_abs_at;  // the first one; -1 if there is no error
  double mean;         // of engine - reference
  double rms, rms_engine, rms_reference;
  double max_engine, max_reference;  // largest magnitudes; max_reference is the tensor's scale
  double max_rel;      // largest |error| / |reference| of elements that are not near zero
  int64_t max_rel_at;  // the first one; -1 if there is none
  double near_zero;    // |reference| below this is near zero
  int64_t n_near_zero;
  double near_zero_error;      // largest |error| of those, divided by the scale
  double p50, p90, p99, p999;  // percentiles of |error|, to 1/128 of themselves
  double cosine;               // 1 if both are zero or there are no elements, 0 if one is zero
  double snr_db;               // of the reference to the error; infinity without error
  double psnr_db;              // of the scale to the error's rms; infinity without error
  double kl;        // divergence of the engine's histogram of values from the reference's, nats
  int64_t max_ulp;  // in the format given
  int64_t ulp[ASSAY_ULP_SLOTS];
} assay_error_summary_t;

typedef struct assay_error_options {
  size_t struct_size;
  assay_format_t ulp_format;  // both sides are rounded to it and counted in its steps; NONE: none
  int near_zero_octaves;      // an element is near zero if its reference's magnitude is this many
                              // powers of two or more below the scale's
  bool no_kl;                 // leave the histogram of the engine's values out: faster
} assay_error_options_t;
#define ASSAY_ERROR_OPTIONS_INIT \
  { .struct_size = sizeof(assay_error_options_t), .near_zero_octaves = 10 }

assay_status_t assay_error_stats_create(const assay_error_options_t* options_or_null,
                                        assay_error_stats_t** out) ASSAY_MUST_USE;
void assay_error_stats_destroy(assay_error_stats_t* s);  // NULL is allowed

// Adds n elements of an engine's and of the reference's output. Each side is packed elements of its
// type, or canonical ones: DOUBLE for store F64, INT64 or UINT64 for I64, COMPLEX128 for C128.
// Complex elements count as two. Integers past 2^53 are compared as the nearest float64.
// Threads: one call per object at a time; a large n is split over OpenMP's threads.
void assay_error_stats_add(assay_error_stats_t* s, assay_type_t engine_type, const void* engine,
                           assay_type_t reference_type, const void* reference, int64_t n);
// Appends what `from` has seen, as if it came after what s has; both with the same options.
void assay_error_stats_merge(assay_error_stats_t* s, const assay_error_stats_t* from);

// Errors: NO_MEMORY some call before had no memory for its counts
assay_status_t assay_error_stats_summary(const assay_error_stats_t* s,
                                         assay_error_summary_t* out) ASSAY_MUST_USE;
// The |error| that the fraction p (0 to 1) of the elements does not exceed, to 1/128 of itself.
double assay_error_stats_percentile(const assay_error_stats_t* s, double p);
// Histograms: of |error|, and of the reference's values.
const assay_histogram_t* assay_error_stats_errors(const assay_error_stats_t* s);
const assay_histogram_t* assay_error_stats_references(const assay_error_stats_t* s);

// ---- values of one tensor -----------------------------------------------------------------------

typedef struct assay_value_stats assay_value_stats_t;

typedef struct assay_value_summary {
  int64_t n, n_nan, n_positive_inf, n_negative_inf;
  int64_t n_finite;  // what follows is over these only; all 0 if there are none
  int64_t n_zero;
  int64_t n_subnormal;  // smaller than the smallest normal number of the format, and not zero
  int64_t n_overflow;   // larger than its largest finite one
  double min, max, abs_max, abs_min;  // abs_min: the smallest that is not zero; 0 if all are
  double mean, rms;
  double std;  // of the population: the root of the mean square distance to the mean
} assay_value_summary_t;

// The format is that which n_subnormal and n_overflow are about; NONE or an integer: they stay 0.
assay_status_t assay_value_stats_create(assay_format_t format,
                                        assay_value_stats_t** out) ASSAY_MUST_USE;
void assay_value_stats_destroy(assay_value_stats_t* s);  // NULL is allowed
void assay_value_stats_add(assay_value_stats_t* s, assay_type_t type, const void* data, int64_t n);
void assay_value_stats_merge(assay_value_stats_t* s, const assay_value_stats_t* from);
assay_status_t assay_value_stats_summary(const assay_value_stats_t* s,
                                         assay_value_summary_t* out) ASSAY_MUST_USE;
// The value that the fraction p (0 to 1) of the finite elements does not exceed, to 1/128 of
// itself.
double assay_value_stats_percentile(const assay_value_stats_t* s, double p);
const assay_histogram_t* assay_value_stats_histogram(const assay_value_stats_t* s);

// ---- rankings -------------------------------------------------------------------------------

enum { ASSAY_TOPK_MAX = 64 };

typedef struct assay_topk {
  int64_t rows;
  int k;
  int64_t same_first;  // rows whose largest element is the same one on both sides
  int64_t same_set;    // rows whose k largest are the same elements
  int64_t same_order;  // and in the same order
  double overlap;      // mean share of the reference's k largest among the engine's; 1 without rows
} assay_topk_t;

// Compares the k largest elements of each row of [rows, cols] logits. Of equal elements the first
// one is the larger, as in ONNX's TopK; NaN is smaller than all. k is cut to cols. Types as above,
// not complex.
// Errors: INVALID_ARGUMENT k not in 1 .. ASSAY_TOPK_MAX
assay_status_t assay_topk_compare(assay_type_t engine_type, const void* engine,
                                  assay_type_t reference_type, const void* reference, int64_t rows,
                                  int64_t cols, int k, assay_topk_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FORMATS_STATS_H_
