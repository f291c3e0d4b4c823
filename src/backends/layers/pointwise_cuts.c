// Slices and Splits before pointwise nodes: these read what is taken where it lies.
#include <string.h>

#include "backends/layers/pointwise_internal.h"

bool pointwise_is_cut(const assay_node_t* n) {
  return !*n->domain && n->n_inputs && n->inputs[0] &&
         (strcmp(n->op_type, "Slice") == 0 || strcmp(n->op_type, "Split") == 0);
}

const pointwise_cut_t* pointwise_cut_of(const pointwise_compiler_t* c, const assay_value_t* v) {
  for (size_t i = 0; i < c->n_cuts; i++)
    if (c->cuts[i].value == v) return &c->cuts[i];
  return NULL;
}

// A part of a part is one of the whole.
static bool join(const layer_slice_t* outer, int rank, layer_slice_t* in_out) {
  for (int d = 0; d < rank; d++) {
    if (in_out->step[d] < 0) return false;
    in_out->first[d] = outer->first[d] + in_out->first[d] * outer->step[d];
    if (!assay_mul_i64(in_out->step[d], outer->step[d], &in_out->step[d])) return false;
  }
  return true;
}

bool pointwise_cut_node(pointwise_compiler_t* c, const assay_node_t* n) {
  layer_slice_t parts[ASSAY_KERNEL_OPERANDS], outer = {.first = {0}};
  const pointwise_cut_t* of = pointwise_cut_of(c, n->inputs[0]);
  const int input = of ? of->input : assay_sized_input_index(c->l, n->inputs[0]);
  // Of what is moved before, whoever reads the part takes it by rows.
  if (input < 0) return layer_moved_source(c->l, n->inputs[0]);
  const assay_operand_t* x = &c->l->in[input];
  for (int d = 0; d < x->rank; d++) outer.step[d] = 1;
  if (of) outer = of->slice;
  const int64_t* dims = of ? outer.dims : x->dims;
  const bool known = strcmp(n->op_type, "Slice") == 0
                         ? n->n_outputs == 1 && layer_slice_read(c->l, n, x->rank, dims, parts)
                         : layer_split_read(c->l, n, x->rank, dims, parts);
  for (size_t i = 0; known && i < n->n_outputs; i++) {
    if (!n->outputs[i]) continue;
    if (c->n_cuts == POINTWISE_CUTS || !join(&outer, x->rank, &parts[i])) return false;
    c->cuts[c->n_cuts++] = (pointwise_cut_t){n->outputs[i], input, parts[i]};
  }
  return known;
}
