// Graphs in which a pass finds layers (or none): what these are read as, and that truth stays.
#ifndef ASSAY_TESTS_PASSES_READ_CASE_H_
#define ASSAY_TESTS_PASSES_READ_CASE_H_

#include "passes/truth_case.h"

enum { READ_CASE_TEXT = 512 };

// read: checks the layers of a rewrite, and writes what they are. False: that is not what was
// expected; it has been printed.
static inline bool reads_as(const char* pass, const graph_case_t* g, const char* expected,
                            void (*read)(const assay_rewrite_t* r, char text[READ_CASE_TEXT])) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  char text[READ_CASE_TEXT] = "";
  assay_rewrite_t* r = NULL;
  assay_model_t* m = graph_case_model(g, in);
  op_case_ok(assay_passes_run(m, &(assay_pass_options_t){.only = pass, .verify = true}, &r));
  read(r, text);
  const bool same = strcmp(text, expected) == 0;
  if (!same) print_error("%s: '%s', expected '%s'\n", g->name, text, expected);
  assay_evaluator_t* before = truth_of(m, in);
  keeps_truth(g->name, m, before, in, assay_pass_find(pass));
  keeps_truth(g->name, m, before, in, NULL);
  assay_evaluator_destroy(before);
  assay_rewrite_destroy(r);
  assay_model_release(m);
  graph_case_release(in);
  return same;
}

#endif  // ASSAY_TESTS_PASSES_READ_CASE_H_
