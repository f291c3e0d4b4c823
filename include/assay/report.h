// Reports: what was found, as text, JSON or a page. Every result has them by two functions:
//
//   assay_check_report(check, ASSAY_REPORT_TEXT, &options, write, user)        to a function
//   assay_check_write_report(check, ASSAY_REPORT_JSON, &options, "check.json") to a file
//
// The options say what a report calls things and how much it says; they may be NULL. Errors are the
// same everywhere: INVALID_ARGUMENT an unknown kind; UNSUPPORTED a PAGE of a result without one;
// NO_MEMORY; what `write` returns, or what a file fails with.
#ifndef ASSAY_REPORT_H_
#define ASSAY_REPORT_H_

#include <assay/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum assay_report_kind {
  ASSAY_REPORT_TEXT = 0,  // for a terminal: a dozen lines, verdict first
  ASSAY_REPORT_JSON,      // everything, for programs; "schema" says what it is
  ASSAY_REPORT_PAGE,      // one HTML page that needs no network; not of everything
} assay_report_kind_t;

// Takes a report, whole: size bytes, not NUL-terminated for sure, borrowed until return. A failure
// (assay_status_create) ends the report with it.
typedef assay_status_t assay_report_fn_t(void* user, const char* data, size_t size);

// Such functions, ready made. Threads: any.
//
// Copies the report to *(char**)user, NUL-terminated; the caller frees it (assay_text_free).
// What was there before is not looked at.
//   char* text = NULL;
//   assay_audit_report(audit, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text);
ASSAY_API assay_status_t assay_report_collect(void* user, const char* data, size_t size);
// Writes it to the file of the path *(const char**)user, which is put in place when it is complete:
// what ..._write_report() does. Errors: NOT_FOUND no such folder; DEVICE the file cannot be written
ASSAY_API assay_status_t assay_report_to_file(void* user, const char* data, size_t size);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_REPORT_H_
