// Edits of the model before it is built, as 'assay edit' makes them.
#ifndef ASSAY_CLI_TRTEXEC_EDIT_H_
#define ASSAY_CLI_TRTEXEC_EDIT_H_

#include "cli/trtexec/job.h"
#include "edit/editor.h"

// The edited model takes the place of j->model, and of j->edited, which the next edit starts from.
assay_status_t trt_edit_model(trt_job_t* j, const assay_editor_t* editor,
                              const assay_edit_wishes_t* wishes) ASSAY_MUST_USE;
// Puts Q/DQ nodes in, with ranges from random inputs, and warns of that.
assay_status_t trt_quantize(trt_job_t* j) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_TRTEXEC_EDIT_H_
