// How the layers of a plan hang together: which float values pass between them.
#include "tune/layout.h"

#include <string.h>

#include "base/alloc.h"

typedef struct walk {
  const assay_plan_t* plan;
  const assay_layers_t* layers;
  assay_tune_layout_t* l;
  size_t* readers;  // of the value at hand
  size_t n_readers;
} walk_t;

size_t assay_tune_unit_of(const assay_plan_t* plan, const assay_node_t* node) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  while (node && node->graph != layers->model->graph) node = node->graph->owner;
  const int at = node ? layers->layer_of_node[node->id] : -1;
  return at >= 0 && (size_t)at < layers->n_layers ? (size_t)at : ASSAY_TUNE_OUTSIDE;
}

static bool is_float(const assay_value_t* v) {
  return v && !v->constant && v->type && v->type->kind == ASSAY_KIND_TENSOR &&
         v->type->elem == ASSAY_TYPE_FLOAT;
}

// Sizes are read off a value without its elements.
static bool reads_sizes_only(const assay_node_t* n) {
  return strcmp(n->op_type, "Shape") == 0 || strcmp(n->op_type, "Size") == 0;
}

static void add_reader(walk_t* w, size_t unit) {
  for (size_t i = 0; i < w->n_readers; i++)
    if (w->readers[i] == unit) return;
  w->readers[w->n_readers++] = unit;
}

// Which nodes read which values: by value id, a list that is linked through `next`.
typedef struct reads {
  size_t* first;  // by value id: 1 + entry; 0: none
  size_t* next;
  size_t* unit;
  size_t n, cap_next, cap_unit;
} reads_t;

static assay_status_t note_reads(walk_t* w, reads_t* r) {
  const assay_model_t* m = w->layers->model;
  for (size_t g = 0; g < m->n_graphs; g++) {
    for (size_t i = m->graphs[g]->n_nodes; i-- > 0;) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      const size_t unit = assay_tune_unit_of(w->plan, n);
      if (unit == ASSAY_TUNE_OUTSIDE || reads_sizes_only(n)) continue;
      for (size_t k = 0; k < n->n_inputs; k++) {
        if (!n->inputs[k]) continue;
        ASSAY_TRY(assay_grow(&r->next, &r->cap_next, r->n + 1, sizeof *r->next));
        ASSAY_TRY(assay_grow(&r->unit, &r->cap_unit, r->n + 1, sizeof *r->unit));
        r->next[r->n] = r->first[n->inputs[k]->id];
        r->unit[r->n] = unit;
        r->first[n->inputs[k]->id] = ++r->n;
      }
    }
  }
  return NULL;
}

static assay_status_t add_value(walk_t* w, const reads_t* r, const assay_value_t* v, size_t maker) {
  assay_tune_layout_t* l = w->l;
  const assay_graph_t* g = w->layers->model->graph;
  if (!is_float(v) || w->layers->hidden_value[v->id] || l->value_of_id[v->id] >= 0) return NULL;
  w->n_readers = 0;
  for (size_t at = r->first[v->id]; at; at = r->next[at - 1])
    if (r->unit[at - 1] != maker) add_reader(w, r->unit[at - 1]);
  for (size_t i = 0; i < g->n_outputs; i++)
    if (g->outputs[i] == v) add_reader(w, ASSAY_TUNE_OUTSIDE);
  if (maker == ASSAY_TUNE_OUTSIDE && !w->n_readers) return NULL;
  l->value_of_id[v->id] = (int)l->problem.n_values;
  l->value_ids[l->problem.n_values] = v->id;
  if (maker != ASSAY_TUNE_OUTSIDE) l->floats[maker] = true;
  for (size_t i = 0; i < w->n_readers; i++)
    if (w->readers[i] != ASSAY_TUNE_OUTSIDE) l->floats[w->readers[i]] = true;
  return assay_tune_add_value(&l->problem, maker, w->n_readers, w->readers);
}

static assay_status_t add_values(walk_t* w, const reads_t* r) {
  const assay_graph_t* g = w->layers->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++)
    ASSAY_TRY(add_value(w, r, g->inputs[i], ASSAY_TUNE_OUTSIDE));
  for (size_t u = 0; u < w->layers->n_layers; u++) {
    const assay_layer_t* layer = &w->layers->layers[u];
    for (size_t k = 0; k < layer->n_nodes; k++)
      for (size_t o = 0; o < layer->nodes[k]->n_outputs; o++)
        ASSAY_TRY(add_value(w, r, layer->nodes[k]->outputs[o], u));
  }
  return assay_tune_index(&w->l->problem);
}

static assay_status_t make(walk_t* w) {
  assay_tune_layout_t* l = w->l;
  reads_t r = {0};
  ASSAY_TRY(assay_new_array(l->n_ids, sizeof *l->value_ids, &l->value_ids));
  ASSAY_TRY(assay_new_array(l->n_ids, sizeof *l->value_of_id, &l->value_of_id));
  ASSAY_TRY(assay_new_array(l->n_units, sizeof *l->floats, &l->floats));
  for (size_t i = 0; i < l->n_ids; i++) l->value_of_id[i] = -1;
  assay_status_t st = assay_new_array(l->n_units + 1, sizeof *w->readers, &w->readers);
  if (!st) st = assay_new_array(l->n_ids, sizeof *r.first, &r.first);
  if (!st) st = note_reads(w, &r);
  if (!st) st = add_values(w, &r);
  assay_free(w->readers);
  assay_free(r.first);
  assay_free(r.next);
  assay_free(r.unit);
  return st;
}

assay_status_t assay_tune_layout_create(const assay_plan_t* plan, size_t n_formats,
                                        assay_tune_layout_t* out) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  assay_tune_layout_t l = {.n_units = layers->n_layers,
                           .n_outputs = layers->model->graph->n_outputs,
                           .n_ids = (size_t)layers->model->n_values};
  walk_t w = {.plan = plan, .layers = layers, .l = &l};
  ASSAY_TRY(assay_tune_problem_create(l.n_units, n_formats, l.n_outputs, &l.problem));
  assay_status_t st = make(&w);
  if (st) return assay_tune_layout_deinit(&l), st;
  *out = l;
  return NULL;
}

void assay_tune_layout_deinit(assay_tune_layout_t* l) {
  assay_tune_problem_deinit(&l->problem);
  assay_free(l->value_ids);
  assay_free(l->value_of_id);
  assay_free(l->floats);
  *l = (assay_tune_layout_t){0};
}
