// Reports: what was found, as text, JSON or a page.
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

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_REPORT_H_
