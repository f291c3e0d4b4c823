// What the files of annotate.c share.
#ifndef ASSAY_REPORT_ANNOTATE_H_
#define ASSAY_REPORT_ANNOTATE_H_

#include "report/report.h"

// Gives values of the model's main graph and its bodies the types that the check knows, listed in
// value_info, and with pictures a line about their numbers (annotate_values.c).
assay_status_t assay_annotate_values(const assay_check_t* check, const assay_pictures_t* pictures,
                                     assay_model_t* model) ASSAY_MUST_USE;

// A doc_string with `line` as its last line, in place of one that `is_line` says an earlier check
// wrote; "": without one. In the arena.
assay_status_t assay_annotate_doc(assay_arena_t* arena, const char* doc, const char* line,
                                  bool (*is_line)(const char* line),
                                  const char** out) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_ANNOTATE_H_
