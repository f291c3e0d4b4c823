// Comparisons: two sets of tensors against each other, by name, and whether they are close enough.
#ifndef ASSAY_COMPARE_H_
#define ASSAY_COMPARE_H_

#include <assay/report.h>
#include <assay/samples.h>
#include <assay/tensor.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_comparison assay_comparison_t;  // one owner, immutable

// What is measured of two tensors of one name, over all their elements in all runs. Errors are
// tensor - reference where both are finite.
typedef enum assay_statistic {
  ASSAY_STATISTIC_ELEMENTS = 0,
  ASSAY_STATISTIC_MAX_ABS,  // largest |error|
  ASSAY_STATISTIC_MAX_REL,  // largest |error| / |reference|, where the reference is not near zero
                            // (below 2^-10 of its largest magnitude)
  ASSAY_STATISTIC_MEAN,     // of the errors, with their signs
  ASSAY_STATISTIC_RMS,      // root mean square of the errors
  ASSAY_STATISTIC_P50,      // percentiles of |error|, to 1/128 of themselves
  ASSAY_STATISTIC_P90,
  ASSAY_STATISTIC_P99,
  ASSAY_STATISTIC_P999,
  ASSAY_STATISTIC_COSINE,   // 1: the same direction, or both are zero
  ASSAY_STATISTIC_SNR_DB,   // of the reference to the error; infinity without error
  ASSAY_STATISTIC_PSNR_DB,  // of the reference's largest magnitude to the error's RMS
  ASSAY_STATISTIC_KL,       // divergence of the histograms of values, in nats
  ASSAY_STATISTIC_MAX_ULP,  // largest error in steps of the format; floats only
  ASSAY_STATISTIC_NAN,      // counts of elements: NaN, infinities, of the reference the same
  ASSAY_STATISTIC_INF,
  ASSAY_STATISTIC_REFERENCE_NAN,
  ASSAY_STATISTIC_REFERENCE_INF,
  ASSAY_STATISTIC_MISMATCHED,  // not finite on one side, and something else on the other
  ASSAY_STATISTIC_OUTSIDE,  // elements that differ by more than the tolerance; of strings: differ
  ASSAY_STATISTIC_TOP1,     // part of the rows (the last dimension) of floats whose largest
                            // element is the same one
  ASSAY_STATISTIC_TOP_K,    // whose k largest are the same ones, in any order
  ASSAY_STATISTIC_COUNT,
} assay_statistic_t;

// The name, such as "max_abs"; NULL for an unknown statistic. Lives as long as the library.
ASSAY_API const char* assay_statistic_name(assay_statistic_t statistic);

// What a statistic has to be: min <= value <= max. Infinity leaves an end open.
typedef struct assay_limit {
  const char* name;  // of the tensors; NULL: of all that have the statistic
  assay_statistic_t statistic;
  double min, max;
} assay_limit_t;

typedef struct assay_compare_options {
  size_t struct_size;
  double atol, rtol;   // |error| <= atol + rtol * |reference|, element by element
  bool no_tolerance;   // elements may differ; only shapes and limits count
  bool allow_missing;  // names that one side does not have are left out; else they fail
  const assay_limit_t* limits;
  size_t n_limits;
  assay_format_t ulp_format;  // whose steps are counted; NONE: of the reference's type
  int top_k;                  // 1 to 64
} assay_compare_options_t;
#define ASSAY_COMPARE_OPTIONS_INIT \
  { sizeof(assay_compare_options_t), 1e-5, 1e-5, false, false, 0, 0, ASSAY_FORMAT_NONE, 5 }

// Compares tensors with those of the same names in a reference, in the reference's order. A pair
// passes if both are of the same kind and shape, NaN and infinities are at the same places,
// elements are within the tolerance, and limits hold; types may differ. Of sequences, optionals and
// maps all items are compared.
//   options   may be NULL; read during the call only
// Errors:  INVALID_ARGUMENT a name that is there twice, a tolerance or limit that makes no sense;
//          NOT_FOUND a limit is on a name that neither side has; NO_MEMORY
// Threads: any
ASSAY_API assay_status_t assay_compare_tensors(size_t n, const char* const* names,
                                               assay_tensor_t* const* tensors, size_t n_reference,
                                               const char* const* reference_names,
                                               assay_tensor_t* const* reference,
                                               const assay_compare_options_t* options,
                                               assay_comparison_t** out);
// The same of two files, or folders, in any format that `assay run --inputs` takes. Several runs in
// a file are compared run by run.
// Errors:  as there; NOT_FOUND no such file; CORRUPT not what it should be; UNSUPPORTED no known
//          format; INVALID_ARGUMENT another number of runs
ASSAY_API assay_status_t assay_compare_files(const char* path, const char* reference_path,
                                             const assay_compare_options_t* options,
                                             assay_comparison_t** out);
// The same of samples of one model's inputs, or outputs, sample by sample.
// Errors:  as there; INVALID_ARGUMENT another number of samples
ASSAY_API assay_status_t assay_compare_samples(const assay_samples_t* samples,
                                               const assay_samples_t* reference,
                                               const assay_compare_options_t* options,
                                               assay_comparison_t** out);
ASSAY_API void assay_comparison_destroy(assay_comparison_t* comparison);  // NULL is allowed

// Whether all pairs passed, and how many there are. None: it has not passed.
ASSAY_API bool assay_comparison_passed(const assay_comparison_t* comparison);
ASSAY_API size_t assay_comparison_count(const assay_comparison_t* comparison);

// ---- pair i -------------------------------------------------------------------------------------
// Texts live as long as the comparison. Past the end: NULL, false, NaN, 0.

// Its name, and whether it meets its limits and tolerances.
ASSAY_API const char* assay_comparison_name(const assay_comparison_t* comparison, size_t i);
ASSAY_API bool assay_comparison_pair_passed(const assay_comparison_t* comparison, size_t i);
// Why it has not passed, such as "3 of 10 elements are outside the tolerance"; "": it has.
ASSAY_API const char* assay_comparison_why(const assay_comparison_t* comparison, size_t i);
// A statistic; NaN: these tensors have none, being of other shapes, of strings, or integers where
// the statistic is of floats.
ASSAY_API double assay_comparison_statistic(const assay_comparison_t* comparison, size_t i,
                                            assay_statistic_t statistic);
// The |error| that the fraction p (0 to 1) of the elements does not exceed, to 1/128 of itself.
ASSAY_API double assay_comparison_percentile(const assay_comparison_t* comparison, size_t i,
                                             double p);
// The place of the largest error, or of the first element that is not finite on one side, counting
// all elements of all runs; -1: none.
ASSAY_API int64_t assay_comparison_worst_at(const assay_comparison_t* comparison, size_t i);
// How many elements differ by so many steps of the format: slot 0: none, slot k: more than 2^(k-2),
// 2^(k-1) at most (slot 1: 1 step). There are 65 slots.
ASSAY_API int64_t assay_comparison_ulps(const assay_comparison_t* comparison, size_t i, int slot);

// ---- reports ------------------------------------------------------------------------------------

typedef struct assay_compare_report_options {
  size_t struct_size;
  bool all;  // TEXT: all pairs, not only the worst
} assay_compare_report_options_t;
#define ASSAY_COMPARE_REPORT_OPTIONS_INIT \
  { sizeof(assay_compare_report_options_t), false }

// TEXT: a line each, those that failed first. JSON: everything, "assay.compare/1".
// Errors: as in report.h
ASSAY_API assay_status_t assay_comparison_report(const assay_comparison_t* comparison,
                                                 assay_report_kind_t kind,
                                                 const assay_compare_report_options_t* options,
                                                 assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t
assay_comparison_write_report(const assay_comparison_t* comparison, assay_report_kind_t kind,
                              const assay_compare_report_options_t* options, const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_COMPARE_H_
