// Where a model can be cut for debug reduce: in front of and after each of its nodes, in their
// order.
#include "frontends/polygraphy/debug/debug_cut.h"

#include <stdint.h>
#include <string.h>

#include "edit/editor.h"

// ---- places -------------------------------------------------------------------------------------

static void use_graph(pg_cuts_t* c, const assay_graph_t* g, size_t place);

// What a node reads, also in its bodies.
static void use(pg_cuts_t* c, const assay_node_t* n, size_t place) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) c->used[n->inputs[i]->id] = place + 1;
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    if (attr->type == ASSAY_ATTR_GRAPH) use_graph(c, attr->u.g, place);
    for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
      use_graph(c, attr->u.graphs[k], place);
  }
}

static void use_graph(pg_cuts_t* c, const assay_graph_t* g, size_t place) {
  for (size_t i = 0; i < g->n_nodes; i++) use(c, g->nodes[i], place);
  for (size_t i = 0; i < g->n_outputs; i++) c->used[g->outputs[i]->id] = place + 1;
}

static bool is_used(const pg_cuts_t* c, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (v && !v->constant && (v->is_output || c->used[v->id])) return true;
  }
  return false;
}

// The nodes that outputs of the model depend on are places; what others read does not count.
static void find_places(pg_cuts_t* c, const assay_graph_t* g) {
  for (size_t i = g->n_nodes; i-- > 0;)
    if (is_used(c, g->nodes[i])) use(c, g->nodes[i], 0);
  for (size_t i = 0; i < g->n_nodes; i++)
    if (is_used(c, g->nodes[i])) c->nodes[c->n++] = g->nodes[i];
  memset(c->used, 0, (size_t)c->model->n_values * sizeof *c->used);
}

// Labels of nodes without names depend on what stands around them: a part calls them as the whole.
static void name_nodes(assay_model_t* m) {
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    if (!*m->graph->nodes[i]->name) m->graph->nodes[i]->name = m->graph->nodes[i]->label;
}

assay_status_t pg_cuts_find(assay_arena_t* arena, assay_model_t* model, pg_cuts_t* out) {
  const assay_graph_t* g = model->graph;
  const size_t n_values = (size_t)model->n_values;
  pg_cuts_t c = {.model = model};
  ASSAY_TRY(assay_arena_new(arena, g->n_nodes, sizeof *c.nodes, &c.nodes));
  ASSAY_TRY(assay_arena_new(arena, n_values, sizeof *c.made, &c.made));
  ASSAY_TRY(assay_arena_new(arena, n_values, sizeof *c.used, &c.used));
  name_nodes(model);
  for (size_t i = 0; i < n_values; i++) c.made[i] = SIZE_MAX;
  find_places(&c, g);
  for (size_t i = 0; i < c.n; i++) {
    const assay_node_t* n = c.nodes[i];
    use(&c, n, i);
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k] && !n->outputs[k]->constant) c.made[n->outputs[k]->id] = i;
  }
  c.model = assay_model_retain(model);
  *out = c;
  return NULL;
}

void pg_cuts_release(pg_cuts_t* c) {
  assay_model_release(c->model);
  c->model = NULL;
}

// ---- what passes a place ------------------------------------------------------------------------

static void add(pg_values_t* list, const assay_value_t* v) { list->items[list->n++] = v; }

static assay_status_t make_list(assay_arena_t* arena, const pg_cuts_t* c, pg_values_t* out) {
  out->n = 0;
  return assay_arena_new(arena, (size_t)c->model->n_values, sizeof *out->items, &out->items);
}

assay_status_t pg_cuts_outputs(assay_arena_t* arena, const pg_cuts_t* c, size_t last,
                               pg_values_t* out) {
  ASSAY_TRY(make_list(arena, c, out));
  for (size_t i = 0; i <= last; i++)
    for (size_t k = 0; k < c->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = c->nodes[i]->outputs[k];
      if (v && !v->constant && (v->is_output || c->used[v->id] > last + 1)) add(out, v);
    }
  return NULL;
}

assay_status_t pg_cuts_own_outputs(assay_arena_t* arena, const pg_cuts_t* c, size_t at,
                                   pg_values_t* out) {
  ASSAY_TRY(make_list(arena, c, out));
  for (size_t k = 0; k < c->nodes[at]->n_outputs; k++) {
    const assay_value_t* v = c->nodes[at]->outputs[k];
    if (v && !v->constant && (v->is_output || c->used[v->id])) add(out, v);
  }
  return NULL;
}

assay_status_t pg_cuts_inputs(assay_arena_t* arena, const pg_cuts_t* c, size_t first,
                              pg_values_t* out_in, pg_values_t* out_out) {
  const assay_graph_t* g = c->model->graph;
  ASSAY_TRY(make_list(arena, c, out_in));
  ASSAY_TRY(make_list(arena, c, out_out));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (!g->inputs[i]->constant && c->used[g->inputs[i]->id] > first) add(out_in, g->inputs[i]);
  for (size_t i = 0; i < first; i++)
    for (size_t k = 0; k < c->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = c->nodes[i]->outputs[k];
      if (v && !v->constant && c->used[v->id] > first) add(out_in, v);
    }
  for (size_t i = 0; i < g->n_outputs; i++) {
    const size_t made = c->made[g->outputs[i]->id];
    if (made != SIZE_MAX && made >= first) add(out_out, g->outputs[i]);
  }
  return NULL;
}

// ---- parts --------------------------------------------------------------------------------------

static assay_status_t name_values(assay_arena_t* arena, const pg_values_t* values,
                                  assay_words_t* out) {
  const char** items;
  if (!values) return NULL;
  ASSAY_TRY(assay_arena_new(arena, values->n, sizeof *items, &items));
  for (size_t i = 0; i < values->n; i++) items[i] = values->items[i]->name;
  *out = (assay_words_t){items, values->n};
  return NULL;
}

assay_status_t pg_cuts_part(const pg_cuts_t* c, const pg_values_t* in, const pg_values_t* out,
                            assay_model_t** out_part) {
  const assay_editor_options_t options = {.no_proof = true};
  assay_edit_requests_t requests = {0};
  assay_edit_result_t r = {0};
  assay_arena_t* names = NULL;
  ASSAY_TRY(assay_arena_create(&names));
  assay_status_t st = name_values(names, in, &requests.from);
  if (!st) st = name_values(names, out, &requests.to);
  if (!st) st = assay_editor_run(&assay_editor_extract, c->model, &requests, &options, &r);
  assay_arena_destroy(names);
  if (st) return st;
  *out_part = assay_model_retain(r.model);
  assay_edit_result_deinit(&r);
  return NULL;
}
