// Edits of the model before it is built, as 'assay edit' makes them.
#ifndef ASSAY_FRONTENDS_TRTEXEC_EDIT_H_
#define ASSAY_FRONTENDS_TRTEXEC_EDIT_H_

#include "edit/editor.h"
#include "frontends/trtexec/job.h"

// The edited model takes the place of j->model, and of j->edited, which the next edit starts from.
assay_status_t trt_edit_model(trt_job_t* j, const assay_editor_t* editor,
                              const assay_edit_requests_t* requests) ASSAY_MUST_USE;
// The same of another model that was read: *out_edited as it would be written, *out_ready to be
// built. options: the seed and shapes of samples; the rest is not read. out_notes: lines of the
// edit; NULL: they are not wanted.
assay_status_t trt_edit_other(assay_model_t* raw, const assay_editor_t* editor,
                              const assay_edit_requests_t* requests,
                              const assay_editor_options_t* options, assay_model_t** out_edited,
                              assay_model_t** out_ready, assay_str_t* out_notes) ASSAY_MUST_USE;
// Puts Q/DQ nodes in: with the scales of --calib, or with ranges from random inputs, of which it
// warns.
assay_status_t trt_quantize(trt_job_t* j) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_TRTEXEC_EDIT_H_
