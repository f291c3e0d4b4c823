// Models whose sizes are open, for runs in which they are not.
#include <string.h>

#include "base/alloc.h"
#include "onnx/load.h"

static const assay_valtype_t* type_of(const assay_value_t* v) {
  return v->type ? v->type : v->declared;
}

static const assay_input_shape_t* settled_for(size_t n, const assay_input_shape_t* settled,
                                              const assay_value_t* v) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(settled[i].name, v->name) == 0) return &settled[i];
  return NULL;
}

// Whether an input has open sizes; then all of its sizes with those closed in dims.
static bool close(const assay_value_t* v, int64_t batch, int64_t* dims) {
  const assay_valtype_t* t = type_of(v);
  bool open = false;
  if (v->constant || !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return false;
  for (int d = 0; d < t->rank; d++) {
    const bool known = t->dims[d] && assay_dim_value(t->dims[d], &dims[d]);
    if (!known) dims[d] = batch;
    open |= !known;
  }
  return open;
}

assay_status_t assay_onnx_close_sizes(assay_model_t* model, int64_t batch, size_t n_settled,
                                      const assay_input_shape_t* settled, assay_model_t** out) {
  const assay_graph_t* g = model->graph;
  assay_input_shape_t* shapes = NULL;
  int64_t(*dims)[ASSAY_MAX_RANK] = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *shapes, &shapes));
  assay_status_t st = assay_new_array(g->n_inputs, sizeof *dims, &dims);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    const assay_value_t* v = g->inputs[i];
    const assay_input_shape_t* own = settled_for(n_settled, settled, v);
    if (own)
      shapes[n++] = *own;
    else if (close(v, batch, dims[n]))
      shapes[n] = (assay_input_shape_t){v->name, type_of(v)->rank, dims[n]}, n++;
  }
  if (!st && n)
    st = assay_onnx_reshape(model, n, shapes, out);
  else if (!st)
    *out = assay_model_retain(model);
  assay_free(shapes);
  assay_free(dims);
  return st;
}
