// One node of a model by itself: checked, inferred and run on tensors that its inputs were found to
// have.
#include "edit/one_node.h"

#include <string.h>

#include "base/alloc.h"
#include "edit/cut.h"
#include "edit/types.h"
#include "eval/evaluator.h"
#include "onnx/load.h"
#include "onnx/onnx.h"

struct assay_one_node {
  assay_model_t* m;       // a copy whose main graph holds the node that is looked at
  assay_node_t** nodes;   // of that copy, by node id
  assay_value_t** found;  // what the node depends on
  size_t n_found;
  const assay_value_t** theirs;  // by value id: the value of the model that was given
  assay_value_t** given;         // the same of those that are found
};

static void list_values(const assay_model_t* m, const assay_value_t** by_id) {
  for (size_t i = 0; i < m->graph->n_inputs; i++)
    by_id[m->graph->inputs[i]->id] = m->graph->inputs[i];
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_node_t* n = m->graph->nodes[i];
    for (size_t k = 0; k < n->n_inputs; k++)
      if (n->inputs[k]) by_id[n->inputs[k]->id] = n->inputs[k];
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) by_id[n->outputs[k]->id] = n->outputs[k];
  }
}

assay_status_t assay_one_node_create(const assay_model_t* model, assay_one_node_t** out) {
  assay_one_node_t* o = NULL;
  ASSAY_TRY(ASSAY_NEW(&o));
  assay_status_t st = assay_model_clone(model, &o->m);
  const size_t n = (size_t)model->n_values;
  if (!st) st = assay_new_array((size_t)model->n_node_ids, sizeof *o->nodes, &o->nodes);
  if (!st) st = assay_new_array(n, sizeof *o->found, &o->found);
  if (!st) st = assay_new_array(n, sizeof *o->given, &o->given);
  if (!st) st = assay_new_array(n, sizeof *o->theirs, &o->theirs);
  if (st) return assay_one_node_destroy(o), st;
  assay_graph_t* g = o->m->graph;
  for (size_t i = 0; i < g->n_nodes; i++) o->nodes[g->nodes[i]->id] = g->nodes[i];
  list_values(model, o->theirs);
  // From here on the graph is what a node needs.
  g->n_value_info = 0;
  g->extra = (assay_bytes_t){0};
  *out = o;
  return NULL;
}

void assay_one_node_destroy(assay_one_node_t* o) {
  if (!o) return;
  assay_model_release(o->m);
  assay_free(o->nodes);
  assay_free(o->found);
  assay_free(o->given);
  assay_free(o->theirs);
  assay_free(o);
}

// ---- what it depends on -------------------------------------------------------------------------

static void find_graph(assay_one_node_t* o, const assay_graph_t* g);

static void find(assay_one_node_t* o, assay_value_t* v) {
  if (!v || v->graph != o->m->graph) return;
  for (size_t i = 0; i < o->n_found; i++)
    if (o->found[i] == v) return;
  o->found[o->n_found++] = v;
}

static void find_inputs(assay_one_node_t* o, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++) find(o, n->inputs[i]);
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    if (*attr->ref) continue;
    if (attr->type == ASSAY_ATTR_GRAPH) find_graph(o, attr->u.g);
    for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
      find_graph(o, attr->u.graphs[k]);
  }
}

static void find_graph(assay_one_node_t* o, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++) find_inputs(o, g->nodes[i]);
  for (size_t i = 0; i < g->n_outputs; i++) find(o, g->outputs[i]);
}

assay_status_t assay_one_node_inputs(assay_one_node_t* o, const assay_node_t* n,
                                     assay_value_t* const** out, size_t* out_n) {
  size_t k = 0;
  if ((size_t)n->id >= (size_t)o->m->n_node_ids || !o->nodes[n->id])
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "node '%s' is not of the main graph", n->label);
  o->n_found = 0;
  find_inputs(o, o->nodes[n->id]);
  for (size_t i = 0; i < o->n_found; i++)
    if (!o->found[i]->constant)
      o->given[k++] = (assay_value_t*)(uintptr_t)o->theirs[o->found[i]->id];
  *out = o->given;
  *out_n = k;
  return NULL;
}

// ---- the model of one ---------------------------------------------------------------------------

// Makes the copy's graph one of this node: constants are initializers, the rest are inputs, of
// these types where they are known (types NULL: none is).
static assay_status_t set_graph(assay_one_node_t* o, assay_node_t* n,
                                const assay_valtype_t* const* types) {
  assay_model_t* m = o->m;
  assay_graph_t* g = m->graph;
  size_t n_in = 0, n_const = 0, n_out = 0, k = 0;
  ASSAY_TRY(assay_arena_new(m->arena, 1, sizeof *g->nodes, &g->nodes));
  ASSAY_TRY(assay_arena_new(m->arena, o->n_found, sizeof *g->inputs, &g->inputs));
  ASSAY_TRY(assay_arena_new(m->arena, o->n_found, sizeof *g->initializers, &g->initializers));
  ASSAY_TRY(assay_arena_new(m->arena, n->n_outputs, sizeof *g->outputs, &g->outputs));
  for (size_t i = 0; i < o->n_found; i++) {
    assay_value_t* v = o->found[i];
    v->producer = NULL;
    v->is_output = false;
    v->is_input = !v->constant;
    if (v->constant) {
      g->initializers[n_const++] = v;
      continue;
    }
    const assay_valtype_t* t = types ? types[k++] : NULL;
    if (t) ASSAY_TRY(assay_types_copy(m, t, &v->declared));
    // An input must say something of its type.
    if (!types && !v->declared)
      ASSAY_TRY(assay_valtype_unranked(m, ASSAY_TYPE_UNDEFINED, &v->declared));
    g->inputs[n_in++] = v;
  }
  for (size_t i = 0; i < n->n_outputs; i++) {
    assay_value_t* v = n->outputs[i];
    if (!v) continue;
    v->producer = n;
    v->is_input = false;
    v->is_output = true;
    v->declared = v->type = NULL;
    g->outputs[n_out++] = v;
  }
  g->nodes[0] = n;
  g->n_nodes = g->cap_nodes = 1;
  g->n_inputs = n_in;
  g->n_initializers = g->cap_initializers = n_const;
  g->n_outputs = n_out;
  return NULL;
}

assay_status_t assay_one_node_prepare(assay_one_node_t* o, const assay_node_t* n,
                                      const assay_valtype_t* const* types, assay_model_t** out) {
  assay_value_t* const* inputs;
  size_t n_inputs;
  ASSAY_TRY(assay_one_node_inputs(o, n, &inputs, &n_inputs));
  ASSAY_TRY(set_graph(o, o->nodes[n->id], types));
  return assay_onnx_prepare(o->m, 0, NULL, out);
}

assay_status_t assay_one_node_check(assay_one_node_t* o, const assay_node_t* n) {
  assay_value_t* const* inputs;
  size_t n_inputs;
  assay_model_t* copy = NULL;
  ASSAY_TRY(assay_one_node_inputs(o, n, &inputs, &n_inputs));
  ASSAY_TRY(set_graph(o, o->nodes[n->id], NULL));
  ASSAY_TRY(assay_model_clone(o->m, &copy));
  assay_status_t st = assay_onnx_check(copy);
  assay_model_release(copy);
  return st;
}

const char* assay_one_node_reason(assay_status_t status) {
  const char* message = assay_status_message(status);
  const char* end = strncmp(message, "node '", 6) == 0 ? strstr(message, "): ") : NULL;
  return end ? end + 3 : message;
}

assay_status_t assay_one_node_run(const assay_model_t* one, assay_tensor_t* const* in,
                                  assay_tensor_t** out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_NATIVE, .seed = 1, .keep_all = true};
  assay_evaluator_t* evaluator = NULL;
  for (size_t i = 0; i < one->graph->n_outputs; i++) out[i] = NULL;
  assay_status_t st = assay_evaluator_create_run(one, &config, in, &evaluator);
  for (size_t i = 0; !st && i < one->graph->n_outputs; i++) {
    assay_tensor_t* t = assay_evaluator_get(evaluator, one->graph->outputs[i]);
    if (t) out[i] = assay_tensor_retain(t);
  }
  assay_evaluator_destroy(evaluator);
  return st;
}
