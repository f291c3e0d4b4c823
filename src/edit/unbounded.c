// Sizes that depend on data, and bounds for them.
#include "edit/unbounded.h"

#include <string.h>

#include "edit/names.h"

// The input that sets the size of an operator's output.
static const struct {
  const char* op;
  size_t input;
} setters[] = {{"Range", 1}, {"Pad", 1}, {"Resize", 3}, {"Tile", 1}, {"Expand", 1}};

static assay_value_t* setter_of(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof setters / sizeof *setters; i++) {
    if (*n->domain || strcmp(setters[i].op, n->op_type) != 0) continue;
    assay_value_t* v = setters[i].input < n->n_inputs ? n->inputs[setters[i].input] : NULL;
    // What a Min makes has its bound already.
    if (!v || v->constant || !v->producer || strcmp(v->producer->op_type, "Min") == 0) return NULL;
    return v;
  }
  return NULL;
}

// Notes the names of a type's sizes; whether one of them is new, or not known at all.
static assay_status_t note_sizes(assay_map_t* known, const assay_valtype_t* t, bool* out_new) {
  *out_new = !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape;
  for (int i = 0; !*out_new && i < t->rank; i++) *out_new = !t->dims[i];
  for (int i = 0; t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && i < t->rank; i++) {
    const char* name = t->dims[i] ? assay_dim_name(t->dims[i]) : NULL;
    bool old = false;
    if (!name) continue;
    ASSAY_TRY(assay_map_put(known, name, 1, &old));
    *out_new |= !old;
  }
  return NULL;
}

static bool is_listed(assay_value_t* const* list, size_t n, const assay_value_t* v) {
  for (size_t i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

static assay_status_t find(assay_model_t* m, assay_map_t* known, assay_value_t** list, size_t* n) {
  const assay_graph_t* g = m->graph;
  bool is_new;
  for (size_t i = 0; i < g->n_inputs; i++)
    ASSAY_TRY(note_sizes(known, g->inputs[i]->type, &is_new));
  for (size_t i = 0; i < g->n_nodes; i++) {
    bool any = false;
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) {
      if (!g->nodes[i]->outputs[k]) continue;
      ASSAY_TRY(note_sizes(known, g->nodes[i]->outputs[k]->type, &is_new));
      any |= is_new;
    }
    assay_value_t* v = any ? setter_of(g->nodes[i]) : NULL;
    if (v && !is_listed(list, *n, v)) list[(*n)++] = v;
  }
  return NULL;
}

assay_status_t assay_unbounded_find(assay_model_t* m, assay_value_t* const** out, size_t* out_n) {
  assay_map_t known = {0};
  assay_value_t** list = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(m->arena, m->graph->n_nodes, sizeof *list, &list));
  assay_status_t st = find(m, &known, list, &n);
  assay_map_deinit(&known);
  if (st) return st;
  *out = list;
  *out_n = n;
  return NULL;
}

assay_status_t assay_unbounded_set(assay_model_t* m, const char* name, assay_type_t elem,
                                   int64_t bound) {
  assay_value_t *v = NULL, *inner = NULL, *limit = NULL;
  assay_node_t *n = NULL, *producer = NULL;
  assay_tensor_t* t = NULL;
  const char *inner_name = NULL, *limit_name = NULL;
  size_t at = 0;
  ASSAY_TRY(assay_names_value(m, name, &v));
  producer = v->producer;
  if (!producer)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "no node makes '%s': it cannot get a bound", name);
  const assay_store_t store = assay_type_store(elem);
  if (store != ASSAY_STORE_I64 && store != ASSAY_STORE_F64)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "'%s' is not a tensor of numbers: it cannot get a bound",
                       name);
  ASSAY_TRY(assay_arena_printf(m->arena, &inner_name, "%s_copy", name));
  ASSAY_TRY(assay_arena_printf(m->arena, &limit_name, "%s_upper_bound", name));
  ASSAY_TRY(assay_graph_new_value(m->graph, inner_name, &inner));
  ASSAY_TRY(assay_graph_new_value(m->graph, limit_name, &limit));
  ASSAY_TRY(store == ASSAY_STORE_I64 ? assay_tensor_scalar_i64(elem, bound, &t)
                                     : assay_tensor_scalar_f64(elem, (double)bound, &t));
  ASSAY_TRY(assay_graph_set_initializer(limit, t));
  inner->declared = v->declared;
  assay_node_set_output(producer, (size_t)v->output_index, inner);
  ASSAY_TRY(assay_node_create(m->graph, "", "Min", "", 2, 1, 0, &n));
  n->inputs[0] = inner;
  n->inputs[1] = limit;
  assay_node_set_output(n, 0, v);
  while (m->graph->nodes[at] != producer) at++;
  return assay_graph_insert(m->graph, n, at + 1);
}
