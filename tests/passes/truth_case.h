// Truth before and after passes, for tests.
#ifndef ASSAY_TESTS_PASSES_TRUTH_CASE_H_
#define ASSAY_TESTS_PASSES_TRUTH_CASE_H_

#include "eval/evaluator.h"
#include "passes/graph_case.h"
#include "passes/pass.h"

static inline assay_evaluator_t* truth_of(const assay_model_t* m, assay_tensor_t* const* in) {
  assay_evaluator_t* evaluator = NULL;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .verify = true};
  op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
  return evaluator;
}

static inline void same_truth(const char* where, const assay_model_t* was,
                              assay_evaluator_t* before, const assay_model_t* is,
                              assay_evaluator_t* after, double tolerance) {
  assert_int_equal(was->graph->n_outputs, is->graph->n_outputs);
  for (size_t i = 0; i < was->graph->n_outputs; i++) {
    assay_tensor_t *a = NULL, *b = NULL;
    assert_string_equal(was->graph->outputs[i]->name, is->graph->outputs[i]->name);
    op_case_ok(assay_tensor_widen(assay_evaluator_get(before, was->graph->outputs[i]), &a));
    op_case_ok(assay_tensor_widen(assay_evaluator_get(after, is->graph->outputs[i]), &b));
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->size, b->size);
    double largest = 0, worst = 0;
    for (int64_t k = 0; k < a->size; k++) {
      if (a->store == ASSAY_STORE_I64) {
        assert_int_equal(assay_i64(a)[k], assay_i64(b)[k]);
        continue;
      }
      largest = fmax(largest, fabs(assay_f64(a)[k]));
      worst = fmax(worst, fabs(assay_f64(a)[k] - assay_f64(b)[k]));
    }
    if (worst > tolerance * largest)
      fail_msg("%s: output '%s' moved by %g of %g", where, was->graph->outputs[i]->name, worst,
               largest);
    assay_tensor_release(a);
    assay_tensor_release(b);
  }
}

// Runs one pass, or all of them (only NULL), and compares.
static inline void keeps_truth(const char* name, assay_model_t* m, assay_evaluator_t* before,
                               assay_tensor_t* const* in, const assay_pass_t* only) {
  char where[256];
  const assay_pass_options_t options = {.only = only ? only->name : NULL, .verify = true};
  snprintf(where, sizeof where, "%s: %s", name, only ? only->name : "all passes");
  assay_rewrite_t* r = NULL;
  op_case_ok(assay_status_note(assay_passes_run(m, &options, &r), "%s", where));
  assay_evaluator_t* after = truth_of(r->model, in);
  same_truth(where, m, before, r->model, after, only && !only->rounds_constants ? 1e-12 : 1e-6);
  assay_evaluator_destroy(after);
  assay_rewrite_destroy(r);
}

static inline size_t log_entries(const assay_rewrite_t* r, const char* pass) {
  size_t n = 0;
  for (size_t i = 0; i < r->n_log; i++) n += strcmp(r->log[i].pass, pass) == 0;
  return n;
}

#endif  // ASSAY_TESTS_PASSES_TRUTH_CASE_H_
