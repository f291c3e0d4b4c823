// The layers of a plan as an ONNX model, to be looked at: --convert-to onnx-like-trt-network.
#include "frontends/polygraphy/inspect/network.h"

#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "formats/format.h"
#include "frontends/polygraphy/inspect/model_text.h"
#include "runtime/engine.h"

#define DOMAIN "assay"

typedef struct network {
  const pg_built_t* built;
  assay_model_t* m;       // a copy of the plan's, whose nodes become layers
  assay_value_t** by_id;  // its values, by id; NULL: of a body
} network_t;

static void list_values(network_t* t) {
  const assay_graph_t* g = t->m->graph;
  for (size_t i = 0; i < g->n_inputs; i++) t->by_id[g->inputs[i]->id] = g->inputs[i];
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    for (size_t k = 0; k < n->n_inputs; k++)
      if (n->inputs[k] && n->inputs[k]->graph == g) t->by_id[n->inputs[k]->id] = n->inputs[k];
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) t->by_id[n->outputs[k]->id] = n->outputs[k];
  }
}

// What a layer reads from outside, each once, constants apart: at most `capacity`.
static size_t find_inputs(const network_t* t, const assay_layer_t* l, size_t capacity,
                          assay_value_t** out) {
  size_t n = 0;
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_inputs; i++) {
      const assay_value_t* v = l->nodes[k]->inputs[i];
      size_t seen = 0;
      if (!v || v->constant || pg_is_made_within(l, v) || !t->by_id[v->id]) continue;
      while (seen < n && out[seen] != t->by_id[v->id]) seen++;
      if (seen == n && n < capacity) out[n++] = t->by_id[v->id];
    }
  return n;
}

// What a layer hands on: of all its nodes, but for what stays inside.
static size_t find_outputs(const network_t* t, const assay_layer_t* l, assay_value_t** out) {
  const bool* hidden = assay_plan_layers(assay_engine_plan(t->built->engine))->hidden_value;
  size_t n = 0;
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_outputs; i++) {
      const assay_value_t* v = l->nodes[k]->outputs[i];
      if (v && !hidden[v->id]) out[n++] = t->by_id[v->id];
    }
  return n;
}

static assay_status_t set_text(network_t* t, assay_attr_t* to, const char* name, const char* text) {
  const char* copy = NULL;
  ASSAY_TRY(assay_arena_strdup(t->m->arena, text, &copy));
  *to = (assay_attr_t){.name = name,
                       .doc = "",
                       .ref = "",
                       .n = 1,
                       .type = ASSAY_ATTR_STRING,
                       .u.s = {.text = copy, .len = strlen(copy)}};
  return NULL;
}

// "Conv_Relu" of the operators; the labels of what the nodes were in the file.
static assay_status_t describe(const network_t* t, const assay_layer_t* l, assay_str_t* op,
                               assay_str_t* origin) {
  const assay_plan_t* plan = assay_engine_plan(t->built->engine);
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(plan, &l->nodes[k]);
    assay_str_printf_raw(op, "%s%s", k ? "_" : "", l->nodes[k]->op_type);
    for (size_t i = 0; i < o.n; i++)
      assay_str_printf_raw(origin, "%s%s", origin->len ? ", " : "", o.nodes[i]->label);
  }
  assay_status_t st = assay_str_status(op);
  return st ? st : assay_str_status(origin);
}

static assay_status_t add_layer(network_t* t, const assay_layer_t* l, const char* tactic,
                                const char* op, const char* origin) {
  enum { FORMAT, TACTIC, ORIGIN, N_ATTRS };
  assay_graph_t* g = t->m->graph;
  assay_value_t **in = NULL, **made = NULL;
  assay_node_t* n = NULL;
  size_t capacity = 0, max = 0;
  for (size_t k = 0; k < l->n_nodes; k++) {
    capacity += l->nodes[k]->n_inputs;
    max += l->nodes[k]->n_outputs;
  }
  ASSAY_TRY(assay_arena_new(t->m->arena, capacity, sizeof *in, &in));
  ASSAY_TRY(assay_arena_new(t->m->arena, max, sizeof *made, &made));
  const size_t n_in = find_inputs(t, l, capacity, in), n_out = find_outputs(t, l, made);
  ASSAY_TRY(assay_node_create(g, DOMAIN, op, l->name, n_in, n_out, N_ATTRS, &n));
  for (size_t i = 0; i < n_in; i++) n->inputs[i] = in[i];
  for (size_t i = 0; i < n_out; i++) assay_node_set_output(n, i, made[i]);
  ASSAY_TRY(set_text(t, &n->attrs[FORMAT], "format", assay_format_name(l->format)));
  ASSAY_TRY(set_text(t, &n->attrs[TACTIC], "tactic", tactic));
  ASSAY_TRY(set_text(t, &n->attrs[ORIGIN], "origin", origin));
  n->n_attrs = N_ATTRS;
  return assay_graph_insert(g, n, g->n_nodes);
}

static assay_status_t add_layers(network_t* t) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(t->built->engine));
  for (size_t i = 0; i < layers->n_layers; i++) {
    assay_str_t op = {0}, origin = {0};
    const char* tactic = i < t->built->n_layers ? t->built->tactics[i] : NULL;
    assay_status_t st = describe(t, &layers->layers[i], &op, &origin);
    if (!st)
      st = add_layer(t, &layers->layers[i], tactic ? tactic : "", assay_str_get(&op),
                     assay_str_get(&origin));
    assay_str_deinit(&op);
    assay_str_deinit(&origin);
    ASSAY_TRY(st);
  }
  return NULL;
}

// Weights are left out; what is known of values stays.
static assay_status_t strip(network_t* t) {
  assay_model_t* m = t->m;
  assay_graph_t* g = m->graph;
  size_t n = 0;
  assay_opset_t* all = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, m->n_opsets + 1, sizeof *all, &all));
  if (m->n_opsets) memcpy(all, m->opsets, m->n_opsets * sizeof *all);
  all[m->n_opsets++] = (assay_opset_t){DOMAIN, 1};
  m->opsets = all;
  m->n_functions = 0;
  for (size_t i = 0; i < g->n_inputs; i++)
    if (!g->inputs[i]->constant) g->inputs[n++] = g->inputs[i];
  g->n_inputs = n;
  g->n_nodes = g->n_initializers = g->n_value_info = 0;
  g->extra = (assay_bytes_t){0};
  return NULL;
}

// Types of what layers hand on, where they are known.
static assay_status_t add_info(network_t* t) {
  assay_graph_t* g = t->m->graph;
  size_t capacity = 0;
  for (size_t i = 0; i < g->n_nodes; i++) capacity += g->nodes[i]->n_outputs;
  ASSAY_TRY(assay_arena_new(t->m->arena, capacity, sizeof *g->value_info, &g->value_info));
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) {
      assay_value_t* v = g->nodes[i]->outputs[k];
      if (!v || v->is_output) continue;
      if (!v->declared) v->declared = v->type;
      if (v->declared) g->value_info[g->n_value_info++] = v;
    }
  return NULL;
}

assay_status_t pg_network(const pg_built_t* built, assay_model_t** out) {
  network_t t = {.built = built};
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(built->engine));
  ASSAY_TRY(assay_model_clone(layers->model, &t.m));
  assay_status_t st = assay_new_array((size_t)t.m->n_values, sizeof *t.by_id, &t.by_id);
  if (!st) list_values(&t);
  if (!st) st = strip(&t);
  if (!st) st = add_layers(&t);
  if (!st) st = add_info(&t);
  assay_free(t.by_id);
  if (st) return assay_model_release(t.m), st;
  *out = t.m;
  return NULL;
}
