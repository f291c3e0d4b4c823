// Edits of one input: another constant, another shape.
#include <stdio.h>

#include "diagnose/edits/row.h"

// ---- a constant --------------------------------------------------------------------------------

static assay_status_t try_constant(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  assay_tensor_release(t->in[e->input]);
  t->in[e->input] = assay_tensor_retain(e->tensor);
  return NULL;
}

static assay_status_t put_constant(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                   const assay_repair_edit_t* e) {
  assay_value_t* v = NULL;
  (void)was;
  ASSAY_TRY(assay_repair_grow_inputs(n, e->input));
  const assay_value_t* old = n->inputs[e->input];
  ASSAY_TRY(assay_repair_new_constant(g, old ? old->name : n->label, e->tensor, &v));
  n->inputs[e->input] = v;
  return NULL;
}

// The constant that it was times value.
static assay_status_t fit_constant(assay_repair_t* r, double value) {
  const size_t input = r->edits[0].input;
  ASSAY_TRY(assay_repair_scale_tensor(r, value));
  snprintf(r->text, sizeof r->text, "input %zu '%s' times %.7g", input,
           r->node->inputs[input]->name, value);
  return NULL;
}

const assay_edit_row_t assay_edit_row_constant = {
    .before = try_constant, .put = put_constant, .fit = fit_constant, .adds_input = true};

// ---- a shape -----------------------------------------------------------------------------------

// As Reshape has it: 0 is the input's own dimension, -1 what is left.
static assay_status_t resolve(const assay_tensor_t* x, const assay_repair_edit_t* e,
                              int64_t* dims) {
  int64_t known = 1;
  int open = -1;
  for (int k = 0; k < e->rank; k++) {
    dims[k] = e->dims[k] == 0 && k < x->rank ? x->dims[k] : e->dims[k];
    if (dims[k] < 0)
      open = k;
    else
      known *= dims[k];
  }
  if (open >= 0 && (known <= 0 || x->size % known != 0))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%lld elements are not rows of %lld",
                       (long long)x->size, (long long)known);
  if (open >= 0) dims[open] = x->size / known;
  return NULL;
}

static assay_status_t try_reshape(assay_tried_node_t* t, const assay_repair_edit_t* e) {
  assay_tensor_t *wide = NULL, *view = NULL;
  int64_t dims[ASSAY_MAX_RANK];
  if (!t->in[e->input]) return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no such input");
  ASSAY_TRY(resolve(t->in[e->input], e, dims));
  ASSAY_TRY(assay_tensor_widen(t->in[e->input], &wide));
  assay_status_t st = assay_tensor_view(wide, e->rank, dims, &view);
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(t->in[e->input]);
  t->in[e->input] = view;
  return NULL;
}

// A Reshape in front of the input.
static assay_status_t put_reshape(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                                  const assay_repair_edit_t* e) {
  assay_tensor_t* dims = NULL;
  assay_value_t *shape = NULL, *to = NULL;
  assay_node_t* r = NULL;
  const char* name = NULL;
  assay_value_t* from = n->inputs[e->input];
  (void)was;
  ASSAY_TRY(assay_tensor_vector_i64(ASSAY_TYPE_INT64, e->rank, e->dims, &dims));
  assay_status_t st = assay_repair_new_constant(g, n->label, dims, &shape);
  assay_tensor_release(dims);
  if (st) return st;
  ASSAY_TRY(assay_arena_printf(g->model->arena, &name, "%s_reshaped", from->name));
  ASSAY_TRY(assay_graph_new_value(g, name, &to));
  ASSAY_TRY(assay_node_create(g, "", "Reshape", to->name, 2, 1, 0, &r));
  r->inputs[0] = from;
  r->inputs[1] = shape;
  assay_node_set_output(r, 0, to);
  ASSAY_TRY(assay_graph_insert(g, r, assay_repair_position(g, n)));
  n->inputs[e->input] = to;
  return NULL;
}

const assay_edit_row_t assay_edit_row_reshape = {.before = try_reshape, .put = put_reshape};
