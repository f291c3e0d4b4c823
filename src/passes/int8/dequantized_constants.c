// Constants that are dequantized for nodes that take floats (scales and biases of normalizations)
// are dequantized once, and weights in float8, which no kernel reads as they are. Those of int8
// layers stay integers: this runs after int8_fusion.
#include <string.h>

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

static bool wants(const assay_pass_context_t* c, const assay_node_t* n) {
  if (*n->domain || strcmp(n->op_type, "DequantizeLinear") != 0 || !n->op || !n->op->eval ||
      n->graph->outer || n->n_outputs != 1 || !n->outputs[0] || n->outputs[0]->is_output ||
      assay_pass_is_grouped(c, n))
    return false;
  return is_small(n->outputs[0]) ||
         (is_float8(n->inputs[0]) && assay_elem_of(n->outputs[0]) == ASSAY_TYPE_FLOAT);
}

static assay_status_t run(assay_pass_context_t* c) {
  const assay_evaluator_config_t truth = {.mode = ASSAY_MODE_TRUTH};
  return assay_fold_nodes(
      c, &(assay_folding_t){&truth, wants, "it dequantizes a constant: computed once"});
}

const assay_pass_t assay_pass_dequantized_constants = {
    .name = "dequantized_constants",
    .summary = "constants that nodes take as floats, and float8 weights, are dequantized once",
    .rounds_constants = true,
    .run = run,
};
