// A fault that is found by golden outputs alone, and its repair, made in the model, gives golden.
#ifndef ASSAY_TESTS_DIAGNOSE_CAUSE_CASE_H_
#define ASSAY_TESTS_DIAGNOSE_CAUSE_CASE_H_

#include "base/clock.h"
#include "diagnose/search_case.h"
#include "onnx/onnx.h"

typedef struct cause_row {
  const char* cause;  // that the repair has
  const char* node;   // at fault
  graph_case_t right;
  const char* wrong[GRAPH_CASE_ROWS];  // nodes
  size_t changed;                      // which constant is wrong, too, and what it is
  const char* constant;                // NULL: none
} cause_row_t;

static inline assay_tensor_t* cause_output(const assay_model_t* m, assay_tensor_t* const* in) {
  assay_evaluator_t* e = search_case_truth(m, in);
  assay_tensor_t* y = assay_tensor_retain(assay_evaluator_get(e, m->graph->outputs[0]));
  assay_evaluator_destroy(e);
  return y;
}

// The repair, made in the model as it was read, gives golden.
static inline void repair_holds(const cause_row_t* row, const search_case_t* c,
                                const graph_case_t* wrong, const assay_repair_t* r) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(wrong, in);
  op_case_ok(assay_repair_apply(r, m));
  op_case_ok(assay_model_verify(m));
  assay_model_t* prepared = NULL;
  op_case_ok(assay_onnx_prepare(m, 0, NULL, &prepared));
  assay_tensor_t* y = cause_output(prepared, in);
  const assay_difference_t d = assay_difference(y, c->targets[0].golden);
  if (!d.comparable || d.rms > 1e-6 * (1 + d.ref_rms))
    fail_msg("%s: the repaired model is off by %g of %g", row->right.name, d.rms, d.ref_rms);
  assay_tensor_release(y);
  assay_model_release(prepared);
  assay_model_release(m);
  graph_case_release(in);
}

// The search finds the cause of a row, and its repair holds.
static inline void cause_is_found(const cause_row_t* row) {
  graph_case_t wrong = row->right;
  memcpy(wrong.nodes, row->wrong, sizeof wrong.nodes);
  if (row->constant) wrong.constants[row->changed] = row->constant;
  search_case_t c;
  assay_fault_t faults[ASSAY_SEARCH_FAULTS] = {{0}};
  size_t n = 0;
  search_case_init(&wrong, &row->right, &c);
  c.targets[0].explained_rms = 1e-6;
  c.targets[0].explained_max = 1e-5;
  c.search.deadline = assay_clock_seconds() + 20;
  c.search.several = true;
  op_case_ok(assay_search_run(&c.search, faults, &n));
  if (!n || !faults[0].restored)
    fail_msg("%s: nothing restores golden, best is '%s'", row->right.name,
             n ? faults[0].repair.text : "");
  if (strcmp(faults[0].node->label, row->node) != 0 ||
      strcmp(faults[0].repair.cause, row->cause) != 0)
    fail_msg("%s: '%s' by '%s', %s", row->right.name, faults[0].node->label, faults[0].repair.cause,
             faults[0].repair.text);
  repair_holds(row, &c, &wrong, &faults[0].repair);
  for (size_t k = 0; k < n; k++) assay_repair_deinit(&faults[k].repair);
  search_case_deinit(&c);
}

#endif  // ASSAY_TESTS_DIAGNOSE_CAUSE_CASE_H_
