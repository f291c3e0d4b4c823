// A model of a fixed batch, with its batch open.
#include "onnx/load.h"
#include "ops/infer.h"

static const assay_valtype_t* batched(const assay_value_t* v, int axis) {
  const assay_valtype_t* t = v->declared ? v->declared : v->type;
  const bool shaped = !v->constant && t && t->kind == ASSAY_KIND_TENSOR && t->has_shape;
  return shaped && t->rank > axis ? t : NULL;
}

// The first input's size along the axis; 0: it is open already, or there is none.
static int64_t batch_of(const assay_graph_t* g, int axis) {
  int64_t n;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = batched(g->inputs[i], axis);
    if (t) return assay_dim_value(t->dims[axis], &n) ? n : 0;
  }
  return 0;
}

static assay_status_t open_input(assay_model_t* m, assay_value_t* v, int axis, int64_t batch,
                                 const assay_dim_t* symbol) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  const assay_valtype_t* t = batched(v, axis);
  int64_t n;
  if (!t || !assay_dim_value(t->dims[axis], &n) || n != batch) return NULL;
  for (int d = 0; d < t->rank; d++) dims[d] = d == axis ? symbol : t->dims[d];
  v->open = NULL;
  return assay_valtype_tensor(m, t->elem, t->rank, dims, &v->declared);
}

assay_status_t assay_onnx_open_batch(assay_model_t* model, int axis, int64_t* out_batch,
                                     assay_model_t** out) {
  const int64_t batch = batch_of(model->graph, axis);
  *out_batch = batch;
  if (!batch) return *out = assay_model_retain(model), NULL;
  assay_model_t* m = NULL;
  ASSAY_TRY(assay_model_clone(model, &m));
  const assay_dim_t* symbol = assay_dim_fresh(m->dims, "batch");
  assay_graph_t* g = m->graph;
  assay_status_t st = NULL;
  // What the file says of sizes after the inputs holds for its own batch only.
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) g->nodes[i]->outputs[k]->declared = NULL;
  for (size_t i = 0; !st && i < g->n_inputs; i++)
    st = open_input(m, g->inputs[i], axis, batch, symbol);
  if (!st) st = assay_infer_model(m);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}
