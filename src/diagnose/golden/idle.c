// Faults in what nobody reads: exporters leave nodes behind that no output hangs on. What they make
// does not matter, and a repair beside them need not mend them, unless it reads what they make.
#include "base/alloc.h"
#include "diagnose/golden/walk.h"

static bool has_bodies(const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (!g->nodes[i]->op || g->nodes[i]->op->flags & ASSAY_OP_CONTROL) return true;
  return false;
}

// By value id, whether an output hangs on it.
static assay_status_t find_needed(const assay_graph_t* g, bool** out) {
  ASSAY_TRY(assay_new_array((size_t)g->model->n_values, sizeof **out, out));
  for (size_t i = 0; i < g->n_outputs; i++) (*out)[g->outputs[i]->id] = true;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* n = g->nodes[i];
    bool needed = false;
    for (size_t k = 0; k < n->n_outputs; k++) needed |= n->outputs[k] && (*out)[n->outputs[k]->id];
    for (size_t k = 0; needed && k < n->n_inputs; k++)
      if (n->inputs[k]) (*out)[n->inputs[k]->id] = true;
  }
  return NULL;
}

assay_status_t assay_golden_drop_idle(assay_golden_walk_t* w) {
  assay_export_t* e = w->out;
  const assay_graph_t* g = w->model->graph;
  bool* needed = NULL;
  // What bodies read is not listed.
  if (!e->n || e->outputs_only || has_bodies(g)) return NULL;
  ASSAY_TRY(find_needed(g, &needed));
  size_t n = 0;
  assay_status_t st = assay_new_array(e->n, sizeof *w->idle, &w->idle);
  for (size_t i = 0; i < e->n && !st; i++) {
    const assay_node_t* node = e->faults[i].node;
    bool any = false;
    for (size_t k = 0; k < node->n_outputs; k++)
      any |= node->outputs[k] && needed[node->outputs[k]->id];
    if (any)
      e->faults[n++] = e->faults[i];
    else
      w->idle[w->n_idle++] = e->faults[i];
  }
  if (!st) e->n = n;
  assay_free(needed);
  return st;
}

static assay_status_t revive(assay_golden_walk_t* w, bool* read) {
  assay_export_t* e = w->out;
  const assay_graph_t* g = w->model->graph;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* n = g->nodes[i];
    bool any = false;
    for (size_t k = 0; k < n->n_outputs; k++) any |= n->outputs[k] && read[n->outputs[k]->id];
    for (size_t k = 0; any && k < n->n_inputs; k++)
      if (n->inputs[k]) read[n->inputs[k]->id] = true;
  }
  for (size_t i = 0; i < w->n_idle; i++) {
    const assay_fault_t f = w->idle[i];
    if (!f.value || !read[f.value->id]) continue;
    ASSAY_TRY(assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults));
    e->faults[e->n++] = f;
    w->idle[i--] = w->idle[--w->n_idle];
  }
  return NULL;
}

assay_status_t assay_golden_revive_idle(assay_golden_walk_t* w, const assay_repair_t* r) {
  bool* read = NULL;
  bool any = false;
  if (!w->n_idle) return NULL;
  ASSAY_TRY(assay_new_array((size_t)w->model->n_values, sizeof *read, &read));
  for (size_t i = 0; i < r->n_edits; i++) {
    const assay_repair_edit_t* e = &r->edits[i];
    if (e->value) any = read[e->value->id] = true;
    if (e->formula) any |= assay_formula_mark(e->formula, read);
  }
  assay_status_t st = any ? revive(w, read) : NULL;
  assay_free(read);
  return st;
}
