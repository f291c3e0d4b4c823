// How the halves of a tensor lie in memory, for the kernels that multiply them.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_GLU_HALVES_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_GLU_HALVES_H_

#include "exec/kernel.h"

// Of a tensor that is cut in halves like y along an axis: how many elements of a half lie together,
// those of the axis and of what is inside it.
static inline int64_t cpu_glu_half_run(const assay_operand_t* y, int axis, assay_layout_t layout) {
  const int64_t inside = assay_dims_product(y->dims, axis, y->rank);
  if (layout == ASSAY_LAYOUT_PLAIN || axis == 0) return inside;
  return axis == 1 ? y->dims[1] : inside * y->dims[1];
}

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_GLU_HALVES_H_
