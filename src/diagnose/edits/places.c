// Edits that exchange: inputs, outputs, constants of the whole model.
#include <string.h>

#include "diagnose/edits/row.h"

static void exchange(assay_tensor_t** t, size_t a, size_t b) {
  assay_tensor_t* was = t[a];
  t[a] = t[b];
  t[b] = was;
}

static assay_status_t try_swap(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  exchange(t->in, e->input, e->other);
  return NULL;
}

static assay_status_t put_swap(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                               const assay_repair_edit_t* e) {
  (void)g, (void)was;
  assay_value_t* v = n->inputs[e->input];
  n->inputs[e->input] = n->inputs[e->other];
  n->inputs[e->other] = v;
  return NULL;
}

// All outputs in the order `numbers`, of which there are `rank`; none: two of them exchanged.
static assay_status_t try_outputs(assay_tried_node_t* t, const assay_repair_edit_t* e,
                                  assay_tensor_t** out) {
  assay_tensor_t* was[ASSAY_EDIT_NUMBERS];
  if (!e->rank) return exchange(out, e->input, e->other), NULL;
  if ((size_t)e->rank != t->node.n_outputs)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the node does not have %d outputs", e->rank);
  memcpy(was, out, (size_t)e->rank * sizeof(assay_tensor_t*));
  for (int i = 0; i < e->rank; i++) out[i] = was[e->numbers[i]];
  return NULL;
}

static assay_status_t put_outputs(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                  const assay_repair_edit_t* e) {
  assay_value_t* values[ASSAY_EDIT_NUMBERS];
  (void)g, (void)was;
  if (e->rank) {
    memcpy(values, n->outputs, (size_t)e->rank * sizeof(assay_value_t*));
    for (int i = 0; i < e->rank; i++) assay_node_set_output(n, (size_t)e->numbers[i], values[i]);
    return NULL;
  }
  assay_value_t *a = n->outputs[e->input], *b = n->outputs[e->other];
  assay_node_set_output(n, e->input, b);
  assay_node_set_output(n, e->other, a);
  return NULL;
}

static assay_status_t put_exchange(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                   const assay_repair_edit_t* e) {
  assay_value_t* a = assay_graph_find(g, e->value->name);
  assay_value_t* b = assay_graph_find(g, e->other_value->name);
  (void)n, (void)was;
  if (!a || !b)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no values '%s' and '%s'", e->value->name,
                       e->other_value->name);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++) {
      assay_value_t** v = &g->nodes[i]->inputs[k];
      *v = *v == a ? b : *v == b ? a : *v;
    }
  return NULL;
}

const assay_edit_row_t assay_edit_row_swap = {.before = try_swap, .put = put_swap};
const assay_edit_row_t assay_edit_row_outputs = {.after = try_outputs, .put = put_outputs};
// No matter of one node: whoever tries it gives inputs as they would be (search_trial.c).
const assay_edit_row_t assay_edit_row_exchange = {.put = put_exchange};
const assay_edit_row_t assay_edit_row_cross = {.put = put_exchange};
