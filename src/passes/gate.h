// Tensors cut in two halves by a Split, and the halves multiplied (a gated linear unit without an
// activation). The pass `gates` groups Split and Mul and leaves them as they are; a tactic that
// asks assay_gate_read() what the layer computes reads both halves where they lie.
#ifndef ASSAY_PASSES_GATE_H_
#define ASSAY_PASSES_GATE_H_

#include "ir/ir.h"

enum { ASSAY_GATE_NODES = 2 };

typedef struct assay_gate {
  const assay_value_t *x, *y;
  int rank, axis;     // of x; which is halved
  int first, second;  // halves in the order in which they are multiplied: 0 and 1, or 1 and 0
} assay_gate_t;

// What the nodes of a layer, in order, compute. False: they are none that this pass made.
bool assay_gate_read(const assay_node_t* const* nodes, size_t n, assay_gate_t* out);

// Whether a node cuts its input in two halves of one static shape along an axis from 0 on.
bool assay_split_is_halves(const assay_node_t* split, int* out_rank, int* out_axis);

#endif  // ASSAY_PASSES_GATE_H_
