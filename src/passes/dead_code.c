// Nodes and initializers that no graph output depends on are removed.
#include "base/alloc.h"
#include "passes/pass.h"

typedef struct live {
  bool *values, *nodes;  // by id
  assay_node_t** stack;  // nodes whose inputs have not been looked at
  size_t n_stack, cap_stack;
} live_t;

static assay_status_t mark(live_t* l, const assay_value_t* v) {
  if (!v || l->values[v->id]) return NULL;
  l->values[v->id] = true;
  assay_node_t* n = v->producer;
  if (!n || l->nodes[n->id]) return NULL;
  l->nodes[n->id] = true;
  ASSAY_TRY(assay_grow(&l->stack, &l->cap_stack, l->n_stack + 1, sizeof *l->stack));
  l->stack[l->n_stack++] = n;
  return NULL;
}

static assay_status_t mark_graph_outputs(live_t* l, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_outputs; i++) ASSAY_TRY(mark(l, g->outputs[i]));
  return NULL;
}

// A node needs its inputs and what its bodies hand out; what those need is found from there.
static assay_status_t mark_needs(live_t* l, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++) ASSAY_TRY(mark(l, n->inputs[i]));
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    if (attr->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(mark_graph_outputs(l, attr->u.g));
    for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
      ASSAY_TRY(mark_graph_outputs(l, attr->u.graphs[k]));
  }
  return NULL;
}

static assay_status_t find_live(live_t* l, const assay_model_t* m) {
  ASSAY_TRY(mark_graph_outputs(l, m->graph));
  while (l->n_stack) ASSAY_TRY(mark_needs(l, l->stack[--l->n_stack]));
  return NULL;
}

static assay_status_t remove_dead(assay_pass_context_t* c, const live_t* l, bool* dead) {
  for (size_t k = 0; k < c->model->n_graphs; k++) {
    assay_graph_t* g = c->model->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++) {
      const assay_node_t* n = g->nodes[i];
      if (l->nodes[n->id]) continue;
      dead[n->id] = true;
      ASSAY_TRY(assay_pass_record(c, ASSAY_PASS_REMOVED, &n, 1, "no output depends on it"));
    }
  }
  assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  for (size_t k = 0; k < c->model->n_graphs; k++) {
    assay_graph_t* g = c->model->graphs[k];
    size_t kept = 0;
    for (size_t i = 0; i < g->n_initializers; i++) {
      assay_value_t* v = g->initializers[i];
      if (v->is_input || v->is_output || l->values[v->id]) g->initializers[kept++] = v;
    }
    g->n_initializers = kept;
  }
  return NULL;
}

static assay_status_t run(assay_pass_context_t* c) {
  const assay_model_t* m = c->model;
  live_t l = {0};
  bool* dead = NULL;
  assay_status_t st = assay_new_array((size_t)m->n_values, sizeof *l.values, &l.values);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *l.nodes, &l.nodes);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *dead, &dead);
  if (!st) st = find_live(&l, m);
  if (!st) st = remove_dead(c, &l, dead);
  assay_free(dead);
  assay_free(l.values);
  assay_free(l.nodes);
  assay_free(l.stack);
  return st;
}

const assay_pass_t assay_pass_dead_code = {
    .name = "dead_code",
    .until_fixpoint = true,
    .after_shapes = true,
    .summary = "nodes and constants that no output depends on are removed",
    .run = run,
};
