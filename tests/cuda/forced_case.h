// Models whose last layer is run by a kernel that is asked for.
#ifndef ASSAY_TESTS_CUDA_FORCED_CASE_H_
#define ASSAY_TESTS_CUDA_FORCED_CASE_H_

#include "backends/tactic_case.h"

// kernel: "TACTIC/VARIANT" or "TACTIC" that runs the last layer; NULL: whichever.
static inline void forced_case_run_in(assay_format_t format, assay_model_t* m, const char* backend,
                                      const char* kernel, assay_tensor_t* const* in,
                                      tactic_run_t* r) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {
      .fused = true, .passes = {.off = tactic_case_off, .n_off = TACTIC_CASE_OFF}};
  char forced[256];
  assay_plan_t* plan = NULL;
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  *r = (tactic_run_t){0};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  const assay_layers_t* layers = assay_plan_layers(plan);
  snprintf(forced, sizeof forced, "%s %s\n", kernel ? kernel : "",
           layers->layers[layers->n_layers - 1].name);
  const assay_backend_options_t choice = {.forced = kernel ? forced : NULL};
  op_case_ok(assay_engine_create(plan, assay_backend_find(backend), &choice, &engine));
  op_case_ok(assay_executor_run_engine(engine, NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
  op_case_ok(assay_executor_run(e));
  for (; r->n_out < g->n_outputs; r->n_out++)
    r->out[r->n_out] = assay_tensor_retain(assay_executor_get(e, g->outputs[r->n_out]));
  snprintf(r->tactic, sizeof r->tactic, "%s",
           assay_executor_tactic(e, assay_executor_n_steps(e) - 1));
  assay_executor_destroy(e);
  assay_engine_release(engine);
}

static inline void forced_case_run(assay_model_t* m, const char* backend, const char* kernel,
                                   assay_tensor_t* const* in, tactic_run_t* r) {
  forced_case_run_in(ASSAY_FORMAT_FP32, m, backend, kernel, in, r);
}

// The same bits by this kernel.
static inline void forced_case_compare(const char* name, const tactic_run_t* want, assay_model_t* m,
                                       const char* backend, const char* kernel,
                                       assay_tensor_t* const* in) {
  tactic_run_t got;
  forced_case_run(m, backend, kernel, in, &got);
  if (kernel && !tactic_case_is_by(got.tactic, kernel))
    fail_msg("%s: by %s, not by %s", name, got.tactic, kernel);
  if (!tactic_case_identical(want->out[0], got.out[0]))
    fail_msg("%s: %s on %s has other bits", name, got.tactic, backend);
  tactic_case_release(&got);
}

#endif  // ASSAY_TESTS_CUDA_FORCED_CASE_H_
