// Accuracy gates tested on the user's inputs: whether a tactic that serves fp32 by its error model
// (exec/choice/accuracy_gate.h) keeps its condition on what really came in.
#ifndef ASSAY_ACCOUNT_GATED_H_
#define ASSAY_ACCOUNT_GATED_H_

#include "account/local.h"
#include "exec/choice/accuracy_gate.h"

// Of a layer, over all its runs.
typedef struct assay_gated {
  bool here;                   // a gated tactic has run the layer
  assay_accuracy_gate_t gate;  // what it asked, by its model
  // Sums of squares over the elements of its outputs: the layer's own error, that of plain sums
  // (the emulated engine's) on the same inputs, and the guaranteed bound of those.
  double own2, plain2, bound2;
} assay_gated_t;

// Adds one run, whose inputs are finite.
assay_status_t assay_gated_measure(assay_locals_t* locals, const assay_layer_t* layer,
                                   const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                   const assay_rounding_t* rounding, const assay_local_t* local,
                                   assay_tensor_t* const* engine,
                                   assay_gated_t* out) ASSAY_MUST_USE;
// Whether the condition that it asked for holds, root mean square: tight's, own <= 2 plain, or, for
// bound, that or 6 own <= bound.
bool assay_gated_holds(const assay_gated_t* l);

#endif  // ASSAY_ACCOUNT_GATED_H_
