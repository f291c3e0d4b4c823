// Plans that were cut before: how they were cut, and the same cuts made again.
#include "base/alloc.h"
#include "plan/internal.h"

typedef struct node_list {
  const assay_node_t** nodes;
  size_t n, cap;
} node_list_t;

// The nodes of all bodies below a graph, depth first.
static assay_status_t add_bodies(const assay_graph_t* g, node_list_t* l) {
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t a = 0; a < g->nodes[i]->n_attrs; a++) {
      const assay_attr_t* attr = &g->nodes[i]->attrs[a];
      const bool single = attr->type == ASSAY_ATTR_GRAPH;
      if (!single && attr->type != ASSAY_ATTR_GRAPHS) continue;
      for (size_t k = 0; k < (single ? 1 : attr->n); k++) {
        const assay_graph_t* body = single ? attr->u.g : attr->u.graphs[k];
        ASSAY_TRY(assay_grow(&l->nodes, &l->cap, l->n + body->n_nodes, sizeof *l->nodes));
        for (size_t b = 0; b < body->n_nodes; b++) l->nodes[l->n++] = body->nodes[b];
        ASSAY_TRY(add_bodies(body, l));
      }
    }
  return NULL;
}

static assay_layer_cut_t cut_of(const assay_layer_t* l) {
  return (assay_layer_cut_t){l->n_nodes, l->format, l->accumulator, l->reason};
}

assay_status_t assay_plan_cuts(const assay_plan_t* plan, assay_layer_cut_t** out, size_t* out_n) {
  const assay_layers_t* l = &plan->layers;
  node_list_t bodies = {0};
  assay_layer_cut_t* cuts = NULL;
  assay_status_t st = add_bodies(l->model->graph, &bodies);
  if (!st) st = assay_new_array(l->n_layers + bodies.n, sizeof *cuts, &cuts);
  for (size_t i = 0; !st && i < l->n_layers; i++) cuts[i] = cut_of(&l->layers[i]);
  for (size_t i = 0; !st && i < bodies.n; i++)
    cuts[l->n_layers + i] = cut_of(&l->layers[l->layer_of_node[bodies.nodes[i]->id]]);
  *out = cuts;
  *out_n = l->n_layers + bodies.n;
  assay_free(bodies.nodes);
  return st;
}

static assay_status_t does_not_fit(void) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "the layers do not fit the model's nodes");
}

// The nodes of all layers, in the order of the cuts: room for them in the plan's arena.
static assay_status_t list_nodes(assay_plan_t* plan, const node_list_t* bodies,
                                 const assay_node_t*** out) {
  const assay_graph_t* g = plan->layers.model->graph;
  const assay_node_t** nodes = NULL;
  ASSAY_TRY(assay_arena_new(plan->arena, g->n_nodes + bodies->n, sizeof *nodes, &nodes));
  for (size_t i = 0; i < g->n_nodes; i++) nodes[i] = g->nodes[i];
  for (size_t i = 0; i < bodies->n; i++) nodes[g->n_nodes + i] = bodies->nodes[i];
  *out = nodes;
  return NULL;
}

static void note_layer(const assay_node_t* const* nodes, size_t n, int layer, int* of_node,
                       bool* hidden) {
  for (size_t k = 0; k < n; k++) {
    of_node[nodes[k]->id] = layer;
    for (size_t o = 0; k + 1 < n && o < nodes[k]->n_outputs; o++)
      if (nodes[k]->outputs[o]) hidden[nodes[k]->outputs[o]->id] = true;
  }
}

static bool has_graphs(const assay_node_t* n) {
  for (size_t i = 0; i < n->n_attrs; i++)
    if (n->attrs[i].type == ASSAY_ATTR_GRAPH || n->attrs[i].type == ASSAY_ATTR_GRAPHS) return true;
  return false;
}

// Whether all that read a value are nodes of a layer.
static bool is_read_within(const assay_uses_t* uses, const assay_value_t* v, const int* of_node,
                           int layer) {
  int n = 0;
  for (int i = uses->first[v->id]; i < uses->first[v->id + 1]; i++)
    n += of_node[uses->readers[i]->id] == layer;
  return n == uses->n_reads[v->id];
}

// What the passes see to when they make a group, and what everything after relies on: what passes
// between its nodes is read nowhere else, and it has no bodies.
static assay_status_t check_group(const assay_uses_t* uses, const assay_layer_t* l,
                                  const int* of_node, int layer) {
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_node_t* n = l->nodes[k];
    if (has_graphs(n)) return does_not_fit();
    for (size_t o = 0; k + 1 < l->n_nodes && o < n->n_outputs; o++)
      if (n->outputs[o] && !is_read_within(uses, n->outputs[o], of_node, layer))
        return does_not_fit();
  }
  return NULL;
}

static assay_status_t check_groups(const assay_plan_t* plan) {
  const assay_layers_t* l = &plan->layers;
  assay_uses_t uses;
  ASSAY_TRY(assay_uses_create(l->model, &uses));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < l->n_layers; i++)
    if (l->layers[i].n_nodes > 1) st = check_group(&uses, &l->layers[i], l->layer_of_node, (int)i);
  assay_uses_deinit(&uses);
  return st;
}

// Layers on integers are known by their nodes: no other layer of several has quantizers.
static assay_status_t read_int8(assay_plan_t* plan, assay_layer_t* l) {
  assay_int8_t* int8 = NULL;
  assay_tensor_t* weights = NULL;
  if (l->n_nodes < 2 || l->format != ASSAY_FORMAT_FP32 || l->accumulator != ASSAY_FORMAT_FP32)
    return NULL;
  ASSAY_TRY(assay_int8_read(plan->arena, l->nodes, l->n_nodes, &int8, &weights));
  if (weights) ASSAY_TRY(assay_model_take_tensor(plan->model, weights));
  l->int8 = int8;
  return NULL;
}

static assay_status_t cut(assay_plan_t* plan, const assay_layer_cut_t* cuts, size_t n_cuts,
                          const node_list_t* bodies) {
  const assay_model_t* m = plan->layers.model;
  const assay_node_t** nodes = NULL;
  assay_layer_t* layers = NULL;
  int* of_node = NULL;
  bool* hidden = NULL;
  size_t at = 0;
  ASSAY_TRY(list_nodes(plan, bodies, &nodes));
  ASSAY_TRY(assay_arena_new(plan->arena, n_cuts, sizeof *layers, &layers));
  ASSAY_TRY(assay_arena_new(plan->arena, (size_t)m->n_node_ids, sizeof *of_node, &of_node));
  ASSAY_TRY(assay_arena_new(plan->arena, (size_t)m->n_values, sizeof *hidden, &hidden));
  for (int i = 0; i < m->n_node_ids; i++) of_node[i] = -1;
  for (size_t i = 0; i < n_cuts; i++) {
    const bool top = at < m->graph->n_nodes;
    const size_t left = m->graph->n_nodes + (top ? 0 : bodies->n) - at;
    if (!cuts[i].n_nodes || cuts[i].n_nodes > left || (!top && cuts[i].n_nodes != 1))
      return does_not_fit();
    assay_layer_t* l = &layers[i];
    *l = (assay_layer_t){.nodes = &nodes[at],
                         .n_nodes = cuts[i].n_nodes,
                         .format = cuts[i].format,
                         .accumulator = cuts[i].accumulator};
    ASSAY_TRY(assay_arena_strdup(plan->arena, cuts[i].reason, &l->reason));
    ASSAY_TRY(assay_plan_name_layer(plan, l));
    note_layer(l->nodes, l->n_nodes, (int)i, of_node, hidden);
    at += l->n_nodes;
    if (top) plan->layers.n_layers++;
  }
  if (at != m->graph->n_nodes + bodies->n) return does_not_fit();
  plan->layers.layers = layers;
  plan->layers.n_all_layers = n_cuts;
  plan->layers.layer_of_node = of_node;
  plan->layers.hidden_value = hidden;
  ASSAY_TRY(check_groups(plan));
  for (size_t i = 0; i < plan->layers.n_layers; i++) ASSAY_TRY(read_int8(plan, &layers[i]));
  return NULL;
}

assay_status_t assay_plan_restore(assay_model_t* model, const assay_layer_cut_t* cuts, size_t n,
                                  uint64_t seed, assay_plan_t** out) {
  assay_plan_t* plan = NULL;
  node_list_t bodies = {0};
  ASSAY_TRY(ASSAY_NEW(&plan));
  plan->model = assay_model_retain(model);
  plan->layers.model = model;
  plan->layers.seed = seed;
  plan->restored = true;
  assay_status_t st = assay_arena_create(&plan->arena);
  if (!st) st = add_bodies(model->graph, &bodies);
  if (!st) st = cut(plan, cuts, n, &bodies);
  assay_free(bodies.nodes);
  if (st) return assay_plan_destroy(plan), st;
  *out = plan;
  return NULL;
}
