// What the parts of the repair search ask about repairs and values.
#include <math.h>
#include <string.h>

#include "diagnose/search_screening.h"

const assay_repair_t* assay_search_adopted(const assay_search_t* s, const assay_node_t* n) {
  for (size_t i = 0; i < s->n_adopted; i++)
    if (s->adopted[i]->node == n) return s->adopted[i];
  return NULL;
}

bool assay_search_same_tensor(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a == b) return true;
  if (!assay_tensor_same_shape(a, b) || a->store != b->store || a->store > ASSAY_STORE_C128)
    return false;
  return !memcmp(a->data, b->data, (size_t)a->size * assay_store_elem_bytes(a->store));
}

bool assay_search_blown_up(const assay_tensor_t* now, const assay_tensor_t* was) {
  enum { FACTOR = 8, SMALL = 4096 };
  if (!now || !was || now->kind != ASSAY_KIND_TENSOR || was->kind != ASSAY_KIND_TENSOR)
    return false;
  return now->size > SMALL && now->size / FACTOR > was->size;
}

double assay_search_first_step(const assay_repair_t* r) { return fmax(fabs(r->start), 0.1) / 64; }

bool assay_search_read_by_faulty(const assay_search_t* s, const assay_value_t* v) {
  if (!s->faulty) return true;
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; s->faulty[g->nodes[i]->id] && k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == v) return true;
  return false;
}
