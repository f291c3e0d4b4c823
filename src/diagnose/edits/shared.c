// What rows of the kinds of edits share.
#include <math.h>

#include "diagnose/edits/row.h"

size_t assay_repair_position(const assay_graph_t* g, const assay_node_t* n) {
  size_t i = 0;
  while (i < g->n_nodes && g->nodes[i] != n) i++;
  return i;
}

assay_status_t assay_repair_new_constant(assay_graph_t* g, const char* hint, assay_tensor_t* t,
                                         assay_value_t** out) {
  assay_tensor_t* packed = NULL;
  const char* name = NULL;
  ASSAY_TRY(assay_arena_printf(g->model->arena, &name, "%s_repaired", hint));
  ASSAY_TRY(assay_graph_new_value(g, name, out));
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  return assay_graph_set_initializer(*out, packed);
}

assay_status_t assay_repair_grow_inputs(assay_node_t* n, size_t input) {
  if (input < n->n_inputs) return NULL;
  assay_value_t** inputs = NULL;
  ASSAY_TRY(assay_arena_new(n->graph->model->arena, input + 1, sizeof(assay_value_t*), &inputs));
  for (size_t i = 0; i <= input; i++) inputs[i] = i < n->n_inputs ? n->inputs[i] : NULL;
  n->inputs = inputs;
  n->n_inputs = input + 1;
  return NULL;
}

assay_status_t assay_repair_scale_tensor(assay_repair_t* r, double value) {
  assay_repair_edit_t* e = &r->edits[0];
  // At 0 there would be no way back: what the factor is of would be lost. Next to it a fit goes on.
  if (value == 0) value = 1e-9 * r->value;
  const double factor = value / r->value;
  assay_tensor_t* t = NULL;
  if (r->value == 0 || !isfinite(factor))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a factor of 0 cannot be fitted");
  ASSAY_TRY(assay_tensor_copy(e->tensor, &t));
  for (int64_t i = 0; i < t->size; i++) assay_f64(t)[i] *= factor;
  assay_tensor_release(e->tensor);
  e->tensor = t;
  r->value = value;
  return NULL;
}
