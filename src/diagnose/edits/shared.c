// What rows of the kinds of edits share.
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
