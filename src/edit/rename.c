// Other names for values, nodes and open dimensions.
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "edit/names.h"

// Whether some graph of the model has a value of this name.
static bool is_taken(const assay_model_t* m, const char* name) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_inputs; i++)
      if (strcmp(g->inputs[i]->name, name) == 0) return true;
    for (size_t i = 0; i < g->n_initializers; i++)
      if (strcmp(g->initializers[i]->name, name) == 0) return true;
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t o = 0; o < g->nodes[i]->n_outputs; o++)
        if (g->nodes[i]->outputs[o] && strcmp(g->nodes[i]->outputs[o]->name, name) == 0)
          return true;
  }
  return false;
}

static assay_status_t rename_value(assay_model_t* m, const char* old, const char* name) {
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_names_value(m, old, &v));
  if (!*name) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the new name of '%s' is empty", old);
  if (strcmp(old, name) == 0) return NULL;
  if (is_taken(m, name))
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "'%s' cannot become '%s': a value of that name is there; rename that one first", old, name);
  assay_map_remove(&v->graph->values, old);
  v->name = name;
  return assay_map_put(&v->graph->values, name, (uint64_t)(uintptr_t)v, NULL);
}

static assay_status_t rename_node(assay_model_t* m, const char* old, const char* name) {
  assay_node_t* found = NULL;
  ASSAY_TRY(assay_names_node_pattern(m, old));
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      assay_node_t* n = m->graphs[k]->nodes[i];
      if (strcmp(n->label, old) == 0 && (!found || n->graph == m->graph)) found = n;
      if (*name && strcmp(n->label, name) == 0 && strcmp(old, name) != 0)
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "node '%s' cannot become '%s': there is a node of that name", old, name);
    }
  if (!found)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is a pattern: nodes are renamed one by one",
                       old);
  found->name = name;
  if (*name) found->label = name;
  return NULL;
}

// ---- dimensions ---------------------------------------------------------------------------------

static assay_status_t rename_in(assay_model_t* m, const assay_valtype_t** type, const char* old,
                                const assay_dim_t* to) {
  const assay_valtype_t* t = *type;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  bool any = false;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
  for (int i = 0; i < t->rank; i++) {
    dims[i] = t->dims[i] ? assay_dim_replace(m->dims, t->dims[i], old, to) : NULL;
    any |= dims[i] != t->dims[i];
  }
  return any ? assay_valtype_tensor(m, t->elem, t->rank, dims, type) : NULL;
}

static bool has_dim(const assay_model_t* m, const char* name) {
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    const assay_valtype_t* t = m->graph->inputs[i]->declared;
    for (int d = 0; t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && d < t->rank; d++) {
      const char* own = t->dims[d] ? assay_dim_name(t->dims[d]) : NULL;
      if (own && strcmp(own, name) == 0) return true;
    }
  }
  return false;
}

static assay_status_t rename_dim(assay_model_t* m, const char* old, const char* name) {
  if (!has_dim(m, old)) return ASSAY_ERROR(ASSAY_NOT_FOUND, "no input has a dimension '%s'", old);
  if (!*name) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the new name of '%s' is empty", old);
  if (has_dim(m, name))
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "'%s' cannot become '%s', which is another dimension: they need not be equal", old, name);
  const assay_dim_t* to = assay_dim_symbol(m->dims, name);
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_inputs; i++)
      ASSAY_TRY(rename_in(m, &g->inputs[i]->declared, old, to));
    for (size_t i = 0; i < g->n_outputs; i++)
      ASSAY_TRY(rename_in(m, &g->outputs[i]->declared, old, to));
    for (size_t i = 0; i < g->n_value_info; i++)
      ASSAY_TRY(rename_in(m, &g->value_info[i]->declared, old, to));
  }
  return assay_dims_status(m->dims);
}

// ---- the edit -----------------------------------------------------------------------------------

static assay_status_t each(assay_editing_t* e, const char* option, const assay_words_t* pairs,
                           assay_status_t (*rename)(assay_model_t* m, const char* old,
                                                    const char* name)) {
  for (size_t i = 0; i < pairs->n; i++) {
    const char *old = NULL, *name = NULL;
    ASSAY_TRY(assay_names_pair(e->out, option, pairs->items[i], &old, &name));
    ASSAY_TRY(assay_status_note(rename(e->out, old, name), "%s", option));
  }
  assay_editing_did(e, option + 2, pairs->n);
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  const assay_edit_requests_t* w = e->requests;
  if (!w->values.n && !w->renamed_nodes.n && !w->dims.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "say what to rename: --value, --node or --dim OLD=NEW");
  ASSAY_TRY(assay_model_clone(e->model, &e->out));
  ASSAY_TRY(each(e, "--value", &w->values, rename_value));
  ASSAY_TRY(each(e, "--node", &w->renamed_nodes, rename_node));
  return each(e, "--dim", &w->dims, rename_dim);
}

const assay_editor_t assay_editor_rename = {
    .name = "rename",
    .summary = "other names for values, nodes and open dimensions",
    .promise = ASSAY_PROMISE_SAME,
    .keeps_functions = true,
    .run = run,
};
