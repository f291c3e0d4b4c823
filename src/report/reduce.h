// What `debug reduce` found, told.
#ifndef ASSAY_REPORT_REDUCE_H_
#define ASSAY_REPORT_REDUCE_H_

#include <jansson.h>

#include "base/str.h"
#include "edit/reduce/reduce.h"

typedef struct assay_reduce_names {
  const char *model, *target, *precision;
  const char* folder;   // where model.onnx, inputs.npz and golden.npz are; NULL: nowhere
  size_t written;       // samples in them
  const char* command;  // that shows it
} assay_reduce_names_t;

// At most 15 lines, verdict first; and "assay.debug.reduce/1".
assay_status_t assay_report_reduce_text(const assay_reduced_t* r, const assay_reduce_names_t* names,
                                        assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_reduce_json(const assay_reduced_t* r, const assay_reduce_names_t* names,
                                        json_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_REDUCE_H_
