// Golden of another shape than the model's value, which what comes after cannot read.
#include "base/alloc.h"
#include "diagnose/golden/walk.h"

typedef void read_fn_t(void* user, const assay_value_t* v);

// What a node reads, also within its bodies, with what these make themselves.
static void each_read(const assay_node_t* n, read_fn_t* f, void* user) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) f(user, n->inputs[i]);
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    const bool single = attr->type == ASSAY_ATTR_GRAPH;
    const size_t bodies = single ? 1 : attr->type == ASSAY_ATTR_GRAPHS ? attr->n : 0;
    for (size_t k = 0; k < bodies; k++) {
      const assay_graph_t* body = single ? attr->u.g : attr->u.graphs[k];
      for (size_t i = 0; i < body->n_nodes; i++) each_read(body->nodes[i], f, user);
      for (size_t i = 0; i < body->n_outputs; i++) f(user, body->outputs[i]);
    }
  }
}

static void mark(void* user, const assay_value_t* v) { ((bool*)user)[v->id] = true; }

// Bars the golden that a marked value of a node stands for; marks what the others were made of.
static bool bar_outputs(assay_golden_walk_t* w, const assay_node_t* n, bool* read) {
  bool any = false, own = false;
  for (size_t k = 0; k < n->n_outputs; k++) {
    const assay_value_t* v = n->outputs[k];
    if (!v || !read[v->id]) continue;
    assay_golden_met_t* met = &w->met[v->id];
    own |= !met->stands_in;
    any |= met->unlike;
    met->barred |= met->unlike;
  }
  if (own) each_read(n, mark, read);
  return any;
}

assay_status_t assay_golden_bar(assay_golden_walk_t* w, size_t failed, bool all, bool* out_any) {
  const assay_graph_t* g = w->model->graph;
  bool* read = NULL;
  *out_any = false;
  ASSAY_TRY(assay_new_array((size_t)w->model->n_values, sizeof *read, &read));
  for (size_t i = 0; all && i < (size_t)w->model->n_values; i++) read[i] = true;
  each_read(g->nodes[failed], mark, read);
  for (size_t i = failed; i-- > 0;) *out_any |= bar_outputs(w, g->nodes[i], read);
  if (all && *out_any) w->bars_all = true;
  assay_free(read);
  return NULL;
}

typedef struct following {
  const assay_golden_met_t* met;
  bool any;
} following_t;

static void ask(void* user, const assay_value_t* v) {
  following_t* f = user;
  const assay_golden_met_t* met = &f->met[v->id];
  f->any |= met->barred || (met->follows && !met->stands_in);
}

void assay_golden_find_followers(assay_golden_walk_t* w, const assay_node_t* n) {
  following_t f = {.met = w->met};
  if (!w->restarts) return;
  each_read(n, ask, &f);
  for (size_t k = 0; k < n->n_outputs; k++)
    if (n->outputs[k]) w->met[n->outputs[k]->id].follows = f.any;
}
