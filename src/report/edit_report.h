// What an edit did, and its proof, told.
#ifndef ASSAY_REPORT_EDIT_REPORT_H_
#define ASSAY_REPORT_EDIT_REPORT_H_

#include <jansson.h>

#include "edit/editor.h"

typedef struct assay_edit_names {
  const char *model, *out;  // files, as the user gave them; out NULL: none was wanted
  bool all;                 // all outputs, not only those that moved most
} assay_edit_names_t;

// At most 15 lines, verdict first.
assay_status_t assay_report_edit_text(const assay_edit_result_t* r, const assay_edit_names_t* names,
                                      assay_str_t* out) ASSAY_MUST_USE;
// The form "assay.edit/1". The caller owns the result.
assay_status_t assay_report_edit_json(const assay_edit_result_t* r, const assay_edit_names_t* names,
                                      json_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_EDIT_REPORT_H_
