// Weights as they were before they were rounded, left in the file.
#include "diagnose/kinds/rounded_left.h"

static bool is_read(const assay_model_t* model, const assay_value_t* v) {
  for (size_t g = 0; g < model->n_graphs; g++) {
    const assay_graph_t* graph = model->graphs[g];
    for (size_t i = 0; i < graph->n_outputs; i++)
      if (graph->outputs[i] == v) return true;
    for (size_t i = 0; i < graph->n_nodes; i++)
      for (size_t k = 0; k < graph->nodes[i]->n_inputs; k++)
        if (graph->nodes[i]->inputs[k] == v) return true;
  }
  return false;
}

// Squares; whoever rounds by what comes out moves weights by more than half a step.
static bool is_near(const assay_tensor_t* was, const assay_tensor_t* is,
                    const assay_tensor_t* reach) {
  static const double MOST = 4;
  double off = 0, allowed = 0;
  for (int64_t i = 0; i < is->size; i++) {
    const double d = assay_f64(was)[i] - assay_f64(is)[i];
    off += d * d;
    allowed += assay_f64(reach)[i] * assay_f64(reach)[i];
  }
  return off <= MOST * allowed;
}

assay_status_t assay_rounded_is_left(const assay_model_t* model, const assay_tensor_t* weight,
                                     const assay_tensor_t* reach, bool* out) {
  const assay_graph_t* g = model->graph;
  *out = false;
  for (size_t i = 0; !*out && i < g->n_initializers; i++) {
    const assay_value_t* v = g->initializers[i];
    assay_tensor_t* wide = NULL;
    if (!v->constant || v->constant->kind != ASSAY_KIND_TENSOR ||
        v->constant->type != ASSAY_TYPE_FLOAT || !assay_tensor_same_shape(v->constant, weight) ||
        is_read(model, v))
      continue;
    ASSAY_TRY(assay_tensor_widen(v->constant, &wide));
    *out = is_near(wide, weight, reach);
    assay_tensor_release(wide);
  }
  return NULL;
}
