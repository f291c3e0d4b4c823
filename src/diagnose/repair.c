// Repairs: changes of one node that might undo what an exporter did wrong, and trying them out.
#include "diagnose/repair.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/repair_chain.h"
#include "eval/evaluator.h"
#include "onnx/onnx.h"

void assay_repair_deinit(assay_repair_t* r) {
  for (size_t i = 0; i < r->n_edits; i++) assay_tensor_release(r->edits[i].tensor);
  r->n_edits = 0;
}

assay_status_t assay_repair_copy(const assay_repair_t* r, assay_repair_t* out) {
  *out = *r;
  for (size_t i = 0; i < r->n_edits; i++) assay_tensor_retain(out->edits[i].tensor);
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
  if (e->kind == ASSAY_EDIT_CHAIN)
    snprintf(r->text, sizeof r->text, "%s times %.7g",
             e->at_input ? "an input" : "what comes out of it", value);
  else
    snprintf(r->text, sizeof r->text, "input %zu '%s' times %.7g", e->input,
             r->node->inputs[e->input]->name, value);
  return NULL;
}

// ---- trying ------------------------------------------------------------------------------------

// A node with edits made, and its inputs.
typedef struct edited {
  assay_evaluator_t* evaluator;
  assay_node_t node;
  assay_attr_t* attrs;
  assay_value_t** inputs;  // of the node
  assay_tensor_t** in;     // retained
  size_t n_in, capacity;
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
  if (a.type == ASSAY_ATTR_STRINGS) a.u.strings = edit->functions;
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

// Input `input` reads another value; the list of inputs grows up to there.
static assay_status_t read_other(edited_t* e, const assay_repair_edit_t* edit) {
  assay_tensor_t* t = assay_evaluator_get(e->evaluator, edit->value);
  if (!t || edit->input >= e->capacity)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' has no value, or there is no such input",
                       edit->value->name);
  if (edit->input >= e->n_in) e->node.n_inputs = e->n_in = edit->input + 1;
  assay_tensor_release(e->in[edit->input]);
  e->in[edit->input] = assay_tensor_retain(t);
  e->inputs[edit->input] = (assay_value_t*)edit->value;
  return NULL;
}

static assay_status_t chain_before(edited_t* e, const assay_repair_edit_t* edit) {
  assay_tensor_t* t = NULL;
  if (!edit->at_input) return NULL;
  ASSAY_TRY(
      assay_chain_evaluate(e->evaluator, &e->node, edit, e->n_in, e->in, e->in[edit->input], &t));
  assay_tensor_release(e->in[edit->input]);
  e->in[edit->input] = t;
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
    case ASSAY_EDIT_EXCHANGE:
    case ASSAY_EDIT_CROSS:
      return NULL;
    case ASSAY_EDIT_INPUT:
      return read_other(e, edit);
    case ASSAY_EDIT_CHAIN:
      return chain_before(e, edit);
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

static assay_status_t edited_init(assay_evaluator_t* m, const assay_repair_t* r, size_t n_in,
                                  assay_tensor_t* const* in, edited_t* e) {
  *e = (edited_t){.evaluator = m, .node = *r->node, .n_in = n_in, .bypass = -1};
  e->capacity = n_in;
  for (size_t i = 0; i < r->n_edits; i++)
    if (r->edits[i].kind == ASSAY_EDIT_INPUT && r->edits[i].input >= e->capacity)
      e->capacity = r->edits[i].input + 1;
  ASSAY_TRY(assay_new_array(e->capacity, sizeof *e->in, &e->in));
  ASSAY_TRY(assay_new_array(e->capacity, sizeof *e->inputs, &e->inputs));
  ASSAY_TRY(assay_new_array(r->node->n_attrs + r->n_edits, sizeof *e->attrs, &e->attrs));
  for (size_t i = 0; i < n_in; i++) {
    e->in[i] = assay_tensor_retain(in[i]);
    e->inputs[i] = r->node->inputs[i];
  }
  if (r->node->n_attrs) memcpy(e->attrs, r->node->attrs, r->node->n_attrs * sizeof *e->attrs);
  e->node.attrs = e->attrs;
  e->node.inputs = e->inputs;
  for (size_t i = 0; i < r->n_edits; i++) ASSAY_TRY(make_edit(e, &r->edits[i]));
  return NULL;
}

static bool is_chain_after(const assay_repair_edit_t* edit) {
  return edit->kind == ASSAY_EDIT_CHAIN && !edit->at_input;
}

// Puts output 0 through the chains that follow it.
static assay_status_t chains_after(assay_evaluator_t* m, const assay_repair_t* r, size_t n_in,
                                   assay_tensor_t* const* in, assay_tensor_t** out) {
  for (size_t i = 0; i < r->n_edits; i++) {
    const assay_repair_edit_t* edit = &r->edits[i];
    assay_tensor_t* t = NULL;
    if (!is_chain_after(edit)) continue;
    ASSAY_TRY(assay_chain_evaluate(m, r->node, edit, n_in, in, out[0], &t));
    assay_tensor_release(out[0]);
    out[0] = t;
  }
  return NULL;
}

static void release_outputs(size_t n, assay_tensor_t** out) {
  for (size_t i = 0; i < n; i++) {
    assay_tensor_release(out[i]);
    out[i] = NULL;
  }
}

assay_status_t assay_repair_evaluate(assay_evaluator_t* m, const assay_repair_t* r, size_t n_in,
                                     assay_tensor_t* const* in, size_t n_out,
                                     assay_tensor_t** out) {
  edited_t e;
  for (size_t i = 0; i < n_out; i++) out[i] = NULL;
  assay_status_t st = edited_init(m, r, n_in, in, &e);
  if (!st && !takes_types(&e))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "node '%s' (%s) does not take inputs of these types",
                     e.node.label, e.node.op_type);
  if (!st && e.value)
    out[0] = assay_tensor_retain(e.value);
  else if (!st && e.bypass >= 0)
    out[0] = assay_tensor_retain(e.in[e.bypass]);
  else if (!st)
    st = assay_evaluator_node(m, &e.node, e.n_in, e.in, n_out, out);
  if (!st) st = chains_after(m, r, e.n_in, e.in, out);
  if (st) release_outputs(n_out, out);
  edited_deinit(&e);
  return st;
}

bool assay_repair_only_follows(const assay_repair_t* r) {
  bool only = r->n_edits > 0;
  for (size_t i = 0; i < r->n_edits; i++) only = only && is_chain_after(&r->edits[i]);
  return only;
}

assay_status_t assay_repair_follow(assay_evaluator_t* m, const assay_repair_t* r, size_t n_in,
                                   assay_tensor_t* const* in, size_t n_out,
                                   assay_tensor_t* const* was, assay_tensor_t** out) {
  for (size_t i = 0; i < n_out; i++) out[i] = assay_tensor_retain(was[i]);
  assay_status_t st = chains_after(m, r, n_in, in, out);
  if (st) release_outputs(n_out, out);
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
    } else if (a->type == ASSAY_ATTR_STRINGS) {
      assay_string_t* texts = NULL;
      ASSAY_TRY(assay_arena_new(m->arena, a->n, sizeof *texts, &texts));
      memcpy(texts, edit->functions, a->n * sizeof *texts);
      a->u.strings = texts;
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

// Input `input` becomes another value; those before it that are not there are left out.
static assay_status_t set_input(assay_graph_t* g, assay_node_t* n,
                                const assay_repair_edit_t* edit) {
  assay_value_t* v = assay_graph_find(g, edit->value->name);
  if (!v)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no value '%s' in its top graph",
                       edit->value->name);
  if (edit->input >= n->n_inputs) {
    assay_value_t** inputs = NULL;
    ASSAY_TRY(assay_arena_new(g->model->arena, edit->input + 1, sizeof *inputs, &inputs));
    if (n->n_inputs) memcpy(inputs, n->inputs, n->n_inputs * sizeof *inputs);
    n->inputs = inputs;
    n->n_inputs = edit->input + 1;
  }
  n->inputs[edit->input] = v;
  return NULL;
}

static assay_status_t apply_edit(assay_graph_t* g, assay_node_t* n,
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
    case ASSAY_EDIT_CROSS:
      return exchange(g, edit);
    case ASSAY_EDIT_INPUT:
      return set_input(g, n, edit);
    case ASSAY_EDIT_CHAIN:
      return assay_chain_apply(g, n, edit);
  }
  return NULL;
}

assay_status_t assay_repair_apply(const assay_repair_t* r, assay_model_t* model) {
  assay_node_t* n = node_of_label(model->graph, r->node->label);
  if (!n)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no node '%s' in its top graph",
                       r->node->label);
  for (size_t i = 0; i < r->n_edits; i++)
    if (!is_chain_after(&r->edits[i])) ASSAY_TRY(apply_edit(model->graph, n, &r->edits[i]));
  // Each chain is put directly after the node: the last one first.
  for (size_t i = r->n_edits; i-- > 0;)
    if (is_chain_after(&r->edits[i])) ASSAY_TRY(apply_edit(model->graph, n, &r->edits[i]));
  // What a node reads now may be made after it in the file.
  return assay_onnx_sort(model);
}
