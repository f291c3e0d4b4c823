// The mean over all places of a quantized image, quantized again: DequantizeLinear, ReduceMean or
// GlobalAveragePool, QuantizeLinear. The pass `quantized_means` groups the nodes and leaves them as
// they are; a tactic that asks assay_quantized_mean_read() what the layer computes adds up
// integers.
#ifndef ASSAY_PASSES_INT8_QUANTIZED_MEAN_H_
#define ASSAY_PASSES_INT8_QUANTIZED_MEAN_H_

#include "ir/ir.h"

enum { ASSAY_QUANTIZED_MEAN_NODES = 3 };

typedef struct assay_quantized_mean {
  const assay_value_t *x, *y;  // both quantized
  assay_type_t x_type, type;
  float x_scale, x_zero, scale, zero;
} assay_quantized_mean_t;

// What the nodes of a layer, in order, compute. False: they are none that this pass made.
bool assay_quantized_mean_read(const assay_node_t* const* nodes, size_t n,
                               assay_quantized_mean_t* out);

#endif  // ASSAY_PASSES_INT8_QUANTIZED_MEAN_H_
