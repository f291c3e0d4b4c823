// Edits of the model before it is built, as 'assay edit' makes them.
#include "cli/trtexec/edit.h"

#include "cli/trtexec/log.h"
#include "onnx/onnx.h"

assay_status_t trt_edit_model(trt_job_t* j, const assay_editor_t* editor,
                              const assay_edit_wishes_t* wishes) {
  const assay_edit_options_t options = {
      .no_proof = true, .force = true, .seed = (uint64_t)j->native.seed};
  assay_edit_result_t r = {0};
  assay_model_t *raw = NULL, *ready = NULL;
  if (j->edited)
    raw = assay_model_retain(j->edited);
  else
    ASSAY_TRY(assay_onnx_read(j->native.model, &raw));
  assay_status_t st = assay_editor_run(editor, raw, wishes, &options, &r);
  if (!st) st = assay_onnx_prepare(r.model, 0, NULL, &ready);
  if (!st) {
    assay_model_release(j->edited);
    j->edited = assay_model_retain(r.model);
    assay_model_release(j->model);
    j->model = j->native.loaded = ready;
  }
  assay_edit_result_deinit(&r);
  assay_model_release(raw);
  return assay_status_note(st, "edit %s", editor->name);
}

assay_status_t trt_quantize(trt_job_t* j) {
  const assay_edit_wishes_t wishes = {0};
  trt_warn(
      "--int8 without --calib, and no Q/DQ nodes in the model: ranges come from random inputs, so "
      "that its speed can be seen; its results mean nothing. For ranges from data: 'assay edit "
      "quantize MODEL --inputs FILE --output FILE', and build that");
  j->quantized = true;
  return trt_edit_model(j, &assay_editor_quantize, &wishes);
}
