// How results of the public API hand over their reports (include/assay/report.h): one way for all.
#ifndef ASSAY_REPORT_REPORT_PUBLIC_H_
#define ASSAY_REPORT_REPORT_PUBLIC_H_

#include <assay/report.h>
#include <jansson.h>

#include "base/str.h"

// Copies the options of a caller, which may be NULL or an older and shorter struct, over `full`,
// which holds the defaults.
void assay_report_options_read(const void* options, size_t struct_size, void* full,
                               size_t full_size);
// INVALID_ARGUMENT: the kind does not exist. UNSUPPORTED: a page of what has none.
//   what  "audits"; NULL: there are pages of it
assay_status_t assay_report_want_kind(assay_report_kind_t kind, const char* what) ASSAY_MUST_USE;
// Prints what a maker of JSON made (made: what came of it) to the text.
assay_status_t assay_report_print(assay_status_t made, json_t* take_json,
                                  assay_str_t* out) ASSAY_MUST_USE;
// Gives a report, if it was made, to its function, and frees it.
assay_status_t assay_report_deliver(assay_status_t made, assay_str_t* take_text,
                                    assay_report_fn_t* write, void* user) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_REPORT_PUBLIC_H_
