// Pages: one HTML file that holds all it needs, made of what the build embedded (page/) and of
// data.
#ifndef ASSAY_REPORT_PAGE_H_
#define ASSAY_REPORT_PAGE_H_

#include <jansson.h>

#include "base/str.h"

typedef enum assay_page_kind {
  ASSAY_PAGE_CHECK,  // page/check.html: what a check found
  ASSAY_PAGE_MODEL,  // page/model.html: what is in a model or a plan
} assay_page_kind_t;

// What goes into a page, all of it as it is: it is escaped when it is put there.
typedef struct assay_page {
  assay_str_t title;
  assay_str_t text;  // for readers without JavaScript
  json_t* data;
} assay_page_t;

void assay_page_deinit(assay_page_t* p);
// Appends the page; what failed while the texts were made is told here.
assay_status_t assay_page_put(assay_page_kind_t kind, const assay_page_t* p,
                              assay_str_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_PAGE_H_
