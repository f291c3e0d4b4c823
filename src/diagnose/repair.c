// Repairs: changes of one node that might undo what an exporter did wrong, and trying them out.
#include "diagnose/repair.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
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

// ---- fitted values -----------------------------------------------------------------------------

// A constant's elements times a factor.
static assay_status_t scaled(const assay_tensor_t* t, double factor, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_copy(t, out));
  for (int64_t i = 0; i < t->size; i++) assay_f64(*out)[i] *= factor;
  return NULL;
}

assay_status_t assay_repair_set_value(assay_repair_t* r, double value) {
  assay_repair_edit_t* e = &r->edits[0];
  if (e->kind == ASSAY_EDIT_ATTR) {
    e->attr.u.f = (float)value;
    r->value = (double)e->attr.u.f;
    snprintf(r->text, sizeof r->text, "%s = %.7g instead of %.7g", e->attr.name, r->value,
             r->start);
    return NULL;
  }
  // A constant: multiplied by value / the value before.
  assay_tensor_t* t = NULL;
  if (r->value == 0 || !isfinite(value / r->value))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a factor of 0 cannot be fitted");
  ASSAY_TRY(scaled(e->tensor, value / r->value, &t));
  assay_tensor_release(e->tensor);
  e->tensor = t;
  r->value = value;
  snprintf(r->text, sizeof r->text, "input %zu '%s' times %.7g", e->input,
           r->node->inputs[e->input]->name, value);
  return NULL;
}

// ---- trying ------------------------------------------------------------------------------------

// A node with edits made, and its inputs.
typedef struct edited {
  assay_node_t node;
  assay_attr_t* attrs;
  assay_value_t** inputs;
  assay_tensor_t** in;  // retained
  size_t n_in;
  assay_evaluator_t* m;
  ptrdiff_t bypass;       // input that output 0 is; -1: none
  assay_tensor_t* value;  // that output 0 is, borrowed; NULL: none
} edited_t;

static void edited_deinit(edited_t* e) {
  for (size_t i = 0; e->in && i < e->n_in; i++) assay_tensor_release(e->in[i]);
  assay_free(e->in);
  assay_free(e->inputs);
  assay_free(e->attrs);
}

static void drop_attr(edited_t* e, const char* name) {
  size_t n = 0;
  for (size_t i = 0; i < e->node.n_attrs; i++)
    if (strcmp(e->attrs[i].name, name) != 0) e->attrs[n++] = e->attrs[i];
  e->node.n_attrs = n;
}

static assay_attr_t attr_of(const assay_repair_edit_t* edit) {
  assay_attr_t a = edit->attr;
  if (a.type == ASSAY_ATTR_INTS) a.u.ints = edit->numbers;
  return a;
}

static assay_status_t reshape(edited_t* e, const assay_repair_edit_t* edit) {
  assay_tensor_t *wide = NULL, *view = NULL;
  if (!e->in[edit->input]) return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no such input");
  ASSAY_TRY(assay_tensor_widen(e->in[edit->input], &wide));
  assay_status_t st = assay_tensor_view(wide, edit->rank, edit->dims, &view);
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(e->in[edit->input]);
  e->in[edit->input] = view;
  return NULL;
}

static assay_status_t other_operator(edited_t* e, const char* op_type) {
  const assay_model_t* m = e->node.graph->model;
  const int64_t version = assay_model_opset(m, e->node.domain);
  e->node.op_type = op_type;
  e->node.op = assay_op_find(e->node.domain, op_type, version);
  e->node.schema = assay_schema_find(e->node.domain, op_type, version, NULL);
  if (!e->node.op || !e->node.schema)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no operator %s", op_type);
  return NULL;
}

// A formula's result, from its own source or from what it takes the place of.
static assay_status_t formula_of(edited_t* e, const assay_formula_t* f, assay_tensor_t** t) {
  const assay_value_t* source = assay_formula_source(f);
  assay_tensor_t* x = source ? assay_evaluator_get(e->m, source) : *t;
  assay_tensor_t* made = NULL;
  if (!x) return ASSAY_ERROR(ASSAY_NOT_FOUND, "a formula has nothing to begin with");
  ASSAY_TRY(assay_formula_evaluate(f, e->m, &e->node, x, &made));
  assay_tensor_release(*t);
  *t = made;
  return NULL;
}

static assay_status_t make_edit(edited_t* e, const assay_repair_edit_t* edit) {
  switch (edit->kind) {
    case ASSAY_EDIT_ATTR:
      drop_attr(e, edit->attr.name);
      e->attrs[e->node.n_attrs++] = attr_of(edit);
      return NULL;
    case ASSAY_EDIT_DROP:
      drop_attr(e, edit->attr.name);
      return NULL;
    case ASSAY_EDIT_SWAP: {
      assay_tensor_t* t = e->in[edit->input];
      e->in[edit->input] = e->in[edit->other];
      e->in[edit->other] = t;
      return NULL;
    }
    case ASSAY_EDIT_CONSTANT:
      assay_tensor_release(e->in[edit->input]);
      e->in[edit->input] = assay_tensor_retain(edit->tensor);
      return NULL;
    case ASSAY_EDIT_RESHAPE:
      return reshape(e, edit);
    case ASSAY_EDIT_OPERATOR:
      return other_operator(e, edit->op_type);
    case ASSAY_EDIT_BYPASS:
      e->bypass = (ptrdiff_t)edit->input;
      return NULL;
    case ASSAY_EDIT_VALUE:
      e->value = edit->tensor;
      return NULL;
    case ASSAY_EDIT_INPUT:
      return formula_of(e, edit->formula, &e->in[edit->input]);
    case ASSAY_EDIT_OUTPUT:  // once the node has run
    case ASSAY_EDIT_OUTPUTS:
    case ASSAY_EDIT_EXCHANGE:
      return NULL;
  }
  return NULL;
}

// Whether the operator takes inputs of these types: another operator, or inputs that have changed
// places, may not, and evaluation relies on it. Inputs of one type variable are of one type.
static bool takes_types(const edited_t* e) {
  const assay_schema_t* schema = e->node.schema;
  for (size_t i = 0; schema && i < e->n_in; i++) {
    const assay_param_t* p = e->in[i] ? assay_schema_input(schema, i) : NULL;
    if (!p || e->in[i]->kind != ASSAY_KIND_TENSOR) continue;
    const assay_valtype_t type = {.kind = ASSAY_KIND_TENSOR, .elem = e->in[i]->type};
    if (!assay_typeset_has(&p->types, &type)) return false;
    for (size_t k = 0; k < i && *p->type; k++) {
      const assay_param_t* q = e->in[k] ? assay_schema_input(schema, k) : NULL;
      const bool alike = q && (q == p ? p->is_homogeneous : strcmp(q->type, p->type) == 0);
      if (alike && e->in[k]->type != e->in[i]->type) return false;
    }
  }
  return true;
}

static assay_status_t change_output(edited_t* e, const assay_repair_edit_t* edit,
                                    assay_tensor_t** out) {
  if (edit->kind == ASSAY_EDIT_OUTPUT) return formula_of(e, edit->formula, &out[edit->input]);
  if (edit->kind != ASSAY_EDIT_OUTPUTS) return NULL;
  assay_tensor_t* t = out[edit->input];
  out[edit->input] = out[edit->other];
  out[edit->other] = t;
  return NULL;
}

assay_status_t assay_repair_evaluate(assay_evaluator_t* m, const assay_repair_t* r, size_t n_in,
                                     assay_tensor_t* const* in, size_t n_out,
                                     assay_tensor_t** out) {
  edited_t e = {.node = *r->node, .n_in = n_in, .m = m, .bypass = -1};
  for (size_t i = 0; i < r->n_edits; i++)
    if (r->edits[i].kind == ASSAY_EDIT_INPUT && r->edits[i].input >= e.n_in)
      e.n_in = r->edits[i].input + 1;
  assay_status_t st = assay_new_array(e.n_in, sizeof *e.in, &e.in);
  if (!st) st = assay_new_array(e.n_in, sizeof *e.inputs, &e.inputs);
  if (!st) st = assay_new_array(r->node->n_attrs + r->n_edits, sizeof *e.attrs, &e.attrs);
  for (size_t i = 0; !st && i < n_in; i++) e.in[i] = assay_tensor_retain(in[i]);
  if (!st && r->node->n_attrs) memcpy(e.attrs, r->node->attrs, r->node->n_attrs * sizeof *e.attrs);
  for (size_t i = 0; !st && i < n_in && i < r->node->n_inputs; i++)
    e.inputs[i] = r->node->inputs[i];
  e.node.inputs = e.inputs;
  e.node.n_inputs = e.n_in;
  e.node.attrs = e.attrs;
  for (size_t i = 0; !st && i < r->n_edits; i++) st = make_edit(&e, &r->edits[i]);
  for (size_t i = 0; i < n_out; i++) out[i] = NULL;
  if (!st && !takes_types(&e))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "node '%s' (%s) does not take inputs of these types",
                     e.node.label, e.node.op_type);
  if (!st && e.value)
    out[0] = assay_tensor_retain(e.value);
  else if (!st && e.bypass >= 0)
    out[0] = assay_tensor_retain(e.in[e.bypass]);
  else if (!st)
    st = assay_evaluator_node(m, &e.node, e.n_in, e.in, n_out, out);
  for (size_t i = 0; !st && i < r->n_edits; i++) st = change_output(&e, &r->edits[i], out);
  for (size_t i = 0; st && i < n_out; i++) assay_tensor_release(out[i]), out[i] = NULL;
  edited_deinit(&e);
  return st;
}

// ---- making it in a model ----------------------------------------------------------------------

static assay_node_t* node_of_label(const assay_graph_t* g, const char* label) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (strcmp(g->nodes[i]->label, label) == 0) return g->nodes[i];
  return NULL;
}

static size_t position_of(const assay_graph_t* g, const assay_node_t* n) {
  size_t i = 0;
  while (i < g->n_nodes && g->nodes[i] != n) i++;
  return i;
}

static assay_status_t set_attr(assay_model_t* m, assay_node_t* n, const assay_repair_edit_t* edit) {
  assay_attr_t* attrs = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, n->n_attrs + 1, sizeof *attrs, &attrs));
  size_t k = 0;
  for (size_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, edit->attr.name) != 0) attrs[k++] = n->attrs[i];
  if (edit->kind == ASSAY_EDIT_ATTR) {
    assay_attr_t* a = &attrs[k++];
    *a = edit->attr;
    ASSAY_TRY(assay_arena_printf(m->arena, &a->name, "%s", edit->attr.name));
    if (a->type == ASSAY_ATTR_INTS) {
      int64_t* numbers = NULL;
      ASSAY_TRY(assay_arena_new(m->arena, a->n, sizeof *numbers, &numbers));
      memcpy(numbers, edit->numbers, a->n * sizeof *numbers);
      a->u.ints = numbers;
    } else if (a->type == ASSAY_ATTR_STRING) {
      ASSAY_TRY(assay_arena_printf(m->arena, &a->u.s.text, "%.*s", (int)edit->attr.u.s.len,
                                   edit->attr.u.s.text));
    }
  }
  n->attrs = attrs;
  n->n_attrs = k;
  return NULL;
}

static assay_status_t new_constant(assay_graph_t* g, const char* hint, assay_tensor_t* t,
                                   assay_value_t** out) {
  assay_tensor_t* packed = NULL;
  const char* name = NULL;
  ASSAY_TRY(assay_arena_printf(g->model->arena, &name, "%s_repaired", hint));
  ASSAY_TRY(assay_graph_new_value(g, name, out));
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  return assay_graph_set_initializer(*out, packed);
}

// A Reshape in front of an input.
static assay_status_t insert_reshape(assay_graph_t* g, assay_node_t* n,
                                     const assay_repair_edit_t* edit) {
  assay_tensor_t* dims = NULL;
  assay_value_t *shape = NULL, *to = NULL;
  assay_node_t* r = NULL;
  const char* name = NULL;
  assay_value_t* from = n->inputs[edit->input];
  ASSAY_TRY(assay_tensor_vector_i64(ASSAY_TYPE_INT64, edit->rank, edit->dims, &dims));
  assay_status_t st = new_constant(g, n->label, dims, &shape);
  assay_tensor_release(dims);
  if (st) return st;
  ASSAY_TRY(assay_arena_printf(g->model->arena, &name, "%s_reshaped", from->name));
  ASSAY_TRY(assay_graph_new_value(g, name, &to));
  ASSAY_TRY(assay_node_create(g, "", "Reshape", to->name, 2, 1, 0, &r));
  r->inputs[0] = from;
  r->inputs[1] = shape;
  assay_node_set_output(r, 0, to);
  ASSAY_TRY(assay_graph_insert(g, r, position_of(g, n)));
  n->inputs[edit->input] = to;
  return NULL;
}

// A Constant node's only attribute becomes the tensor.
static assay_status_t set_value(assay_model_t* m, assay_node_t* n, assay_tensor_t* t) {
  assay_tensor_t* packed = NULL;
  assay_attr_t* a = NULL;
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  ASSAY_TRY(assay_model_take_tensor(m, packed));
  ASSAY_TRY(assay_arena_new(m->arena, 1, sizeof *a, &a));
  *a = (assay_attr_t){
      .name = "value", .doc = "", .ref = "", .type = ASSAY_ATTR_TENSOR, .n = 1, .u.t = packed};
  n->attrs = a;
  n->n_attrs = 1;
  return NULL;
}

static assay_status_t exchange(assay_graph_t* g, const assay_repair_edit_t* edit) {
  assay_value_t* a = assay_graph_find(g, edit->value->name);
  assay_value_t* b = assay_graph_find(g, edit->other_value->name);
  if (!a || !b)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no constants '%s' and '%s'",
                       edit->value->name, edit->other_value->name);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++) {
      assay_value_t** v = &g->nodes[i]->inputs[k];
      *v = *v == a ? b : *v == b ? a : *v;
    }
  return NULL;
}

// Room for an input that was left out.
static assay_status_t grow_inputs(assay_node_t* n, size_t input) {
  if (input < n->n_inputs) return NULL;
  assay_value_t** inputs = NULL;
  ASSAY_TRY(assay_arena_new(n->graph->model->arena, input + 1, sizeof(assay_value_t*), &inputs));
  for (size_t i = 0; i <= input; i++) inputs[i] = i < n->n_inputs ? n->inputs[i] : NULL;
  n->inputs = inputs;
  n->n_inputs = input + 1;
  return NULL;
}

static assay_type_t type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v && v->type ? v->type : v ? v->declared : NULL;
  return t ? t->elem : ASSAY_TYPE_FLOAT;
}

// `before`: the node in the model that was checked, whose values have types.
static assay_status_t put_formula(assay_graph_t* g, assay_node_t* n, const assay_node_t* before,
                                  const assay_repair_edit_t* edit) {
  const assay_value_t* source = assay_formula_source(edit->formula);
  size_t at = position_of(g, n);
  if (edit->kind == ASSAY_EDIT_INPUT) {
    ASSAY_TRY(grow_inputs(n, edit->input));
    const assay_value_t* old = edit->input < before->n_inputs ? before->inputs[edit->input] : NULL;
    assay_value_t* in = n->inputs[edit->input] ? n->inputs[edit->input] : n->outputs[0];
    return assay_formula_insert(edit->formula, g, type_of(source ? source : old), in, NULL, &at,
                                &n->inputs[edit->input]);
  }
  assay_value_t *result = n->outputs[edit->input], *made = NULL;
  at++;
  ASSAY_TRY(assay_graph_new_value(g, result->name, &made));
  assay_node_set_output(n, edit->input, made);
  return assay_formula_insert(edit->formula, g,
                              type_of(source ? source : before->outputs[edit->input]), made, result,
                              &at, &result);
}

static assay_status_t apply_edit(assay_graph_t* g, assay_node_t* n, const assay_node_t* before,
                                 const assay_repair_edit_t* edit) {
  switch (edit->kind) {
    case ASSAY_EDIT_ATTR:
    case ASSAY_EDIT_DROP:
      return set_attr(g->model, n, edit);
    case ASSAY_EDIT_SWAP: {
      assay_value_t* v = n->inputs[edit->input];
      n->inputs[edit->input] = n->inputs[edit->other];
      n->inputs[edit->other] = v;
      return NULL;
    }
    case ASSAY_EDIT_CONSTANT: {
      assay_value_t* v = NULL;
      const assay_value_t* old = n->inputs[edit->input];
      ASSAY_TRY(new_constant(g, old ? old->name : n->label, edit->tensor, &v));
      n->inputs[edit->input] = v;
      return NULL;
    }
    case ASSAY_EDIT_RESHAPE:
      return insert_reshape(g, n, edit);
    case ASSAY_EDIT_OPERATOR:
      return assay_arena_printf(g->model->arena, &n->op_type, "%s", edit->op_type);
    case ASSAY_EDIT_BYPASS:
      n->op_type = "Identity";
      n->inputs[0] = n->inputs[edit->input];
      n->n_inputs = 1;
      n->n_attrs = 0;
      return NULL;
    case ASSAY_EDIT_VALUE:
      return set_value(g->model, n, edit->tensor);
    case ASSAY_EDIT_EXCHANGE:
      return exchange(g, edit);
    case ASSAY_EDIT_OUTPUTS: {
      assay_value_t *a = n->outputs[edit->input], *b = n->outputs[edit->other];
      assay_node_set_output(n, edit->input, b);
      assay_node_set_output(n, edit->other, a);
      return NULL;
    }
    case ASSAY_EDIT_INPUT:
    case ASSAY_EDIT_OUTPUT:
      return put_formula(g, n, before, edit);
  }
  return NULL;
}

assay_status_t assay_repair_apply(const assay_repair_t* r, assay_model_t* model) {
  assay_node_t* n = node_of_label(model->graph, r->node->label);
  if (!n)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no node '%s' in its top graph",
                       r->node->label);
  for (size_t i = 0; i < r->n_edits; i++)
    ASSAY_TRY(apply_edit(model->graph, n, r->node, &r->edits[i]));
  return NULL;
}
