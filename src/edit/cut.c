// What some values of a model depend on, and the model without the rest.
#include "edit/cut.h"

#include "base/alloc.h"

assay_status_t assay_cut_init(assay_model_t* m, assay_cut_t* out) {
  assay_cut_t c = {.m = m};
  const size_t n = (size_t)m->n_values;
  assay_status_t st = assay_new_array(n, sizeof *c.from, &c.from);
  if (!st) st = assay_new_array(n, sizeof *c.needed, &c.needed);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *c.kept, &c.kept);
  if (st) return assay_cut_deinit(&c), st;
  *out = c;
  return NULL;
}

void assay_cut_deinit(assay_cut_t* c) {
  assay_free(c->from);
  assay_free(c->needed);
  assay_free(c->kept);
  assay_free(c->stack);
  *c = (assay_cut_t){0};
}

// ---- marking ------------------------------------------------------------------------------------

static assay_status_t need_graph(assay_cut_t* c, const assay_graph_t* g);

static assay_status_t need(assay_cut_t* c, const assay_value_t* v) {
  if (!v || c->needed[v->id]) return NULL;
  c->needed[v->id] = true;
  assay_node_t* n = v->producer;
  if (c->from[v->id] || !n || c->kept[n->id] || v->graph != c->m->graph) return NULL;
  c->kept[n->id] = true;
  ASSAY_TRY(assay_grow(&c->stack, &c->cap_stack, c->n_stack + 1, sizeof *c->stack));
  c->stack[c->n_stack++] = n;
  return NULL;
}

assay_status_t assay_cut_need_inputs(assay_cut_t* c, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++) ASSAY_TRY(need(c, n->inputs[i]));
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    if (*attr->ref) continue;
    if (attr->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(need_graph(c, attr->u.g));
    for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
      ASSAY_TRY(need_graph(c, attr->u.graphs[k]));
  }
  return NULL;
}

static assay_status_t need_graph(assay_cut_t* c, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++) ASSAY_TRY(assay_cut_need_inputs(c, g->nodes[i]));
  for (size_t i = 0; i < g->n_outputs; i++) ASSAY_TRY(need(c, g->outputs[i]));
  return NULL;
}

assay_status_t assay_cut_need(assay_cut_t* c, const assay_value_t* v) {
  ASSAY_TRY(need(c, v));
  while (c->n_stack) ASSAY_TRY(assay_cut_need_inputs(c, c->stack[--c->n_stack]));
  return NULL;
}

// ---- taking away --------------------------------------------------------------------------------

static void drop_nodes(const assay_cut_t* c) {
  assay_graph_t* g = c->m->graph;
  size_t kept = 0;
  for (size_t i = 0; i < g->n_nodes; i++) {
    assay_node_t* n = g->nodes[i];
    if (c->kept[n->id]) {
      g->nodes[kept++] = n;
      continue;
    }
    for (size_t k = 0; k < n->n_outputs; k++) assay_node_set_output(n, k, NULL);
    n->n_outputs = 0;
  }
  g->n_nodes = kept;
  kept = 0;
  for (size_t i = 0; i < g->n_initializers; i++)
    if (c->needed[g->initializers[i]->id]) g->initializers[kept++] = g->initializers[i];
  g->n_initializers = kept;
  kept = 0;
  for (size_t i = 0; i < g->n_value_info; i++) {
    const assay_value_t* v = g->value_info[i];
    if (v->producer || v->is_input || c->needed[v->id]) g->value_info[kept++] = g->value_info[i];
  }
  g->n_value_info = kept;
}

// The functions that kept nodes call, and what those call.
static bool mark_functions(const assay_model_t* m, bool* used) {
  bool more = false;
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* top = m->graphs[k];
    while (top->outer) top = top->outer;
    bool live = top == m->graph;
    for (size_t f = 0; f < m->n_functions; f++) live |= used[f] && m->functions[f]->body == top;
    for (size_t i = 0; live && i < m->graphs[k]->n_nodes; i++)
      for (size_t f = 0; f < m->n_functions; f++)
        if (m->graphs[k]->nodes[i]->function == m->functions[f] && !used[f]) used[f] = more = true;
  }
  return more;
}

static assay_status_t drop_functions(assay_model_t* m) {
  bool* used = NULL;
  ASSAY_TRY(assay_new_array(m->n_functions, sizeof *used, &used));
  while (mark_functions(m, used)) continue;
  size_t kept = 0;
  for (size_t f = 0; f < m->n_functions; f++)
    if (used[f]) m->functions[kept++] = m->functions[f];
  m->n_functions = kept;
  assay_free(used);
  return NULL;
}

// Bodies of nodes that went are read by nobody.
static void drop_bodies(const assay_cut_t* c) {
  for (size_t k = 0; k < c->m->n_graphs; k++) {
    assay_graph_t* g = c->m->graphs[k];
    const assay_node_t* owner = g->owner;
    for (const assay_graph_t* o = g->outer; o && o->owner; o = o->outer) owner = o->owner;
    if (owner && owner->graph == c->m->graph && !c->kept[owner->id])
      g->n_nodes = g->n_initializers = g->n_inputs = g->n_outputs = g->n_value_info = 0;
  }
}

assay_status_t assay_cut_drop(assay_cut_t* c) {
  drop_nodes(c);
  drop_bodies(c);
  return drop_functions(c->m);
}

assay_status_t assay_cut_clean(assay_model_t* m) {
  assay_cut_t c = {0};
  ASSAY_TRY(assay_cut_init(m, &c));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < m->graph->n_outputs; i++)
    st = assay_cut_need(&c, m->graph->outputs[i]);
  // An initializer that callers may replace stays as the input that it is.
  for (size_t i = 0; !st && i < m->graph->n_inputs; i++)
    st = assay_cut_need(&c, m->graph->inputs[i]);
  if (!st) st = assay_cut_drop(&c);
  assay_cut_deinit(&c);
  return st;
}
