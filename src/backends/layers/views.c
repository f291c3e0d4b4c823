// Layers that only give an input another shape.
#include "backends/layers/views.h"

#include <string.h>

static bool only_reshapes(const assay_node_t* n) {
  static const char* const names[] = {"Reshape",   "Flatten",  "Squeeze",
                                      "Unsqueeze", "Identity", "Dropout"};
  if (*n->domain || !n->n_outputs) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(n->op_type, names[i]) == 0) return true;
  return false;
}

// Whether only places are joined or parted: what lies channels last, does so in the new shape.
static bool keeps_channels(const assay_operand_t* x, const assay_operand_t* y) {
  return x->rank >= 3 && y->rank >= 3 && x->dims[0] == y->dims[0] && x->dims[1] == y->dims[1];
}

bool layer_view_read(const assay_sized_layer_t* l, assay_kernel_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  if (l->layer->n_nodes != 1 || !only_reshapes(n) || l->n_out != 1 || !l->out[0].value)
    return false;
  const assay_operand_t* x = assay_sized_input(l, n->inputs[0]);
  // Dropout may draw; in a format of its own the layer has to round.
  const bool training =
      strcmp(n->op_type, "Dropout") == 0 && n->schema && (n->schema->since < 7 || n->n_inputs > 2);
  if (!x || training || x->size != l->out[0].size || x->type != l->out[0].type) return false;
  k->in_place = assay_sized_input_index(l, n->inputs[0]);
  const assay_storage_t form = {x->type,
                                keeps_channels(x, &l->out[0]) ? x->layout : ASSAY_LAYOUT_PLAIN};
  k->in[k->in_place] = k->out[0] = form;
  return true;
}
