// The runs of a plan, and what is told of them.
#include "base/alloc.h"
#include "cli/risks.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/measure.h"

// Shapes of outputs are known when one run has made them.
static void report_output_bindings(const trt_job_t* j, assay_context_t* c) {
  for (size_t i = 0; i < trt_output_count(j); i++) {
    const assay_io_t* io = assay_engine_output(j->engine, i);
    int64_t dims[ASSAY_MAX_RANK];
    int rank = 0;
    assay_status_t none = assay_context_output_shape(c, i, &rank, dims);
    if (none) {
      assay_status_free(none);
      continue;
    }
    trt_report_binding(j, "Output", io, rank, dims);
  }
}

// A first run, by which inputs that do not fit fail before anything is measured.
static assay_status_t try_once(const trt_job_t* j, const trt_inputs_t* in) {
  assay_context_t* c = NULL;
  ASSAY_TRY(assay_context_create(j->engine, NULL, &c));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < in->n; i++) st = assay_context_set_input(c, i, in->tensors[i]);
  if (!st) st = assay_context_run(c);
  if (!st) report_output_bindings(j, c);
  assay_context_destroy(c);
  return st;
}

static assay_status_t measure(const trt_job_t* j, const trt_inputs_t* in) {
  const trt_options_t* o = j->options;
  const bool wanted = trt_given(o, TRT_FLAG_dumpProfile) || trt_given(o, TRT_FLAG_exportProfile);
  const bool apart = trt_given(o, TRT_FLAG_separateProfileRun);
  trt_trace_t t = {0}, profiled = {0};
  if (wanted && !apart)
    trt_info(
        "The layers are timed one by one in the measured runs (--separateProfileRun: in others)");
  trt_info("Starting inference");
  assay_status_t st = trt_measure(j, in, wanted && !apart, &t);
  if (!st) st = trt_report(j, &t);
  if (!st && wanted && apart) st = trt_measure(j, in, true, &profiled);
  if (!st && wanted) st = trt_report_profile(j, apart ? &profiled : &t);
  if (!st) st = trt_report_outputs(j, in, t.context);
  if (!st) st = trt_check_reference(j, t.context);
  trt_trace_deinit(&t);
  trt_trace_deinit(&profiled);
  return st;
}

static void warn(const char* line) { trt_warn("%s", line); }

// Of values that fused layers hide on these inputs, and their format could not hold.
static assay_status_t report_risks(const trt_job_t* j, const trt_inputs_t* in) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(j->engine))->model->graph;
  assay_tensor_t** all = NULL;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *all, &all));
  for (size_t i = 0, k = 0; i < g->n_inputs && k < in->n; i++)
    if (!g->inputs[i]->constant) all[i] = in->tensors[k++];
  cli_warn_of_hidden(j->engine, all, warn);
  assay_free(all);
  return NULL;
}

assay_status_t trt_infer(trt_job_t* j) {
  trt_inputs_t in = {0};
  assay_status_t st = trt_inputs_make(j, trt_text(j->options, TRT_FLAG_loadInputs), &in);
  if (!st) st = try_once(j, &in);
  if (!st) st = measure(j, &in);
  if (!st) st = report_risks(j, &in);
  if (!st) st = trt_save_debug(j, &in);
  trt_inputs_deinit(&in);
  return st;
}
