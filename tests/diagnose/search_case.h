// A model with truth of every value and golden outputs, as a repair search wants it.
#ifndef ASSAY_TESTS_ACCURACY_SEARCH_CASE_H_
#define ASSAY_TESTS_ACCURACY_SEARCH_CASE_H_

#include "diagnose/search.h"
#include "passes/graph_case.h"

enum { SEARCH_CASE_TARGETS = 4 };

typedef struct search_case {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_evaluator_t* evaluator;
  assay_search_target_t targets[SEARCH_CASE_TARGETS];
  assay_search_t search;
} search_case_t;

static inline assay_evaluator_t* search_case_truth(const assay_model_t* m,
                                                   assay_tensor_t* const* in) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  assay_evaluator_t* evaluator = NULL;
  op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
  return evaluator;
}

// wrong: the model that is searched; right: the one whose outputs are golden.
static inline void search_case_init(const graph_case_t* wrong, const graph_case_t* right,
                                    search_case_t* c) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  *c = (search_case_t){0};
  c->model = graph_case_model(wrong, c->in);
  c->evaluator = search_case_truth(c->model, c->in);
  assay_model_t* m = graph_case_model(right, in);
  assay_evaluator_t* golden = search_case_truth(m, in);
  const assay_graph_t* g = c->model->graph;
  assert_true(g->n_outputs <= SEARCH_CASE_TARGETS);
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = m->graph->outputs[i];
    c->targets[i] = (assay_search_target_t){
        .value = g->outputs[i],
        .golden = assay_tensor_retain(assay_evaluator_get(golden, v)),
        .truth = assay_tensor_retain(assay_evaluator_get(c->evaluator, g->outputs[i]))};
  }
  assay_evaluator_destroy(golden);
  assay_model_release(m);
  graph_case_release(in);
  c->search = (assay_search_t){.model = c->model,
                               .evaluator = c->evaluator,
                               .nodes = (const assay_node_t* const*)g->nodes,
                               .n_nodes = g->n_nodes,
                               .targets = c->targets,
                               .n_targets = g->n_outputs};
}

static inline void search_case_deinit(search_case_t* c) {
  for (int i = 0; i < SEARCH_CASE_TARGETS; i++) {
    assay_tensor_release(c->targets[i].golden);
    assay_tensor_release(c->targets[i].truth);
  }
  assay_evaluator_destroy(c->evaluator);
  assay_model_release(c->model);
  graph_case_release(c->in);
}

static inline const assay_value_t* search_case_value(const search_case_t* c, const char* name) {
  const assay_value_t* v = assay_graph_find(c->model->graph, name);
  assert_non_null(v);
  return v;
}

#endif  // ASSAY_TESTS_ACCURACY_SEARCH_CASE_H_
