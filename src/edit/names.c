// Values and nodes by the names that users give.
#include "edit/names.h"

#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"

// ---- values -------------------------------------------------------------------------------------

static const assay_node_t* top_owner(const assay_graph_t* g) {
  const assay_node_t* owner = NULL;
  for (; g->outer; g = g->outer) owner = g->owner;
  return owner;
}

static assay_status_t value_not_found(const assay_model_t* m, const char* name) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    const assay_node_t* owner = top_owner(g);
    if (g != m->graph && owner && owner->graph == m->graph && assay_graph_find(g, name))
      return ASSAY_ERROR(ASSAY_NOT_FOUND,
                         "value '%s' lies in a body of node '%s' (%s), and only values of the main "
                         "graph can be named; name what that node reads or makes",
                         name, owner->label, owner->op_type);
  }
  assay_nearest_t near = {.wanted = name};
  const assay_graph_t* g = m->graph;
  for (size_t i = 0; i < g->n_inputs; i++) assay_nearest_offer(&near, g->inputs[i]->name);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) assay_nearest_offer(&near, g->nodes[i]->outputs[k]->name);
  for (size_t i = 0; i < g->n_initializers; i++)
    assay_nearest_offer(&near, g->initializers[i]->name);
  bool is_node = false;
  for (size_t i = 0; i < g->n_nodes; i++) is_node |= strcmp(g->nodes[i]->label, name) == 0;
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no value '%s'%s%s", name,
                     is_node ? " (there is a node of that name: name its output)" : "",
                     ASSAY_NEAREST_TEXT(&near));
}

assay_status_t assay_names_value(const assay_model_t* m, const char* name, assay_value_t** out) {
  assay_value_t* v = assay_graph_find(m->graph, name);
  // The map also knows values that an edit left without anything that makes them.
  if (!v) return value_not_found(m, name);
  *out = v;
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

assay_status_t assay_names_node_pattern(const assay_model_t* m, const char* pattern) {
  assay_nearest_t near = {.wanted = pattern};
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const char* label = m->graphs[k]->nodes[i]->label;
      if (strcmp(pattern, label) == 0 || assay_glob_match(pattern, label)) return NULL;
      assay_nearest_offer(&near, label);
    }
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' matches no node%s", pattern, ASSAY_NEAREST_TEXT(&near));
}

assay_status_t assay_names_pair(assay_model_t* m, const char* option, const char* text,
                                const char** out_old, const char** out_new) {
  const char* equals = strrchr(text, '=');
  if (!equals || equals == text)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s '%s' is not OLD=NEW", option, text);
  ASSAY_TRY(assay_arena_strndup(m->arena, text, (size_t)(equals - text), out_old));
  return assay_arena_strdup(m->arena, equals + 1, out_new);
}
