// The two halves of a quantized tensor, multiplied and quantized again: Split, two
// DequantizeLinear, Mul, QuantizeLinear. The pass `quantized_gates` groups the nodes and leaves
// them as they are; a tactic that asks assay_quantized_gate_read() what the layer computes reads
// both halves where they lie.
#ifndef ASSAY_PASSES_INT8_QUANTIZED_GATE_H_
#define ASSAY_PASSES_INT8_QUANTIZED_GATE_H_

#include "ir/ir.h"

enum { ASSAY_QUANTIZED_GATE_NODES = 5 };

typedef struct assay_quantized_gate {
  const assay_value_t *x, *y;  // both quantized
  assay_type_t x_type, type;
  int rank, axis;           // of x; which is halved
  float scale[2], zero[2];  // of the halves
  float y_scale, y_zero;
} assay_quantized_gate_t;

// What the nodes of a layer, in order, compute. False: they are none that this pass made.
bool assay_quantized_gate_read(const assay_node_t* const* nodes, size_t n,
                               assay_quantized_gate_t* out);

#endif  // ASSAY_PASSES_INT8_QUANTIZED_GATE_H_
