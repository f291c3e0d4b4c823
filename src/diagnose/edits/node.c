// Edits of what a node is: its attributes, its operator, or that it is there at all.
#include <stdio.h>
#include <string.h>

#include "diagnose/edits/row.h"

// ---- attributes --------------------------------------------------------------------------------

static assay_status_t try_drop(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  size_t n = 0;
  for (size_t i = 0; i < t->node.n_attrs; i++)
    if (strcmp(t->attrs[i].name, e->attr.name) != 0) t->attrs[n++] = t->attrs[i];
  t->node.n_attrs = n;
  return NULL;
}

static assay_status_t try_attr(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  ASSAY_TRY(try_drop(t, e));
  assay_attr_t* a = &t->attrs[t->node.n_attrs++];
  *a = e->attr;
  if (a->type == ASSAY_ATTR_INTS) a->u.ints = e->numbers;
  if (a->type == ASSAY_ATTR_FLOATS) a->u.floats = e->floats;
  if (a->type == ASSAY_ATTR_STRINGS) a->u.strings = e->functions;
  return NULL;
}

static assay_status_t copy_attr(assay_arena_t* arena, const assay_repair_edit_t* e,
                                assay_attr_t* a) {
  *a = e->attr;
  ASSAY_TRY(assay_arena_printf(arena, &a->name, "%s", e->attr.name));
  if (a->type == ASSAY_ATTR_INTS) {
    int64_t* numbers = NULL;
    ASSAY_TRY(assay_arena_new(arena, a->n, sizeof *numbers, &numbers));
    memcpy(numbers, e->numbers, a->n * sizeof *numbers);
    a->u.ints = numbers;
  } else if (a->type == ASSAY_ATTR_FLOATS) {
    float* numbers = NULL;
    ASSAY_TRY(assay_arena_new(arena, a->n, sizeof *numbers, &numbers));
    memcpy(numbers, e->floats, a->n * sizeof *numbers);
    a->u.floats = numbers;
  } else if (a->type == ASSAY_ATTR_STRINGS) {
    assay_string_t* texts = NULL;
    ASSAY_TRY(assay_arena_new(arena, a->n, sizeof *texts, &texts));
    memcpy(texts, e->functions, a->n * sizeof *texts);
    a->u.strings = texts;
  } else if (a->type == ASSAY_ATTR_STRING) {
    return assay_arena_printf(arena, &a->u.s.text, "%.*s", (int)e->attr.u.s.len, e->attr.u.s.text);
  }
  return NULL;
}

// set: the attribute comes anew, after the others.
static assay_status_t put(assay_node_t* n, const assay_repair_edit_t* e, bool set) {
  assay_arena_t* arena = n->graph->model->arena;
  assay_attr_t* attrs = NULL;
  size_t k = 0;
  ASSAY_TRY(assay_arena_new(arena, n->n_attrs + 1, sizeof *attrs, &attrs));
  for (size_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, e->attr.name) != 0) attrs[k++] = n->attrs[i];
  if (set) ASSAY_TRY(copy_attr(arena, e, &attrs[k++]));
  n->attrs = attrs;
  n->n_attrs = k;
  return NULL;
}

static assay_status_t put_attr(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                               const assay_repair_edit_t* e) {
  (void)g, (void)was;
  return put(n, e, true);
}

static assay_status_t put_drop(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                               const assay_repair_edit_t* e) {
  (void)g, (void)was;
  return put(n, e, false);
}

// Of a list all that are what the number is now.
static assay_status_t fit_list(assay_repair_t* r, double value) {
  const assay_attr_t* a = &r->edits[0].attr;
  float* list = r->edits[0].floats;
  const float now = (float)r->value;
  for (size_t i = 0; i < a->n; i++)
    if (list[i] == now) list[i] = (float)value;
  r->value = (double)(float)value;
  snprintf(r->text, sizeof r->text, "%s with %.7g in place of %.7g", a->name, r->value, r->start);
  return NULL;
}

static assay_status_t fit_attr(assay_repair_t* r, double value) {
  assay_attr_t* a = &r->edits[0].attr;
  if (a->type == ASSAY_ATTR_FLOATS) return fit_list(r, value);
  a->u.f = (float)value;
  r->value = (double)a->u.f;
  snprintf(r->text, sizeof r->text, "%s = %.7g instead of %.7g", a->name, r->value, r->start);
  return NULL;
}

const assay_edit_row_t assay_edit_row_attr = {.before = try_attr, .put = put_attr, .fit = fit_attr};
const assay_edit_row_t assay_edit_row_drop = {.before = try_drop, .put = put_drop};

// ---- the operator ------------------------------------------------------------------------------

static assay_status_t try_operator(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  assay_node_t* n = &t->node;
  const int64_t version = assay_model_opset(n->graph->model, n->domain);
  n->op_type = e->op_type;
  n->op = assay_op_find(n->domain, e->op_type, version);
  n->schema = assay_schema_find(n->domain, e->op_type, version, NULL);
  if (!n->op || !n->schema)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no operator %s", e->op_type);
  return NULL;
}

static assay_status_t put_operator(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                   const assay_repair_edit_t* e) {
  (void)was;
  return assay_arena_printf(g->model->arena, &n->op_type, "%s", e->op_type);
}

const assay_edit_row_t assay_edit_row_operator = {.before = try_operator, .put = put_operator};

// ---- left out ----------------------------------------------------------------------------------

static void replace(assay_tried_node_t* t, assay_tensor_t* by) {
  assay_tensor_release(t->instead);
  t->instead = assay_tensor_retain(by);
}

static assay_status_t try_bypass(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  if (!t->in[e->input]) return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no such input");
  replace(t, t->in[e->input]);
  return NULL;
}

static assay_status_t put_bypass(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                 const assay_repair_edit_t* e) {
  (void)g, (void)was;
  n->op_type = "Identity";
  n->inputs[0] = n->inputs[e->input];
  n->n_inputs = 1;
  n->n_attrs = 0;
  return NULL;
}

static assay_status_t try_value(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  replace(t, e->tensor);
  return NULL;
}

// A Constant node's only attribute becomes the tensor.
static assay_status_t put_value(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                const assay_repair_edit_t* e) {
  assay_tensor_t* packed = NULL;
  assay_attr_t* a = NULL;
  (void)was;
  ASSAY_TRY(assay_tensor_pack(e->tensor, &packed));
  ASSAY_TRY(assay_model_take_tensor(g->model, packed));
  ASSAY_TRY(assay_arena_new(g->model->arena, 1, sizeof *a, &a));
  *a = (assay_attr_t){
      .name = "value", .doc = "", .ref = "", .type = ASSAY_ATTR_TENSOR, .n = 1, .u.t = packed};
  n->attrs = a;
  n->n_attrs = 1;
  // Inference reads the content there: shapes may follow from it.
  if (n->n_outputs && n->outputs[0]) n->outputs[0]->constant = packed;
  return NULL;
}

const assay_edit_row_t assay_edit_row_bypass = {.before = try_bypass, .put = put_bypass};
const assay_edit_row_t assay_edit_row_value = {.before = try_value, .put = put_value};
