// What the page shows beyond the check's JSON: the graph, and pictures of every value.
#ifndef ASSAY_REPORT_PAGE_DATA_H_
#define ASSAY_REPORT_PAGE_DATA_H_

#include "account/pictures.h"
#include "report/report.h"

// Of codes of 6 bits, one character each.
#define ASSAY_PAGE_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// "assay.check/1" with, of every layer, "from" (the layers whose values it reads; -1 - k is input k
// of the graph) and "values" (names, shapes, histograms, maps); "inputs" and "formats" beside them.
// Maps are smaller for layers that err less, so that the whole stays bounded by the number of
// layers. The caller owns the result.
assay_status_t assay_page_data(const assay_check_t* check, const assay_report_names_t* names,
                               const assay_pictures_t* pictures, json_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_PAGE_DATA_H_
