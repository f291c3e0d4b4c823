// The layers of an engine that is not ours, told from the values that it hands out.
#include "plan/cone.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct search {
  const assay_graph_t* graph;
  const bool* holds;
  int* position;   // by node id: place in the graph
  int* seen_from;  // by node id: the place of the last node whose layer took it in; -1: none
  int* found;      // places of the nodes of the layer
  size_t n_found;
  int end;  // the place of the node that the layer ends in
} search_t;

// A value that a node of the layer reads: what makes it belongs to the layer, if it is not held.
static void need(search_t* s, const assay_value_t* v) {
  if (!v || v->graph != s->graph || v->constant || !v->producer || s->holds[v->id]) return;
  int* seen = &s->seen_from[v->producer->id];
  if (*seen == s->end) return;
  *seen = s->end;
  s->found[s->n_found++] = s->position[v->producer->id];
}

// What a node reads: its inputs, and what its bodies take from the top graph.
static void need_all(search_t* s, const assay_node_t* node) {
  for (size_t i = 0; i < node->n_inputs; i++) need(s, node->inputs[i]);
  for (size_t a = 0; a < node->n_attrs; a++) {
    const assay_attr_t* attr = &node->attrs[a];
    const bool single = attr->type == ASSAY_ATTR_GRAPH;
    if (!single && attr->type != ASSAY_ATTR_GRAPHS) continue;
    for (size_t k = 0; k < (single ? 1 : attr->n); k++) {
      const assay_graph_t* body = single ? attr->u.g : attr->u.graphs[k];
      for (size_t i = 0; i < body->n_nodes; i++) need_all(s, body->nodes[i]);
      for (size_t i = 0; i < body->n_outputs; i++) need(s, body->outputs[i]);
    }
  }
}

static int compare_places(const void* a, const void* b) {
  const int x = *(const int*)a, y = *(const int*)b;
  return (x > y) - (x < y);
}

static assay_status_t find_cone(search_t* s, int end, assay_arena_t* arena, assay_cone_t* out) {
  s->end = end;
  s->found[0] = end;
  s->n_found = 1;
  s->seen_from[s->graph->nodes[end]->id] = end;
  for (size_t i = 0; i < s->n_found; i++) need_all(s, s->graph->nodes[s->found[i]]);
  qsort(s->found, s->n_found, sizeof *s->found, compare_places);
  ASSAY_TRY(assay_arena_new(arena, s->n_found, sizeof *out->nodes, &out->nodes));
  for (size_t i = 0; i < s->n_found; i++) out->nodes[i] = s->graph->nodes[s->found[i]];
  out->n_nodes = s->n_found;
  return NULL;
}

static bool ends_layer(const search_t* s, const assay_node_t* node) {
  for (size_t i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] && s->holds[node->outputs[i]->id]) return true;
  return false;
}

static assay_status_t check_outputs(const search_t* s) {
  for (size_t i = 0; i < s->graph->n_outputs; i++) {
    const assay_value_t* v = s->graph->outputs[i];
    const bool tensor = !v->type || v->type->kind == ASSAY_KIND_TENSOR;
    if (tensor && v->producer && !v->constant && !s->holds[v->id])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the engine's outputs lack the output '%s'",
                         v->name);
  }
  return NULL;
}

static assay_status_t find_cones(search_t* s, assay_arena_t* arena, assay_cone_t** out,
                                 size_t* out_n) {
  assay_cone_t* cones = NULL;
  size_t n = 0;
  for (size_t i = 0; i < s->graph->n_nodes; i++) n += ends_layer(s, s->graph->nodes[i]);
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *cones, &cones));
  n = 0;
  for (size_t i = 0; i < s->graph->n_nodes; i++)
    if (ends_layer(s, s->graph->nodes[i])) ASSAY_TRY(find_cone(s, (int)i, arena, &cones[n++]));
  *out = cones;
  *out_n = n;
  return NULL;
}

assay_status_t assay_cones_create(const assay_model_t* model, const bool* holds,
                                  assay_arena_t* arena, assay_cone_t** out, size_t* out_n) {
  const assay_graph_t* g = model->graph;
  const size_t ids = (size_t)model->n_node_ids;
  search_t s = {.graph = g, .holds = holds};
  ASSAY_TRY(check_outputs(&s));
  assay_status_t st = assay_new_array(ids, sizeof *s.position, &s.position);
  if (!st) st = assay_new_array(ids, sizeof *s.seen_from, &s.seen_from);
  if (!st) st = assay_new_array(g->n_nodes + 1, sizeof *s.found, &s.found);
  if (!st) {
    for (size_t i = 0; i < ids; i++) s.seen_from[i] = -1;
    for (size_t i = 0; i < g->n_nodes; i++) s.position[g->nodes[i]->id] = (int)i;
    st = find_cones(&s, arena, out, out_n);
  }
  assay_free(s.position);
  assay_free(s.seen_from);
  assay_free(s.found);
  return st;
}
