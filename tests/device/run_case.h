// Models on the device for tests, beside the same on the emulated engine.
#ifndef TESTS_DEVICE_RUN_CASE_H_
#define TESTS_DEVICE_RUN_CASE_H_

#include <math.h>

#include "device_case.h"
#include "exec/device/device_run.h"
#include "io/npz.h"
#include "onnx/load.h"
#include "plan/plan.h"

enum { RUN_CASE_MAX = 300 };

typedef struct run_case {
  assay_model_t* model;
  assay_plan_t* plan;
  assay_set_t inputs;
} run_case_t;

typedef struct run_outputs {
  assay_tensor_t* at[RUN_CASE_MAX];
  size_t n;
} run_outputs_t;

static inline void outputs_release(run_outputs_t* o) {
  for (size_t i = 0; i < o->n; i++) assay_tensor_release(o->at[i]);
  *o = (run_outputs_t){0};
}

static inline void run_case_plan(run_case_t* c, assay_format_t format, bool fused) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = fused};
  ok(assay_plan_create(c->model, &precision, &options, 1, &c->plan));
}

// One of ASSAY_TEST_MODELS, with its inputs.
static inline void run_case_load(run_case_t* c, const char* name, assay_format_t format,
                                 bool fused) {
  char path[512];
  *c = (run_case_t){0};
  snprintf(path, sizeof path, "%s/%s/model.onnx", getenv("ASSAY_TEST_MODELS"), name);
  ok(assay_onnx_load(path, 0, NULL, &c->model));
  snprintf(path, sizeof path, "%s/%s/inputs.npz", getenv("ASSAY_TEST_MODELS"), name);
  ok(assay_npz_read(path, &c->inputs));
  run_case_plan(c, format, fused);
}

static inline void run_case_close(run_case_t* c) {
  assay_plan_destroy(c->plan);
  assay_set_deinit(&c->inputs);
  assay_model_release(c->model);
}

static inline const assay_graph_t* run_case_graph(const run_case_t* c) {
  return assay_plan_layers(c->plan)->model->graph;
}

static inline assay_status_t run_case_set(const run_case_t* c, const assay_backend_t* b,
                                          void* state) {
  const assay_graph_t* g = run_case_graph(c);
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_tensor_t* t = assay_set_find(&c->inputs, g->inputs[i]->name);
    if (t) ASSAY_TRY(b->set(state, g->inputs[i], t));
  }
  return NULL;
}

static inline assay_status_t run_case_steps(const run_case_t* c, const assay_backend_t* b,
                                            void* state) {
  const size_t n = assay_plan_layers(c->plan)->n_layers;
  for (size_t i = 0; i < n; i++) ASSAY_TRY(b->step(state, i));
  return NULL;
}

// One run; outputs canonical.
static inline assay_status_t run_case_once(const run_case_t* c, const assay_backend_t* b,
                                           void* state, run_outputs_t* out) {
  const assay_graph_t* g = run_case_graph(c);
  *out = (run_outputs_t){0};
  b->reset(state);
  ASSAY_TRY(run_case_set(c, b, state));
  ASSAY_TRY(run_case_steps(c, b, state));
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_tensor_t* t = NULL;
    ASSAY_TRY(assay_backend_output(b, state, g->outputs[i], &t));
    assert_non_null(t);
    out->at[out->n++] = assay_tensor_retain(t);
  }
  return NULL;
}

static inline void run_case_run(const run_case_t* c, const assay_backend_t* b, run_outputs_t* out) {
  void* state = NULL;
  ok(b->open(assay_plan_layers(c->plan), NULL, NULL, &state));
  ok(run_case_once(c, b, state, out));
  b->close(state);
}

// Bit for bit, but for what NaN there is.
static inline bool is_same(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != b->kind || a->type != b->type || a->store != b->store || a->rank != b->rank ||
      (a->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0))
    return false;
  if (a->store != ASSAY_STORE_F64)
    return !a->size ||
           memcmp(a->data, b->data, (size_t)a->size * assay_store_elem_bytes(a->store)) == 0;
  for (int64_t i = 0; i < a->size; i++) {
    const double x = assay_f64(a)[i], y = assay_f64(b)[i];
    if (isnan(x) ? !isnan(y) : x != y || signbit(x) != signbit(y)) return false;
  }
  return true;
}

static inline void outputs_same(const char* what, const run_outputs_t* a, const run_outputs_t* b) {
  assert_int_equal(a->n, b->n);
  for (size_t i = 0; i < a->n; i++)
    if (!is_same(a->at[i], b->at[i])) fail_msg("%s: output %zu has other bits", what, i);
}

#endif  // TESTS_DEVICE_RUN_CASE_H_
