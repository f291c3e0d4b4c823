// Constants that are dequantized for nodes that take floats (scales and biases of normalizations)
// are dequantized once, and weights in float8, which no kernel reads as they are. Those of int8
// layers stay integers: this runs after int8_fusion.
#include <string.h>

#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/fold.h"
#include "passes/pass.h"

// Matrices, of weights, stay a quarter as large as they would be. A number a channel may have
// dimensions of 1 around it.
static bool is_small(const assay_value_t* v) {
  const assay_valtype_t* t = v->type;
  int wide = 0;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->elem != ASSAY_TYPE_FLOAT)
    return false;
  for (int i = 0; i < t->rank; i++) wide += assay_dim_of(v, i) != 1;
  return wide <= 1;
}

static bool is_float8(const assay_value_t* v) {
  const assay_type_t t = assay_elem_of(v);
  return t == ASSAY_TYPE_FLOAT8E4M3FN || t == ASSAY_TYPE_FLOAT8E4M3FNUZ ||
         t == ASSAY_TYPE_FLOAT8E5M2 || t == ASSAY_TYPE_FLOAT8E5M2FNUZ;
}

static bool can_fold(const assay_pass_context_t* c, const assay_node_t* n) {
  if (*n->domain || strcmp(n->op_type, "DequantizeLinear") != 0 || !n->op || !n->op->eval ||
      n->n_outputs != 1 || !n->outputs[0] || n->outputs[0]->is_output ||
      n->n_inputs > ASSAY_FOLD_OPERANDS || assay_pass_is_grouped(c, n))
    return false;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && !assay_pass_constant(n->inputs[i])) return false;
  return is_small(n->outputs[0]) ||
         (is_float8(n->inputs[0]) && assay_elem_of(n->outputs[0]) == ASSAY_TYPE_FLOAT);
}

static assay_status_t fold_node(assay_pass_context_t* c, assay_evaluator_t* evaluator,
                                assay_node_t* n, bool* dead) {
  assay_tensor_t *in[ASSAY_FOLD_OPERANDS] = {0}, *out = NULL;
  bool fits = false;
  const assay_node_t* node = n;
  if (!can_fold(c, n)) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) in[i] = assay_pass_constant(n->inputs[i]);
  ASSAY_TRY(assay_fold(evaluator, n, in, &out, &fits));
  if (!fits) return NULL;
  assay_value_t* v = n->outputs[0];
  assay_status_t st = assay_pass_record(c, ASSAY_PASS_REMOVED, &node, 1,
                                        "it dequantizes a constant: computed once");
  if (!st) {
    assay_node_set_output(n, 0, NULL);
    dead[n->id] = true;
    st = assay_pass_set_constant(c, v, assay_tensor_retain(out));
  }
  assay_tensor_release(out);
  return st;
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_evaluator_t* evaluator = NULL;
  bool* dead = NULL;
  const assay_evaluator_config_t truth = {.mode = ASSAY_MODE_TRUTH};
  const assay_graph_t* g = c->model->graph;
  ASSAY_TRY(assay_evaluator_create(c->model, &truth, &evaluator));
  assay_status_t st = assay_new_array((size_t)c->model->n_node_ids, sizeof *dead, &dead);
  for (size_t i = 0; !st && i < g->n_nodes; i++) st = fold_node(c, evaluator, g->nodes[i], dead);
  assay_evaluator_destroy(evaluator);
  if (!st) assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  assay_free(dead);
  return st;
}

const assay_pass_t assay_pass_dequantized_constants = {
    .name = "dequantized_constants",
    .summary = "constants that nodes take as floats, and float8 weights, are dequantized once",
    .rounds_constants = true,
    .run = run,
};
