// Which layers read and make which values of the top graph.
#include "exec/segment/lifetimes.h"

#include "base/alloc.h"
#include "exec/segment/value_slot.h"

static assay_status_t append(assay_value_list_t* l, const assay_value_t* v) {
  ASSAY_TRY(assay_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at));
  l->at[l->n++] = v;
  return NULL;
}

static assay_status_t note_read(const assay_layers_t* layers, assay_value_list_t* reads,
                                const assay_value_t* v) {
  if (!v || v->graph != layers->model->graph || layers->hidden_value[v->id]) return NULL;
  for (size_t i = 0; i < reads->n; i++)
    if (reads->at[i] == v) return NULL;
  return append(reads, v);
}

static assay_status_t note_node(const assay_layers_t* layers, assay_value_list_t* reads,
                                const assay_node_t* node) {
  for (size_t i = 0; i < node->n_inputs; i++) ASSAY_TRY(note_read(layers, reads, node->inputs[i]));
  for (size_t a = 0; a < node->n_attrs; a++) {
    const assay_attr_t* attr = &node->attrs[a];
    const bool single = attr->type == ASSAY_ATTR_GRAPH;
    if (!single && attr->type != ASSAY_ATTR_GRAPHS) continue;
    for (size_t k = 0; k < (single ? 1 : attr->n); k++) {
      const assay_graph_t* body = single ? attr->u.g : attr->u.graphs[k];
      for (size_t i = 0; i < body->n_nodes; i++)
        ASSAY_TRY(note_node(layers, reads, body->nodes[i]));
      for (size_t i = 0; i < body->n_outputs; i++)
        ASSAY_TRY(note_read(layers, reads, body->outputs[i]));
    }
  }
  return NULL;
}

static assay_status_t find(const assay_layers_t* layers, const assay_value_t** value,
                           assay_lifetimes_t* l) {
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* layer = &layers->layers[i];
    const assay_node_t* end = layer->nodes[layer->n_nodes - 1];
    for (size_t k = 0; k < layer->n_nodes; k++)
      ASSAY_TRY(note_node(layers, &l->reads[i], layer->nodes[k]));
    for (size_t k = 0; k < l->reads[i].n; k++) value[l->reads[i].at[k]->id] = l->reads[i].at[k];
    for (size_t k = 0; k < l->reads[i].n; k++) l->last[l->reads[i].at[k]->id] = (int)i;
    for (size_t k = 0; k < end->n_outputs; k++) {
      if (!end->outputs[k]) continue;
      value[end->outputs[k]->id] = end->outputs[k];
      l->last[end->outputs[k]->id] = (int)i;
    }
  }
  for (int v = 0; v < layers->model->n_values; v++)
    if (value[v] && !value[v]->is_output && !assay_value_slot_constant(value[v]))
      ASSAY_TRY(append(&l->ends[l->last[v]], value[v]));
  return NULL;
}

assay_status_t assay_lifetimes_find(const assay_layers_t* layers, assay_lifetimes_t* out) {
  const assay_value_t** value = NULL;
  const size_t n = (size_t)layers->model->n_values;
  *out = (assay_lifetimes_t){.n_layers = layers->n_layers};
  assay_status_t st = assay_new_array(layers->n_layers, sizeof *out->reads, &out->reads);
  if (!st) st = assay_new_array(layers->n_layers, sizeof *out->ends, &out->ends);
  if (!st) st = assay_new_array(n, sizeof *out->last, &out->last);
  if (!st) st = assay_new_array(n, sizeof *value, &value);
  for (size_t v = 0; !st && v < n; v++) out->last[v] = -1;
  if (!st) st = find(layers, value, out);
  assay_free(value);
  if (st) assay_lifetimes_deinit(out);
  return st;
}

void assay_lifetimes_deinit(assay_lifetimes_t* l) {
  for (size_t i = 0; i < l->n_layers; i++) {
    if (l->reads) assay_free(l->reads[i].at);
    if (l->ends) assay_free(l->ends[i].at);
  }
  assay_free(l->reads);
  assay_free(l->ends);
  assay_free(l->last);
  *l = (assay_lifetimes_t){0};
}
