// What a reducing node makes of which dimensions.
#include "backends/cuda/rows/reduced.h"

#include <string.h>

#include "backends/constants.h"

bool cuda_reduced_axes(const assay_sized_layer_t* l, const assay_node_t* n, int rank,
                       bool* reduced) {
  int64_t axes[ASSAY_KERNEL_RANK];
  int count;
  if (strncmp(n->op_type, "Global", 6) == 0) {
    for (int i = 0; i < rank; i++) reduced[i] = i >= 2;
    return rank >= 2;
  }
  if (!assay_known_list(l, n, "axes", 1, ASSAY_KERNEL_RANK, axes, &count)) return false;
  const bool all = count <= 0 && !assay_attr_i64(n, "noop_with_empty_axes", 0);
  for (int i = 0; i < rank; i++) reduced[i] = all;
  for (int i = 0; i < count; i++) {
    const int d = assay_known_axis(axes[i], rank);
    if (d < 0 || reduced[d]) return false;
    reduced[d] = true;
  }
  return true;
}

// The step in the output of each dimension of the input; false: the output has another shape.
static bool output_steps(const assay_operand_t* x, const assay_operand_t* y, const bool* reduced,
                         assay_layout_t layout, int64_t* steps) {
  const bool keeps = y->rank == x->rank;
  int order[ASSAY_KERNEL_RANK];
  int64_t own[ASSAY_KERNEL_RANK], step = 1;
  cuda_memory_order(y->rank, layout, order);
  for (int i = y->rank - 1; i >= 0; i--) {
    own[order[i]] = step;
    step *= y->dims[order[i]];
  }
  int at = 0;
  for (int i = 0; i < x->rank; i++) {
    steps[i] = 0;
    if (reduced[i] && !keeps) continue;
    if (at >= y->rank || y->dims[at] != (reduced[i] ? 1 : x->dims[i])) return false;
    steps[i] = own[at++];
  }
  return at == y->rank;
}

bool cuda_reduced_dims(const assay_sized_layer_t* l, const assay_operand_t* x, const bool* reduced,
                       cuda_reduced_t* out) {
  const assay_operand_t* y = &l->out[0];
  const bool last = assay_operand_is_channels_last(x);
  int order[ASSAY_KERNEL_RANK];
  int64_t steps[ASSAY_KERNEL_RANK];
  *out = (cuda_reduced_t){.x = (int)(x - l->in), .rank = x->rank, .terms = 1};
  out->from = last ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  out->to = last && y->rank == x->rank ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  if (!output_steps(x, y, reduced, out->to, steps)) return false;
  cuda_memory_order(x->rank, out->from, order);
  for (int i = 0; i < x->rank; i++) {
    const int d = order[i];
    out->dims[i] = (cuda_row_dim_t){.size = x->dims[d], .is_term = reduced[d], .to = steps[d]};
    if (reduced[d]) out->terms *= x->dims[d];
  }
  return true;
}
