// --calib: the scales of a calibration cache.
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"

assay_status_t trt_load_calibration(trt_job_t* j) {
  const char* path = trt_text(j->options, TRT_FLAG_calib);
  size_t known = 0;
  if (!path) return NULL;
  ASSAY_TRY(assay_status_note(
      assay_calibration_cache_read(j->arena, path, &j->scales, &j->n_scales), "--calib"));
  for (size_t i = 0; i < j->n_scales; i++)
    known += assay_graph_find(j->model->graph, j->scales[i].name) != NULL;
  trt_info("The calibration cache %s has %zu scales, %zu of them of values of the model", path,
           j->n_scales, known);
  if (assay_model_quantizes(j->model))
    trt_warn(
        "--calib is not used: the model has Q/DQ nodes, whose scales count. Calibrator won't be "
        "used in explicit quantization mode");
  else if (!trt_given(j->options, TRT_FLAG_int8))
    trt_warn("--calib is not used without --int8");
  return NULL;
}
