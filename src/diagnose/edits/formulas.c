// Edits that put nodes before an input or after an output.
#include "diagnose/edits/row.h"

// A formula's result, from its own source or from what it takes the place of.
static assay_status_t replace(const assay_tried_node_t* t, const assay_formula_t* f,
                              assay_tensor_t** at) {
  const assay_value_t* source = assay_formula_source(f);
  assay_tensor_t* x = source ? assay_evaluator_get(t->m, source) : *at;
  assay_tensor_t* made = NULL;
  if (!x) return ASSAY_ERROR(ASSAY_NOT_FOUND, "a formula has nothing to begin with");
  ASSAY_TRY(assay_formula_evaluate(f, t->m, &t->node, x, &made));
  assay_tensor_release(*at);
  *at = made;
  return NULL;
}

static assay_status_t try_before(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  return replace(t, e->formula, &t->in[e->input]);
}

static assay_status_t try_after(assay_tried_node_t* t, const assay_repair_edit_t* e,
                                assay_tensor_t** out) {
  return replace(t, e->formula, &out[e->input]);
}

static assay_type_t type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v && v->type ? v->type : v ? v->declared : NULL;
  return t ? t->elem : ASSAY_TYPE_FLOAT;
}

static assay_status_t put_before(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                 const assay_repair_edit_t* e) {
  const assay_value_t* source = assay_formula_source(e->formula);
  const assay_value_t* old = e->input < was->n_inputs ? was->inputs[e->input] : NULL;
  size_t at = assay_repair_position(g, n);
  ASSAY_TRY(assay_repair_grow_inputs(n, e->input));
  assay_value_t* in = n->inputs[e->input] ? n->inputs[e->input] : n->outputs[0];
  return assay_formula_insert(e->formula, g, type_of(source ? source : old), in, NULL, &at,
                              &n->inputs[e->input]);
}

static assay_status_t put_after(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                const assay_repair_edit_t* e) {
  const assay_value_t* source = assay_formula_source(e->formula);
  assay_value_t *result = n->outputs[e->input], *made = NULL;
  size_t at = assay_repair_position(g, n) + 1;
  ASSAY_TRY(assay_graph_new_value(g, result->name, &made));
  assay_node_set_output(n, e->input, made);
  return assay_formula_insert(e->formula, g, type_of(source ? source : was->outputs[e->input]),
                              made, result, &at, &result);
}

const assay_edit_row_t assay_edit_row_before = {
    .before = try_before, .put = put_before, .adds_input = true};
const assay_edit_row_t assay_edit_row_after = {.after = try_after, .put = put_after};
