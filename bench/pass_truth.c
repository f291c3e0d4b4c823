// What passes do to a model's truth: pass_truth MODEL [PASS].
//
// The model's truth on random inputs, and that of the model that the passes (or one of them) made
// of it; sizes that it leaves open are 1, once left open for the passes and once given to them.
// Prints nodes and layers before and after, and by how much the outputs moved, against their
// largest element. Exit code 1 if that is more than one rounding of the constants explains.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/samples.h"
#include "eval/evaluator.h"
#include "onnx/load.h"
#include "plan/plan.h"

static const double LIMIT = 1e-4;

static assay_status_t truth_of(const assay_model_t* m, assay_tensor_t* const* in,
                               assay_evaluator_t** out) {
  assay_evaluator_t* evaluator = NULL;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH};
  assay_status_t st = assay_evaluator_create_run(m, &config, in, &evaluator);
  if (st) return assay_evaluator_destroy(evaluator), st;
  *out = evaluator;
  return NULL;
}

static double moved(const assay_model_t* was, assay_evaluator_t* before, const assay_model_t* is,
                    assay_evaluator_t* after) {
  double all = 0;
  for (size_t i = 0; i < was->graph->n_outputs; i++) {
    const assay_tensor_t* a = assay_evaluator_get(before, was->graph->outputs[i]);
    const assay_tensor_t* b = assay_evaluator_get(after, is->graph->outputs[i]);
    double largest = 0, worst = 0;
    if (a->size != b->size || a->store != b->store) return INFINITY;
    if (a->store == ASSAY_STORE_I64) {
      if (memcmp(a->data, b->data, (size_t)a->size * sizeof(int64_t)) != 0) return INFINITY;
      continue;
    }
    for (int64_t k = 0; k < a->size; k++) {
      const double x = assay_f64(a)[k], y = assay_f64(b)[k];
      if (isnan(x) != isnan(y)) return INFINITY;
      if (isnan(x)) continue;
      largest = fmax(largest, fabs(x));
      worst = fmax(worst, fabs(x - y));
    }
    all = fmax(all, largest > 0 ? worst / largest : worst);
  }
  return all;
}

static assay_status_t one(const char* what, assay_model_t* m, const char* only,
                          assay_tensor_t* const* in, assay_evaluator_t* before,
                          const assay_model_t* was, double* worst) {
  assay_plan_t* plan = NULL;
  assay_evaluator_t* after = NULL;
  const assay_precision_t p = {.format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t options = {.fused = true, .passes = {.only = only, .verify = true}};
  ASSAY_TRY(assay_plan_create(m, &p, &options, 0, &plan));
  const assay_rewrite_t* r = assay_plan_rewrite(plan);
  assay_status_t st = truth_of(r->model, in, &after);
  if (!st) {
    const double x = moved(was, before, r->model, after);
    printf("  %s: %zu nodes, %zu after, %zu layers; moved by %.2g\n", what, m->graph->n_nodes,
           r->model->graph->n_nodes, assay_plan_layers(plan)->n_layers, x);
    if (!(x <= *worst)) *worst = x;
  }
  assay_evaluator_destroy(after);
  assay_plan_destroy(plan);
  return st;
}

static assay_status_t run(const char* path, const char* only, double* worst) {
  assay_model_t *open = NULL, *closed = NULL;
  assay_samples_t samples = {0};
  assay_evaluator_t* before = NULL;
  assay_input_shape_t shapes[16];
  size_t n = 0;
  assay_status_t st = assay_onnx_load(path, 0, NULL, &open);
  if (!st) st = assay_samples_generate(open, 1, &samples);
  for (size_t i = 0; !st && i < open->graph->n_inputs && n < 16; i++) {
    const assay_tensor_t* t = assay_samples_get(&samples, 0)[i];
    if (t) shapes[n++] = (assay_input_shape_t){open->graph->inputs[i]->name, t->rank, t->dims};
  }
  if (!st) st = assay_onnx_load(path, n, shapes, &closed);
  if (!st) st = truth_of(open, assay_samples_get(&samples, 0), &before);
  if (!st) printf("%s\n", path);
  if (!st) st = one("open sizes ", open, only, assay_samples_get(&samples, 0), before, open, worst);
  if (!st)
    st = one("known sizes", closed, only, assay_samples_get(&samples, 0), before, open, worst);
  assay_evaluator_destroy(before);
  assay_samples_deinit(&samples);
  assay_model_release(open);
  assay_model_release(closed);
  return st;
}

int main(int argc, char** argv) {
  double worst = 0;
  if (argc < 2) return fprintf(stderr, "usage: pass_truth MODEL [PASS]\n"), 2;
  assay_status_t st = run(argv[1], argc > 2 ? argv[2] : NULL, &worst);
  if (st) {
    fprintf(stderr, "%s: %s\n", argv[1], assay_status_message(st));
    assay_status_free(st);
    return 4;
  }
  return worst <= LIMIT ? 0 : 1;
}
