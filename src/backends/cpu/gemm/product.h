// What a layer that begins with MatMul or Gemm multiplies, for kernels that take any of them.
#ifndef ASSAY_BACKENDS_CPU_GEMM_PRODUCT_H_
#define ASSAY_BACKENDS_CPU_GEMM_PRODUCT_H_

#include "backends/cpu/tactic.h"

// y[batch..., m, n] = x[batch..., m, k] * w[batch..., k, n] + bias[n]. Dimensions of the batch are
// 1 where an operand is the same for all.
typedef struct cpu_product {
  int rank;
  int64_t x[ASSAY_KERNEL_RANK], w[ASSAY_KERNEL_RANK], y[ASSAY_KERNEL_RANK];
  bool x_swapped, w_swapped;  // the last two dimensions lie the other way round in memory
  const assay_operand_t *in, *weights, *bias;  // bias: a constant row; NULL: none
} cpu_product_t;

// Whether the elements lie in one row, as those of a bias that is the same for all rows do; a
// number is a row, too.
bool cpu_is_row(const assay_operand_t* o);

// False: the layer does not begin with a product of floats that fits this form. Factors of Gemm
// other than 1 do not.
bool cpu_product_read(const assay_sized_layer_t* l, cpu_product_t* p);

#endif  // ASSAY_BACKENDS_CPU_GEMM_PRODUCT_H_
