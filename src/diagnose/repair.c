// Repairs: changes of one node that might undo what an exporter did wrong, and trying them out.
#include "diagnose/repair.h"

#include <string.h>

#include "base/alloc.h"
#include "diagnose/edits/row.h"
#include "diagnose/repair_chain.h"
#include "eval/evaluator.h"
#include "onnx/onnx.h"

void assay_repair_deinit(assay_repair_t* r) {
  for (size_t i = 0; i < r->n_edits; i++) {
    assay_tensor_release(r->edits[i].tensor);
    assay_formula_release(r->edits[i].formula);
  }
  r->n_edits = 0;
}

assay_status_t assay_repair_copy(const assay_repair_t* r, assay_repair_t* out) {
  *out = *r;
  for (size_t i = 0; i < r->n_edits; i++) {
    assay_tensor_retain(out->edits[i].tensor);
    if (out->edits[i].formula) assay_formula_retain(out->edits[i].formula);
  }
  return NULL;
}

assay_status_t assay_repair_set_value(assay_repair_t* r, double value) {
  const assay_edit_row_t* row = assay_edit_row(r->edits[0].kind);
  if (row->fit) return row->fit(r, value);
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' has no number to be fitted", r->cause);
}

// ---- trying ------------------------------------------------------------------------------------

// The type of what an input reads: of quantized numbers, which truth without quantizers knows as
// real ones, the declared one.
static assay_type_t type_of(const assay_tried_node_t* e, size_t i) {
  const assay_type_t type = e->in[i]->type;
  const assay_value_t* v = e->node.inputs[i];
  const bool quantizes = e->node.op && e->node.op->flags & ASSAY_OP_QUANTIZES;
  return quantizes && assay_type_is_float(type) && v && v->type && !v->constant &&
                 assay_type_is_integer(v->type->elem)
             ? v->type->elem
             : type;
}

// Whether the operator takes inputs of these types: another operator, or inputs that have changed
// places, may not, and evaluation relies on it. Inputs of one type variable are of one type.
static bool takes_types(const assay_tried_node_t* e) {
  const assay_schema_t* schema = e->node.schema;
  for (size_t i = 0; schema && i < e->n_in; i++) {
    const assay_param_t* p = e->in[i] ? assay_schema_input(schema, i) : NULL;
    if (!p || e->in[i]->kind != ASSAY_KIND_TENSOR) continue;
    const assay_valtype_t type = {.kind = ASSAY_KIND_TENSOR, .elem = type_of(e, i)};
    if (!assay_typeset_has(&p->types, &type)) return false;
    for (size_t k = 0; k < i && *p->type; k++) {
      const assay_param_t* q = e->in[k] ? assay_schema_input(schema, k) : NULL;
      const bool alike = q && (q == p ? p->is_homogeneous : strcmp(q->type, p->type) == 0);
      if (alike && type_of(e, k) != type_of(e, i)) return false;
    }
  }
  return true;
}

static void tried_deinit(assay_tried_node_t* t) {
  for (size_t i = 0; t->in && i < t->n_in; i++) assay_tensor_release(t->in[i]);
  assay_tensor_release(t->instead);
  assay_free(t->in);
  assay_free(t->node.inputs);
  assay_free(t->attrs);
}

static assay_status_t tried_init(const assay_repair_t* r, size_t n_in, assay_tensor_t* const* in,
                                 assay_tried_node_t* t) {
  const assay_node_t* n = r->node;
  t->n_in = n_in;
  for (size_t i = 0; i < r->n_edits; i++)
    if (assay_edit_row(r->edits[i].kind)->adds_input && r->edits[i].input >= t->n_in)
      t->n_in = r->edits[i].input + 1;
  t->node.inputs = NULL;
  ASSAY_TRY(assay_new_array(t->n_in, sizeof *t->in, &t->in));
  ASSAY_TRY(assay_new_array(t->n_in, sizeof *t->node.inputs, &t->node.inputs));
  ASSAY_TRY(assay_new_array(n->n_attrs + r->n_edits, sizeof *t->attrs, &t->attrs));
  for (size_t i = 0; i < n_in; i++) t->in[i] = assay_tensor_retain(in[i]);
  for (size_t i = 0; i < n_in && i < n->n_inputs; i++) t->node.inputs[i] = n->inputs[i];
  if (n->n_attrs) memcpy(t->attrs, n->attrs, n->n_attrs * sizeof *t->attrs);
  t->node.n_inputs = t->n_in;
  t->node.attrs = t->attrs;
  return NULL;
}

static assay_status_t run_tried(assay_tried_node_t* t, size_t n_out, assay_tensor_t** out) {
  if (!takes_types(t))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "node '%s' (%s) does not take inputs of these types",
                       t->node.label, t->node.op_type);
  if (!t->instead) return assay_evaluator_node(t->m, &t->node, t->n_in, t->in, n_out, out);
  out[0] = assay_tensor_retain(t->instead);
  return NULL;
}

assay_status_t assay_repair_evaluate(assay_evaluator_t* m, const assay_repair_t* r, size_t n_in,
                                     assay_tensor_t* const* in, size_t n_out,
                                     assay_tensor_t** out) {
  assay_tried_node_t t = {.node = *r->node, .m = m};
  for (size_t i = 0; i < n_out; i++) out[i] = NULL;
  assay_status_t st = tried_init(r, n_in, in, &t);
  for (size_t i = 0; !st && i < r->n_edits; i++) {
    const assay_edit_row_t* row = assay_edit_row(r->edits[i].kind);
    if (row->before) st = row->before(&t, &r->edits[i]);
  }
  if (!st) st = run_tried(&t, n_out, out);
  for (size_t i = 0; !st && i < r->n_edits; i++) {
    const assay_edit_row_t* row = assay_edit_row(r->edits[i].kind);
    if (row->after) st = row->after(&t, &r->edits[i], out);
  }
  for (size_t i = 0; st && i < n_out; i++) assay_tensor_release(out[i]), out[i] = NULL;
  tried_deinit(&t);
  return st;
}

bool assay_repair_only_follows(const assay_repair_t* r) {
  bool only = r->n_edits > 0;
  for (size_t i = 0; i < r->n_edits; i++)
    only = only && (r->edits[i].kind == ASSAY_EDIT_AFTER || assay_chain_follows(&r->edits[i]));
  return only;
}

assay_status_t assay_repair_follow(assay_evaluator_t* m, const assay_repair_t* r, size_t n_in,
                                   assay_tensor_t* const* in, size_t n_out,
                                   assay_tensor_t* const* was, assay_tensor_t** out) {
  assay_status_t st = NULL;
  for (size_t i = 0; i < n_out; i++) out[i] = assay_tensor_retain(was[i]);
  for (size_t i = 0; !st && i < r->n_edits; i++) {
    const assay_repair_edit_t* e = &r->edits[i];
    const bool is_formula = e->kind == ASSAY_EDIT_AFTER;
    const assay_value_t* source = is_formula ? assay_formula_source(e->formula) : NULL;
    const size_t at = is_formula ? e->input : 0;
    assay_tensor_t* made = NULL;
    if (is_formula)
      st = assay_formula_evaluate(e->formula, m, r->node,
                                  source ? assay_evaluator_get(m, source) : out[at], &made);
    else
      st = assay_chain_evaluate(m, r->node, e, n_in, in, out[0], &made);
    if (st) break;
    assay_tensor_release(out[at]);
    out[at] = made;
  }
  for (size_t i = 0; st && i < n_out; i++) assay_tensor_release(out[i]), out[i] = NULL;
  return st;
}

// ---- making it in a model ----------------------------------------------------------------------

static assay_node_t* node_of_label(const assay_graph_t* g, const char* label) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (strcmp(g->nodes[i]->label, label) == 0) return g->nodes[i];
  return NULL;
}

static assay_status_t put(assay_model_t* model, assay_node_t* n, const assay_repair_t* r,
                          size_t edit) {
  const assay_edit_row_t* row = assay_edit_row(r->edits[edit].kind);
  return row->put ? row->put(model->graph, n, r->node, &r->edits[edit]) : NULL;
}

// Each chain is put directly after the node: the last one first. Exchanges of what outputs give
// are, as exchanges of their names, made in the reverse order.
static bool is_put_last(const assay_repair_edit_t* e) {
  return assay_chain_follows(e) || e->kind == ASSAY_EDIT_OUTPUTS;
}

assay_status_t assay_repair_apply(const assay_repair_t* r, assay_model_t* model) {
  assay_node_t* n = node_of_label(model->graph, r->node->label);
  if (!n)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no node '%s' in its top graph",
                       r->node->label);
  for (size_t i = 0; i < r->n_edits; i++)
    if (!is_put_last(&r->edits[i])) ASSAY_TRY(put(model, n, r, i));
  for (size_t i = r->n_edits; i-- > 0;)
    if (is_put_last(&r->edits[i])) ASSAY_TRY(put(model, n, r, i));
  // What a node reads now may be made after it in the file.
  return assay_onnx_sort(model);
}
