// The table of the kinds of edits, and what their rows share.
#include "diagnose/edits/row.h"

static const assay_edit_row_t* const rows[] = {
#define ASSAY_EDIT_KIND(NAME, name) &assay_edit_row_##name,
#include "diagnose/edits/edit_kinds.inc"
#undef ASSAY_EDIT_KIND
};

const assay_edit_row_t* assay_edit_row(assay_edit_kind_t kind) { return rows[kind]; }

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
