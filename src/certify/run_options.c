// How the public API's options say that a model is run, for making certificates and for verifying.
#include "certify/run_options.h"

#include "exec/targets.h"

static assay_status_t open_plan(const assay_run_request_t* r, const assay_backend_t* backend,
                                assay_plan_options_t* out) {
  *out = (assay_plan_options_t){.passes = {.off = r->passes_off, .n_off = r->n_passes_off},
                                .fp32 = r->fp32,
                                .inject = r->inject};
  return assay_plan_options_settle(out, r->fusion, !backend->emulates || backend->is_like);
}

assay_status_t assay_run_options_open(assay_model_t* model, const assay_run_request_t* r,
                                      assay_check_setting_t* out) {
  assay_plan_t* plan = NULL;
  ASSAY_TRY(assay_onnx_want_known(model));
  ASSAY_TRY(assay_target_find(r->target, ASSAY_TARGET_INSPECT, &out->backend));
  ASSAY_TRY(open_plan(r, out->backend, &out->plan));
  ASSAY_TRY(assay_precision_open(model, r->precision, ASSAY_FORMAT_NONE, r->layer_precision,
                                 &out->precision));
  // Finds what is wrong with rules and passes before anything is run.
  assay_status_t st = assay_plan_create(model, &out->precision, &out->plan, out->seed, &plan);
  assay_plan_destroy(plan);
  if (st) assay_precision_deinit(&out->precision);
  return st;
}

assay_status_t assay_run_rows(const assay_model_t* model, const assay_samples_t* given,
                              uint64_t seed, assay_samples_t* out) {
  const assay_graph_t* g = model->graph;
  assay_samples_t drawn = {0};
  bool cut = false;
  if (given && !given->n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there are no samples; give none to draw some");
  if (given) ASSAY_TRY(assay_samples_fit(given, model, false));
  if (!given) ASSAY_TRY(assay_samples_generate(model, seed, &drawn));
  assay_status_t st = assay_samples_cut_batch(given ? given : &drawn, g->inputs, out, &cut);
  if (!st && !cut && !given) return *out = drawn, NULL;
  assay_samples_deinit(&drawn);
  return st;
}
