// Halves of a tensor that are multiplied become one layer (gate.h).
#include "passes/edit.h"
#include "passes/gate.h"

bool assay_split_is_halves(const assay_node_t* split, int* out_rank, int* out_axis) {
  if (!assay_is(split, "Split") || split->n_outputs != 2) return false;
  const assay_value_t *a = split->outputs[0], *b = split->outputs[1];
  const int rank = assay_rank_of(split->inputs[0]);
  int64_t axis = assay_attr_i64(split, "axis", 0);
  if (axis < 0) axis += rank;
  if (!a || !b || axis < 0 || axis >= rank || !assay_same_static_shape(a, b)) return false;
  *out_rank = rank;
  *out_axis = (int)axis;
  return split->n_inputs < 2 || !split->inputs[1] || assay_pass_constant(split->inputs[1]);
}

// From the product back.
static bool read_back(const assay_node_t* product, const assay_node_t** out_split,
                      assay_gate_t* out) {
  if (!assay_is(product, "Mul") || product->n_inputs != 2) return false;
  const assay_value_t *a = product->inputs[0], *b = product->inputs[1];
  const assay_node_t* split = a ? a->producer : NULL;
  if (!split || !b || b->producer != split || a == b ||
      !assay_split_is_halves(split, &out->rank, &out->axis) ||
      !assay_type_is_float(assay_elem_of(a)))
    return false;
  *out_split = split;
  out->x = split->inputs[0];
  out->y = product->outputs[0];
  out->first = a == split->outputs[1];
  out->second = b == split->outputs[1];
  return true;
}

bool assay_gate_read(const assay_node_t* const* nodes, size_t n, assay_gate_t* out) {
  const assay_node_t* split;
  return n == ASSAY_GATE_NODES && read_back(nodes[1], &split, out) && split == nodes[0];
}

// ---- of the graph -------------------------------------------------------------------------------

// Both halves are read by the product alone.
static bool is_apart(const assay_pass_context_t* c, const assay_uses_t* uses,
                     const assay_node_t* split, const assay_node_t* product) {
  bool ok = assay_pass_may_group(c, split) && assay_pass_may_group(c, product);
  for (int i = 0; i < 2; i++) ok = ok && assay_uses_once(uses, split->outputs[i]);
  return ok;
}

static assay_status_t run(assay_pass_context_t* c) {
  const assay_graph_t* graph = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < graph->n_nodes; i++) {
    const assay_node_t* split;
    assay_gate_t gate;
    if (!read_back(graph->nodes[i], &split, &gate) || !is_apart(c, &uses, split, graph->nodes[i]))
      continue;
    assay_node_t* members[ASSAY_GATE_NODES] = {(assay_node_t*)(uintptr_t)split, graph->nodes[i]};
    st = assay_pass_group(c, members, ASSAY_GATE_NODES, "halves of a tensor, multiplied");
  }
  assay_uses_deinit(&uses);
  return st;
}

const assay_pass_t assay_pass_gates = {
    .name = "gates",
    .summary = "halves of a tensor that are multiplied become one layer",
    .run = run,
};
