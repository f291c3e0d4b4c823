// How large random integers of an input may be: as large as trtexec's, unless they could become
// indices, sizes or counts, of which a wrong one makes the run fail.
#include <string.h>

#include "base/alloc.h"
#include "frontends/trtexec/bindings.h"

// What numbers may be put through without becoming more than numbers; bit i: as input i.
typedef struct passage {
  const char* op;
  unsigned inputs;
} passage_t;

static const passage_t passages[] = {
    {"Identity", 1},
    {"Cast", 1},
    {"Add", 3},
    {"Sub", 3},
    {"Mul", 3},
    {"Min", ~0u},
    {"Max", ~0u},
    {"Neg", 1},
    {"Abs", 1},
    {"Sign", 1},
    {"Clip", 7},
    {"Relu", 1},
    {"Equal", 3},
    {"Less", 3},
    {"Greater", 3},
    {"LessOrEqual", 3},
    {"GreaterOrEqual", 3},
    {"Not", 1},
    {"And", 3},
    {"Or", 3},
    {"Xor", 3},
    {"Where", 7},
    {"Concat", ~0u},
    {"Flatten", 1},
    {"Transpose", 1},
    {"Reshape", 1},
    {"Squeeze", 1},
    {"Unsqueeze", 1},
    {"Expand", 1},
    {"Tile", 1},
    {"Slice", 1},
    {"Gather", 1},
    {"ReduceMax", 1},
    {"ReduceMin", 1},
    {"ReduceSum", 1},
    {"ReduceMean", 1},
    {"Round", 1},
    {"Floor", 1},
    {"Ceil", 1},
    {"DequantizeLinear", 1},
    {"MatMulInteger", 3},
    {"ConvInteger", 3},
    {"QLinearMatMul", 9},
    {"QLinearConv", 1},
};

static bool may_pass(const assay_node_t* n, size_t input) {
  for (size_t i = 0; !*n->domain && i < sizeof passages / sizeof *passages; i++)
    if (strcmp(passages[i].op, n->op_type) == 0)
      return input < 32 && passages[i].inputs & 1u << input;
  return false;
}

static bool is_float(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return t && t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->elem);
}

// Follows what was reached through a node, in the order of the graph. False: an integer of it could
// be more than a number. Floats index nothing before they are made integers again.
static bool follow(const assay_node_t* n, bool* reached) {
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (!v || !reached[v->id]) continue;
    if (may_pass(n, i)) {
      for (size_t k = 0; k < n->n_outputs; k++)
        if (n->outputs[k]) reached[n->outputs[k]->id] = true;
    } else if (!is_float(v)) {
      return false;
    }
  }
  return true;
}

assay_status_t trt_are_numbers(const assay_model_t* m, const assay_value_t* input, bool* out) {
  bool* reached = NULL;
  *out = true;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *reached, &reached));
  reached[input->id] = true;
  for (size_t i = 0; *out && i < m->graph->n_nodes; i++) *out = follow(m->graph->nodes[i], reached);
  // What a loop or a branch does with them is not looked into.
  for (size_t g = 0; *out && g < m->n_graphs; g++)
    for (size_t i = 0; m->graphs[g] != m->graph && i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      for (size_t k = 0; k < n->n_inputs; k++)
        *out &= !n->inputs[k] || !reached[n->inputs[k]->id] || is_float(n->inputs[k]);
    }
  assay_free(reached);
  return NULL;
}
