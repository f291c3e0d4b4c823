// Edits of the model before it is built, as 'assay edit' makes them.
#include "frontends/trtexec/edit.h"

#include <string.h>

#include "frontends/trtexec/log.h"
#include "onnx/onnx.h"

assay_status_t trt_edit_other(assay_model_t* raw, const assay_editor_t* editor,
                              const assay_edit_requests_t* requests,
                              const assay_editor_options_t* o, assay_model_t** out_edited,
                              assay_model_t** out_ready, assay_str_t* out_notes) {
  const assay_editor_options_t options = {.given = o->given,
                                          .no_proof = true,
                                          .force = true,
                                          .seed = o->seed,
                                          .n_shapes = o->n_shapes,
                                          .shapes = o->shapes};
  assay_edit_result_t r = {0};
  assay_status_t st = assay_editor_run(editor, raw, requests, &options, &r);
  if (!st) st = assay_onnx_prepare(r.model, 0, NULL, out_ready);
  if (!st) *out_edited = assay_model_retain(r.model);
  if (!st && out_notes) assay_str_append(out_notes, assay_str_get(&r.notes));
  assay_edit_result_deinit(&r);
  return assay_status_note(st, "edit %s", editor->name);
}

static assay_status_t edit(trt_job_t* j, const assay_editor_t* editor,
                           const assay_edit_requests_t* requests,
                           const assay_editor_options_t* options, assay_str_t* notes) {
  assay_model_t *raw = NULL, *edited = NULL, *ready = NULL;
  if (j->edited)
    raw = assay_model_retain(j->edited);
  else
    ASSAY_TRY(assay_onnx_read(j->native.model, &raw));
  assay_status_t st = trt_edit_other(raw, editor, requests, options, &edited, &ready, notes);
  assay_model_release(raw);
  if (st) return st;
  assay_model_release(j->edited);
  j->edited = edited;
  assay_model_release(j->model);
  j->model = j->native.loaded = ready;
  return NULL;
}

assay_status_t trt_edit_model(trt_job_t* j, const assay_editor_t* editor,
                              const assay_edit_requests_t* requests) {
  const assay_editor_options_t options = {.seed = (uint64_t)j->native.seed};
  return edit(j, editor, requests, &options, NULL);
}

// Lines of what stays in fp32: a warning each, of many the first ones.
static void warn_of_left(const char* notes) {
  enum { SHOWN = 10 };
  size_t n = 0;
  for (const char* at = notes; *at; n++) {
    const size_t len = strcspn(at, "\n");
    if (n < SHOWN) trt_warn("--calib: %.*s", (int)len, at);
    at += len + (at[len] == '\n');
  }
  if (n > SHOWN) trt_warn("--calib: and %zu more layers", n - SHOWN);
}

// How many of the cache's scales the build uses; each with --verbose.
static assay_status_t report_scales(const trt_job_t* j) {
  assay_edit_scale_t* used = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_calibration_cache_of_model(j->arena, j->edited, &used, &n));
  trt_info("Generated calibration scales using calibration cache %s: it gave %zu of %zu",
           trt_text(j->options, TRT_FLAG_calib), n, j->n_scales);
  for (size_t i = 0; i < n; i++)
    trt_verbose("Scale of %s: %.9g (range %.9g)", used[i].name, (double)used[i].scale,
                127 * (double)used[i].scale);
  return NULL;
}

static assay_status_t quantize_by_cache(trt_job_t* j) {
  const assay_edit_requests_t requests = {.scales = j->scales, .n_scales = j->n_scales};
  const assay_editor_options_t options = {.seed = (uint64_t)j->native.seed};
  assay_str_t notes = {0};
  if (!j->n_scales)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--calib=%s has no scales",
                       trt_text(j->options, TRT_FLAG_calib));
  assay_status_t st = edit(j, &assay_editor_quantize, &requests, &options, &notes);
  if (!st) st = report_scales(j);
  if (!st) warn_of_left(assay_str_get(&notes));
  assay_str_deinit(&notes);
  return st;
}

assay_status_t trt_quantize(trt_job_t* j) {
  const assay_edit_requests_t requests = {.calibrator = j->samples ? j->calibrator : NULL,
                                          .percentile = j->samples ? j->percentile : 0,
                                          .any_data = !j->samples};
  assay_editor_options_t options = {.given = j->samples, .seed = (uint64_t)j->native.seed};
  assay_input_shape_t* shapes = NULL;
  j->quantized = true;
  if (trt_given(j->options, TRT_FLAG_calib)) return quantize_by_cache(j);
  if (!j->samples) {
    trt_warn(
        "--int8 without --calib, and no Q/DQ nodes in the model: ranges come from random inputs, "
        "so that its speed can be seen; its results mean nothing. For ranges from data: 'assay "
        "edit quantize MODEL --inputs FILE --output FILE', and build that");
    ASSAY_TRY(trt_calibration_shapes(j, &shapes, &options.n_shapes));
    options.shapes = shapes;
  }
  ASSAY_TRY(edit(j, &assay_editor_quantize, &requests, &options, NULL));
  return j->samples
             ? assay_calibration_cache_of_model(j->arena, j->edited, &j->scales, &j->n_scales)
             : NULL;
}
