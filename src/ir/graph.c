// Graphs, their values and their nodes.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "ir/internal.h"

// ---- graphs -----------------------------------------------------------------------------------

assay_status_t assay_graph_create(assay_model_t* model, assay_graph_t* outer, assay_graph_t** out) {
  int depth = 1;
  for (const assay_graph_t* o = outer; o; o = o->outer) depth++;
  if (depth > IR_MAX_GRAPH_DEPTH)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "graphs are nested more than %d deep",
                       (int)IR_MAX_GRAPH_DEPTH);
  assay_graph_t* g = NULL;
  ASSAY_TRY(assay_arena_new(model->arena, 1, sizeof *g, &g));
  ASSAY_TRY(assay_grow(&model->graphs, &model->cap_graphs, model->n_graphs + 1, sizeof g));
  model->graphs[model->n_graphs++] = g;
  g->model = model;
  g->outer = outer;
  g->name = g->doc = "";
  *out = g;
  return NULL;
}

assay_value_t* assay_graph_find(const assay_graph_t* g, const char* name) {
  uint64_t found;
  return assay_map_get(&g->values, name, &found) ? (assay_value_t*)(uintptr_t)found : NULL;
}

assay_nearest_t assay_values_near(assay_value_t* const* values, size_t n, const char* name) {
  assay_nearest_t near = {.wanted = name};
  for (size_t i = 0; i < n; i++) assay_nearest_offer(&near, values[i]->name);
  return near;
}

assay_value_t* assay_graph_find_visible(const assay_graph_t* g, const char* name) {
  assay_value_t* v = NULL;
  for (; g && !v; g = g->outer) v = assay_graph_find(g, name);
  return v;
}

// ---- values -----------------------------------------------------------------------------------

assay_status_t assay_graph_add_value(assay_graph_t* g, const char* name, assay_value_t** out) {
  assay_model_t* m = g->model;
  if (!*name) return ASSAY_ERROR(ASSAY_CORRUPT, "graph '%s': a value has no name", g->name);
  if (assay_graph_find(g, name))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "graph '%s': two values are named '%s'; every value needs its own name",
                       g->name, name);
  if (m->n_values == INT_MAX)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the model has more than %d values", INT_MAX);
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, 1, sizeof *v, &v));
  ASSAY_TRY(assay_arena_strdup(m->arena, name, &v->name));
  ASSAY_TRY(assay_map_put(&g->values, v->name, (uint64_t)(uintptr_t)v, NULL));
  v->graph = g;
  v->id = m->n_values++;
  v->doc = v->tensor_doc = "";
  *out = v;
  return NULL;
}

// A name that any graph of the model has could shadow, or be shadowed by, a new one.
static bool name_taken(const assay_model_t* m, const char* name) {
  for (size_t i = 0; i < m->n_graphs; i++)
    if (assay_map_get(&m->graphs[i]->values, name, NULL)) return true;
  return false;
}

assay_status_t assay_graph_new_value(assay_graph_t* g, const char* hint, assay_value_t** out) {
  if (*hint && !name_taken(g->model, hint)) return assay_graph_add_value(g, hint, out);
  assay_str_t name = {0};
  // The id that the value will have is hardly ever taken as a suffix, so this rarely goes round.
  for (int suffix = g->model->n_values;; suffix = suffix == INT_MAX ? 0 : suffix + 1) {
    name.len = 0;
    assay_str_printf_raw(&name, "%s_%d", hint, suffix);
    if (name.failed || !name_taken(g->model, name.text)) break;
  }
  assay_status_t st = assay_str_status(&name);
  if (!st) st = assay_graph_add_value(g, name.text, out);
  assay_str_deinit(&name);
  return st;
}

assay_status_t assay_graph_set_initializer(assay_value_t* value, assay_tensor_t* take_tensor) {
  assay_graph_t* g = value->graph;
  assay_status_t st = NULL;
  bool listed = false;
  // Only a value that has a constant already can be in the list.
  for (size_t i = 0; value->constant && i < g->n_initializers && !listed; i++)
    listed = g->initializers[i] == value;
  if (!listed)
    st = ir_grow(g->model->arena, &g->initializers, &g->cap_initializers, g->n_initializers + 1,
                 sizeof value);
  if (st) return assay_tensor_release(take_tensor), st;
  ASSAY_TRY(assay_model_take_tensor(g->model, take_tensor));
  if (!listed) g->initializers[g->n_initializers++] = value;
  value->constant = take_tensor;
  return NULL;
}

// ---- nodes ------------------------------------------------------------------------------------

assay_status_t ir_node_alloc(assay_graph_t* g, const char* domain, const char* op_type,
                             const char* name, size_t n_inputs, size_t n_outputs, size_t n_attrs,
                             assay_node_t** out) {
  assay_arena_t* a = g->model->arena;
  assay_node_t* n = NULL;
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *n, &n));
  ASSAY_TRY(assay_arena_strdup(a, ir_domain(domain), &n->domain));
  ASSAY_TRY(assay_arena_strdup(a, op_type, &n->op_type));
  ASSAY_TRY(assay_arena_strdup(a, name ? name : "", &n->name));
  if (n_inputs) ASSAY_TRY(assay_arena_new(a, n_inputs, sizeof *n->inputs, &n->inputs));
  if (n_outputs) ASSAY_TRY(assay_arena_new(a, n_outputs, sizeof *n->outputs, &n->outputs));
  if (n_attrs) ASSAY_TRY(assay_arena_new(a, n_attrs, sizeof *n->attrs, &n->attrs));
  for (size_t i = 0; i < n_attrs; i++) n->attrs[i].name = n->attrs[i].doc = n->attrs[i].ref = "";
  n->n_inputs = n_inputs;
  n->n_outputs = n_outputs;
  n->n_attrs = n_attrs;
  n->overload = n->doc = n->label = "";
  n->graph = g;
  *out = n;
  return NULL;
}

// Gives a node the label `wanted`, or `wanted` with the first number after it that is free.
static assay_status_t set_label(assay_node_t* n, const char* wanted) {
  assay_graph_t* g = n->graph;
  assay_arena_t* a = g->model->arena;
  uint64_t asked = 0;
  const char* label = wanted;
  if (assay_map_get(&g->labels, wanted, &asked)) {
    do {
      asked++;
      ASSAY_TRY(assay_arena_printf(a, &label, "%s_%llu", wanted, (unsigned long long)asked));
    } while (assay_map_get(&g->labels, label, NULL));
    ASSAY_TRY(assay_map_put(&g->labels, wanted, asked, NULL));
  }
  ASSAY_TRY(assay_map_put(&g->labels, label, 1, NULL));
  n->label = label;
  return NULL;
}

assay_status_t assay_node_create(assay_graph_t* g, const char* domain, const char* op_type,
                                 const char* name, size_t n_inputs, size_t n_outputs,
                                 size_t n_attrs, assay_node_t** out) {
  assay_node_t* n = NULL;
  if (g->n_created == INT_MAX)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "graph '%s' has more than %d nodes", g->name, INT_MAX);
  ASSAY_TRY(ir_node_alloc(g, domain, op_type, name, n_inputs, n_outputs, n_attrs, &n));
  n->index = g->n_created;
  n->id = g->model->n_node_ids++;
  const char* wanted = n->name;
  if (!*wanted)
    ASSAY_TRY(assay_arena_printf(g->model->arena, &wanted, "%s_%d", n->op_type, n->index));
  ASSAY_TRY(set_label(n, wanted));
  g->n_created++;
  *out = n;
  return NULL;
}

// The values that a node made are without a producer from now on.
static void disown(assay_node_t* node, size_t i) {
  assay_value_t* v = node->outputs[i];
  if (!v || v->producer != node || v->output_index != (int)i) return;
  v->producer = NULL;
  v->output_index = 0;
}

void assay_node_set_output(assay_node_t* node, size_t i, assay_value_t* value) {
  disown(node, i);
  node->outputs[i] = value;
  if (!value) return;
  value->producer = node;
  value->output_index = (int)i;
}

assay_status_t assay_graph_insert(assay_graph_t* g, assay_node_t* node, size_t at) {
  if (at > g->n_nodes) at = g->n_nodes;
  ASSAY_TRY(ir_grow(g->model->arena, &g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof node));
  memmove(g->nodes + at + 1, g->nodes + at, (g->n_nodes - at) * sizeof node);
  g->nodes[at] = node;
  g->n_nodes++;
  return NULL;
}

void assay_graph_remove(assay_graph_t* g, size_t at) {
  if (at >= g->n_nodes) return;
  assay_node_t* node = g->nodes[at];
  for (size_t i = 0; i < node->n_outputs; i++) disown(node, i);
  g->n_nodes--;
  memmove(g->nodes + at, g->nodes + at + 1, (g->n_nodes - at) * sizeof node);
}

const assay_attr_t* assay_node_attr(const assay_node_t* node, const char* name) {
  for (size_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
  return NULL;
}
