// What numbers and times depend on besides the model: this machine's libraries, processor and
// settings, or two machines compared.
//
//   assay_environment_report(ASSAY_REPORT_JSON, assay_report_to_file, &path);
//   ...
//   assay_environment_comparison_t* c;
//   if (!assay_environment_compare("here.json", "there.json", &c) &&
//       assay_environment_comparison_changes_numbers(c)) ...
#ifndef ASSAY_ENVIRONMENT_H_
#define ASSAY_ENVIRONMENT_H_

#include <assay/report.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// TEXT and JSON, "assay.debug.environment/1". Errors: as in report.h
// Threads: any
ASSAY_API assay_status_t assay_environment_report(assay_report_kind_t kind,
                                                  assay_report_fn_t* write, void* user);

typedef struct assay_environment_comparison assay_environment_comparison_t;  // one owner, immutable

// Compares two files that hold such JSON.
// Errors: NOT_FOUND a file cannot be read; CORRUPT one is not of that kind
ASSAY_API assay_status_t assay_environment_compare(const char* first, const char* second,
                                                   assay_environment_comparison_t** out);
ASSAY_API void assay_environment_comparison_destroy(
    assay_environment_comparison_t* comparison);  // NULL is allowed
// Whether something differs that can change results, not only times.
ASSAY_API bool assay_environment_comparison_changes_numbers(
    const assay_environment_comparison_t* comparison);
// TEXT and JSON, "assay.debug.environment.compare/1". Errors: as in report.h
ASSAY_API assay_status_t
assay_environment_comparison_report(const assay_environment_comparison_t* comparison,
                                    assay_report_kind_t kind, assay_report_fn_t* write, void* user);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_ENVIRONMENT_H_
