#include "edit/names.h"

#include <string.h>

#include "base/alloc.h"

enum { NEAREST = 3, MAX_NAME = 200 };

int assay_names_distance(const char* a, const char* b, int limit) {
  int row[MAX_NAME + 1];
  const int n = (int)strnlen(a, MAX_NAME), m = (int)strnlen(b, MAX_NAME);
  if (n - m > limit || m - n > limit) return limit;
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      const int kept = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      row[j] = kept < best ? kept : best;
    }
  }
  return row[m] < limit ? row[m] : limit;
}

// ---- the nearest names --------------------------------------------------------------------------

typedef struct nearest {
  const char* wanted;
  const char* names[NEAREST];
  int distances[NEAREST];
  int n;
} nearest_t;

// A name that holds the other one is near, whatever its length.
static int distance(const char* wanted, const char* name) {
  const int limit = (int)strnlen(wanted, MAX_NAME) / 2 + 2;
  if (*wanted && strstr(name, wanted)) return 1;
  return assay_names_distance(wanted, name, limit) < limit
             ? assay_names_distance(wanted, name, limit)
             : -1;
}

static void offer(nearest_t* near, const char* name) {
  const int d = *name ? distance(near->wanted, name) : -1;
  if (d < 0) return;
  for (int i = 0; i < near->n; i++)
    if (strcmp(near->names[i], name) == 0) return;
  int at = near->n < NEAREST ? near->n++ : NEAREST;
  for (; at > 0 && near->distances[at - 1] > d; at--)
    if (at < NEAREST) {
      near->names[at] = near->names[at - 1];
      near->distances[at] = near->distances[at - 1];
    }
  if (at == NEAREST) return;
  near->names[at] = name;
  near->distances[at] = d;
}

static void put_nearest(const nearest_t* near, assay_str_t* out) {
  for (int i = 0; i < near->n; i++)
    assay_str_printf(out, "%s'%s'", i ? ", " : "; the nearest are ", near->names[i]);
}

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
  nearest_t near = {.wanted = name};
  const assay_graph_t* g = m->graph;
  for (size_t i = 0; i < g->n_inputs; i++) offer(&near, g->inputs[i]->name);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) offer(&near, g->nodes[i]->outputs[k]->name);
  for (size_t i = 0; i < g->n_initializers; i++) offer(&near, g->initializers[i]->name);
  bool is_node = false;
  for (size_t i = 0; i < g->n_nodes; i++) is_node |= strcmp(g->nodes[i]->label, name) == 0;
  assay_str_t text = {0};
  put_nearest(&near, &text);
  assay_status_t st = ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no value '%s'%s%s", name,
                                  is_node ? " (there is a node of that name: name its output)" : "",
                                  assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
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
  nearest_t near = {.wanted = pattern};
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const char* label = m->graphs[k]->nodes[i]->label;
      if (strcmp(pattern, label) == 0 || assay_glob_match(pattern, label)) return NULL;
      offer(&near, label);
    }
  assay_str_t text = {0};
  put_nearest(&near, &text);
  assay_status_t st =
      ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' matches no node%s", pattern, assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

assay_status_t assay_names_pair(assay_model_t* m, const char* option, const char* text,
                                const char** out_old, const char** out_new) {
  const char* equals = strrchr(text, '=');
  if (!equals || equals == text)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s '%s' is not OLD=NEW", option, text);
  ASSAY_TRY(assay_arena_strndup(m->arena, text, (size_t)(equals - text), out_old));
  return assay_arena_strdup(m->arena, equals + 1, out_new);
}
