// What passes make of each form that they know, and that they leave alone what only looks like it.
#ifndef ASSAY_TESTS_PASSES_FORM_CASE_H_
#define ASSAY_TESTS_PASSES_FORM_CASE_H_

#include "passes/truth_case.h"

// A graph, a pass, and the operators that are there after that pass alone.
typedef struct form_case {
  const char* pass;
  const char* after;  // operators of the top graph, in order
  graph_case_t graph;
} form_case_t;

static inline void form_operators(const assay_model_t* m, char text[512]) {
  text[0] = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    if (i) strcat(text, " ");
    assert_true(strlen(text) + strlen(m->graph->nodes[i]->op_type) < 500);
    strcat(text, m->graph->nodes[i]->op_type);
  }
}

// The operators are those, and truth stays what it was: with that pass alone, and with all.
static inline void form_cases_hold(const form_case_t* cases, size_t n_cases) {
  bool failed = false;
  for (size_t i = 0; i < n_cases; i++) {
    const form_case_t* row = &cases[i];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    char text[512];
    assay_model_t* m = graph_case_model(&row->graph, in);
    assay_evaluator_t* before = truth_of(m, in);
    assay_rewrite_t* r = NULL;
    const assay_pass_options_t options = {.only = row->pass, .verify = true};
    op_case_ok(assay_status_note(assay_passes_run(m, &options, &r), "%s", row->graph.name));
    form_operators(r->model, text);
    if (strcmp(text, row->after) != 0) {
      print_error("%s: '%s', expected '%s'\n", row->graph.name, text, row->after);
      failed = true;
    }
    assay_rewrite_destroy(r);
    keeps_truth(row->graph.name, m, before, in, assay_pass_find(row->pass));
    keeps_truth(row->graph.name, m, before, in, NULL);
    assay_evaluator_destroy(before);
    assay_model_release(m);
    graph_case_release(in);
  }
  assert_false(failed);
}

// Allocation N fails, for all N.
static inline void form_cases_fail(const form_case_t* cases, size_t n_cases) {
  for (size_t i = 0; i < n_cases; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cases[i].graph, in);
    const assay_pass_options_t options = {.only = cases[i].pass};
    int64_t live = assay_alloc_live();
    bool reached = false;
    uint64_t n = 0;
    do {
      assay_rewrite_t* r = NULL;
      assay_alloc_fail_after(++n, false);
      assay_status_t st = assay_passes_run(m, &options, &r);
      // Some do without what they could not have: a success is not the end.
      reached = assay_alloc_fail_after(0, false) >= n;
      if (!reached) op_case_ok(st), st = NULL;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_rewrite_destroy(r);
      assert_int_equal(assay_alloc_live(), live);
    } while (reached);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// The tests of a table of forms.
#define FORM_CASE_TESTS(CASES)                               \
  static void forms(void** state) {                          \
    (void)state;                                             \
    form_cases_hold(CASES, sizeof(CASES) / sizeof *(CASES)); \
  }                                                          \
  static void failing_allocations(void** state) {            \
    (void)state;                                             \
    form_cases_fail(CASES, sizeof(CASES) / sizeof *(CASES)); \
  }

#endif  // ASSAY_TESTS_PASSES_FORM_CASE_H_
