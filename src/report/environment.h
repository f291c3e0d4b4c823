// What numbers and times depend on besides the model: this machine's state, and two compared.
#ifndef ASSAY_REPORT_ENVIRONMENT_H_
#define ASSAY_REPORT_ENVIRONMENT_H_

#include <jansson.h>

#include "base/str.h"

// "assay.debug.environment/1": {"schema", "entries": [{"key", "value", "numbers"}]}; numbers: it
// can change results, not only times.
assay_status_t assay_environment_collect(json_t** out) ASSAY_MUST_USE;
assay_status_t assay_environment_text(const json_t* j, assay_str_t* out) ASSAY_MUST_USE;
// Appends what differs, "assay.debug.environment.compare/1" in *out_json; *out_numbers: of it, some
// can change results. Errors: CORRUPT one of them is no such file.
assay_status_t assay_environment_difference(const json_t* a, const json_t* b, assay_str_t* out,
                                            json_t** out_json, bool* out_numbers) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_ENVIRONMENT_H_
