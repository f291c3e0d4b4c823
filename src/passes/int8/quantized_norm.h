// A layer normalization written out in nodes with quantizers between them, as tools quantize it
// that see its nodes one by one: from a quantized tensor to a quantized tensor.
//
//   d = x - mean(x),  y = d / sqrt(mean(d^2) + epsilon),  then y * factor and y + term, in any
//   number
//
// with QuantizeLinear and DequantizeLinear after the variance, the sum, the root, or several of
// them, after the quotient and after what follows it. The pass `quantized_norms` groups the nodes
// and leaves them as they are: with quantizers inside they are no LayerNormalization, and truth,
// bounds and the emulated engine are those of the nodes. A tactic asks assay_quantized_norm_read()
// what the layer computes.
#ifndef ASSAY_PASSES_INT8_QUANTIZED_NORM_H_
#define ASSAY_PASSES_INT8_QUANTIZED_NORM_H_

#include "ir/ir.h"

enum {
  ASSAY_QUANTIZED_NORM_NODES = 32,
  ASSAY_QUANTIZED_NORM_STAGES = 3,
  ASSAY_QUANTIZED_NORM_SIZE = 1 << 15  // elements that are normalized together, at most
};

// q = sat(rne(x / scale) + zero), and what it stands for: (q - back_zero) * back_scale.
typedef struct assay_norm_step {
  bool is_there;
  assay_type_t type;
  float scale, zero;            // of QuantizeLinear
  float back_scale, back_zero;  // of the DequantizeLinear after it; none after the last one
} assay_norm_step_t;

// x * factor + term, then quantized; a value that is NULL: that operation is not there.
typedef struct assay_norm_stage {
  const assay_value_t *factor, *term;
  assay_norm_step_t step;
} assay_norm_stage_t;

typedef struct assay_quantized_norm {
  const assay_value_t *x, *y;  // both quantized
  assay_type_t x_type;
  float x_scale, x_zero;
  int rank, n_axes;  // of x; how many are normalized over
  bool axes[8];
  const assay_value_t* epsilon;
  assay_norm_step_t of_variance, of_sum, of_root;  // one of them at least is there
  assay_norm_step_t of_quotient;
  assay_norm_stage_t stages[ASSAY_QUANTIZED_NORM_STAGES];
  int n_stages;
} assay_quantized_norm_t;

// What the nodes of a layer, in order, compute. False: they are none that this pass made.
bool assay_quantized_norm_read(const assay_node_t* const* nodes, size_t n,
                               assay_quantized_norm_t* out);

#endif  // ASSAY_PASSES_INT8_QUANTIZED_NORM_H_
