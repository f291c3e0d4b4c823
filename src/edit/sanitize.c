// A model made smaller and cleaner: constants folded, dead and idle nodes gone, equal nodes and
// constants shared, names and types written down.
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "edit/types.h"
#include "edit/weights/store_codes.h"

// ---- passes -------------------------------------------------------------------------------------

static const struct {
  const char* name;
  bool folds, dedupes;
} used[] = {
    {"shape_arithmetic", true, false}, {"constant_folding", true, false},
    {"no_ops", false, false},          {"common_subexpressions", false, true},
    {"view_chains", false, false},     {"dead_code", false, false},
};

static bool is_used(const assay_edit_requests_t* w, const char* name) {
  for (size_t i = 0; i < sizeof used / sizeof *used; i++)
    if (strcmp(used[i].name, name) == 0)
      return !(used[i].folds && w->no_fold) && !(used[i].dedupes && w->no_dedupe);
  return false;
}

static assay_status_t run_passes(assay_editing_t* e) {
  const char** off = NULL;
  size_t n = 0, nodes = 0, left = 0;
  ASSAY_TRY(assay_new_array(assay_pass_count(), sizeof *off, &off));
  for (size_t i = 0; i < assay_pass_count(); i++)
    if (!is_used(e->requests, assay_pass_at(i)->name)) off[n++] = assay_pass_at(i)->name;
  const assay_pass_options_t options = {.off = off, .n_off = n};
  assay_status_t st = assay_editing_pass(e, NULL, &options);
  assay_free(off);
  if (st) return st;
  for (size_t k = 0; k < e->model->n_graphs; k++) nodes += e->model->graphs[k]->n_nodes;
  for (size_t k = 0; k < e->out->n_graphs; k++) left += e->out->graphs[k]->n_nodes;
  if (left < nodes) assay_editing_did(e, "nodes gone", nodes - left);
  return NULL;
}

// ---- initializers -------------------------------------------------------------------------------

static bool same_elements(const assay_tensor_t* a, const assay_tensor_t* b) {
  int64_t bytes;
  if (a->type != b->type || a->rank != b->rank || a->store != b->store ||
      a->store != ASSAY_STORE_PACKED || !assay_type_packed_bytes(a->type, a->size, &bytes) ||
      memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
    return false;
  return a->data == b->data || !bytes || memcmp(a->data, b->data, (size_t)bytes) == 0;
}

// The value that readers of an initializer read from now on: an equal one before it.
static assay_value_t* equal_before(const assay_graph_t* g, size_t i) {
  const assay_tensor_t* t = g->initializers[i]->constant;
  for (size_t k = 0; k < i; k++) {
    assay_value_t* v = g->initializers[k];
    if (!v->is_input && v->constant->size == t->size && same_elements(v->constant, t)) return v;
  }
  return NULL;
}

static assay_status_t share_initializers(assay_editing_t* e) {
  assay_model_t* m = e->out;
  assay_value_t** to = NULL;
  size_t shared = 0;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *to, &to));
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_initializers; i++) {
      assay_value_t* v = g->initializers[i];
      if (!assay_pass_constant(v) || v->is_output) continue;
      to[v->id] = equal_before(g, i);
      shared += to[v->id] != NULL;
    }
  }
  for (size_t k = 0; k < m->n_graphs && shared; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      assay_node_t* n = m->graphs[k]->nodes[i];
      for (size_t j = 0; j < n->n_inputs; j++)
        if (n->inputs[j] && to[n->inputs[j]->id]) n->inputs[j] = to[n->inputs[j]->id];
    }
  for (size_t k = 0; k < m->n_graphs && shared; k++) {
    assay_graph_t* g = m->graphs[k];
    size_t kept = 0;
    for (size_t i = 0; i < g->n_initializers; i++)
      if (!to[g->initializers[i]->id]) g->initializers[kept++] = g->initializers[i];
    g->n_initializers = kept;
    // Bodies hand on what they see.
    for (size_t i = 0; i < g->n_outputs; i++)
      if (to[g->outputs[i]->id]) g->outputs[i] = to[g->outputs[i]->id];
  }
  assay_editing_did(e, "initializers shared", shared);
  assay_free(to);
  return NULL;
}

// ---- what the file says -------------------------------------------------------------------------

static void name_nodes(assay_editing_t* e) {
  size_t n = 0;
  for (size_t k = 0; k < e->out->n_graphs; k++)
    for (size_t i = 0; i < e->out->graphs[k]->n_nodes; i++) {
      assay_node_t* node = e->out->graphs[k]->nodes[i];
      // Of nodes of the same name all but the first have a label of their own.
      if (strcmp(node->name, node->label) == 0) continue;
      node->name = node->label;
      n++;
    }
  assay_editing_did(e, "nodes named", n);
}

static assay_status_t list_types(assay_editing_t* e) {
  size_t added = 0;
  ASSAY_TRY(assay_types_list(e->out, &added));
  assay_editing_did(e, "types listed", added);
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  size_t n_codes = 0;
  ASSAY_TRY(run_passes(e));
  if (e->requests->store_codes) ASSAY_TRY(assay_edit_store_codes(e, &n_codes));
  assay_editing_did(e, "weights stored as codes", n_codes);
  if (!e->requests->no_dedupe) ASSAY_TRY(share_initializers(e));
  if (!e->requests->no_names) name_nodes(e);
  return e->requests->no_shapes ? NULL : list_types(e);
}

const assay_editor_t assay_editor_sanitize = {
    .name = "sanitize",
    .summary =
        "constants folded, dead and idle nodes gone, equal ones shared, names and types written",
    .promise = ASSAY_PROMISE_ROUNDS,
    .run = run,
};
