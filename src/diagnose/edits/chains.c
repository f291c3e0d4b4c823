// Edits that read another value, or go on through new nodes (repair_chain.h).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/edits/row.h"
#include "diagnose/repair_chain.h"

// ---- another value -----------------------------------------------------------------------------

static assay_status_t try_input(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  assay_tensor_t* value = assay_evaluator_get(t->m, e->value);
  if (!value) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' has no value", e->value->name);
  assay_tensor_release(t->in[e->input]);
  t->in[e->input] = assay_tensor_retain(value);
  t->node.inputs[e->input] = (assay_value_t*)e->value;
  return NULL;
}

// Those before it that are not there are left out.
static assay_status_t put_input(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                const assay_repair_edit_t* e) {
  assay_value_t* v = assay_graph_find(g, e->value->name);
  (void)was;
  if (!v)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no value '%s' in its top graph",
                       e->value->name);
  ASSAY_TRY(assay_repair_grow_inputs(n, e->input));
  n->inputs[e->input] = v;
  return NULL;
}

const assay_edit_row_t assay_edit_row_input = {
    .before = try_input, .put = put_input, .adds_input = true};

// ---- chains ------------------------------------------------------------------------------------

static assay_status_t go_on(const assay_tried_node_t* t, const assay_repair_edit_t* e,
                            assay_tensor_t** at) {
  assay_tensor_t* made = NULL;
  ASSAY_TRY(assay_chain_evaluate(t->m, &t->node, e, t->n_in, t->in, *at, &made));
  assay_tensor_release(*at);
  *at = made;
  return NULL;
}

static assay_status_t try_chain(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  return e->at_input ? go_on(t, e, &t->in[e->input]) : NULL;
}

static assay_status_t follow_chain(assay_tried_node_t* t, const assay_repair_edit_t* e,
                                   assay_tensor_t** out) {
  return e->at_input ? NULL : go_on(t, e, &out[0]);
}

static assay_status_t put_chain(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                const assay_repair_edit_t* e) {
  (void)was;
  return assay_chain_apply(g, n, e);
}

static assay_status_t fit_chain(assay_repair_t* r, double value) {
  const assay_repair_edit_t* e = &r->edits[0];
  const assay_value_t* in = e->at_input ? r->node->inputs[e->input] : NULL;
  const char* op = e->chain[e->n_chain - 1].op_type;
  char what[120];
  ASSAY_TRY(assay_repair_scale_tensor(r, value));
  snprintf(what, sizeof what, "%s%.100s%s", in ? "'" : "what comes out of it", in ? in->name : "",
           in ? "'" : "");
  if (e->n_chain > 1)
    snprintf(r->text, sizeof r->text, "%s bounded by tanh: %.7g tanh(x / %.7g)", what, value,
             value);
  else
    snprintf(r->text, sizeof r->text, "%s %s %.7g", what,
             op && strcmp(op, "Add") == 0   ? "plus"
             : op && strcmp(op, "Pow") == 0 ? "to the power of"
                                            : "times",
             value);
  return NULL;
}

const assay_edit_row_t assay_edit_row_chain = {
    .before = try_chain, .after = follow_chain, .put = put_chain, .fit = fit_chain};
