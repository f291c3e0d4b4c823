// Truth of single layers, on the inputs that an engine gave them, with limits on what rounding can
// do there.
//
// A layer in a 16-bit format rounds what enters it (weights are stored as fp32 in the model). Its
// own error is measured from truth on what entered; limits are told from truth on the inputs as
// rounded, which is what the engine's arithmetic saw, so that the arithmetic is judged sharply.
//
// A layer in float64 is as fine as truth, whose own rounding is then not below 1/1000 of the
// layer's limits. There truth is made in double-double where the operator knows how
// (assay_op_t.twice); elsewhere truth's rounding bound says what cannot be told ('truth
// uncertain').
#ifndef ASSAY_ACCOUNT_LOCAL_H_
#define ASSAY_ACCOUNT_LOCAL_H_

#include "account/judge.h"
#include "eval/evaluator.h"
#include "exec/backend.h"

// One run of a layer.
typedef struct assay_local {
  size_t n_out;
  assay_tensor_t** truth;      // on what entered; by output of the layer's last node
  assay_tensor_t** converted;  // on what entered, rounded to the layer's format
  assay_limits_t* limits;      // of the engine's values from `converted`, before they are stored
  // How far `converted` itself may be off, where the layer's arithmetic is no coarser than truth's.
  // NULLs: within the last bit.
  assay_limits_t* doubt;
  // Where rounding leaves choices inside the layer open: limits as wide as what follows if they
  // come out otherwise. NULLs: as `limits`.
  assay_limits_t* flips;
  bool was_converted;  // the two truths may differ
  bool bounded;        // the limits were made: every operator of the layer has a bound
} assay_local_t;
void assay_local_deinit(assay_local_t* l);

typedef struct assay_locals assay_locals_t;    // makes them
typedef struct assay_special assay_special_t;  // account/special.h

// A value hidden in a layer: in truth on the converted inputs, and how far the engine's may lie
// from it (NULLs: not at all, or not known).
typedef struct assay_hidden_tap {
  void (*value)(void* user, const assay_layer_t* layer, const assay_value_t* value,
                const assay_tensor_t* t, const assay_limits_t* limits);
  void* user;
} assay_hidden_tap_t;

// Values around a layer, as the engine has them: what the bodies of a control node read. Without
// them control nodes cannot be run.
typedef struct assay_outer {
  assay_tensor_t* (*get)(void* user, const assay_value_t* value);  // borrowed; NULL: none
  void* user;
} assay_outer_t;

assay_status_t assay_locals_create(const assay_layers_t* layers, bool unquantized,
                                   assay_locals_t** out) ASSAY_MUST_USE;
void assay_locals_destroy(assay_locals_t* l);                                // NULL is allowed
void assay_locals_set_outer(assay_locals_t* l, const assay_outer_t* outer);  // copied

// The iteration of the loops around the nodes that are run next: random operators draw by it.
void assay_locals_set_iteration(assay_locals_t* l, uint64_t iteration);

// `in`: inputs of all nodes of the layer, one after the other, NULL for hidden ones (as a tap has
// them). layer NULL: the node by itself. rounding NULL: no limits. Control nodes have none.
assay_status_t assay_locals_run(assay_locals_t* l, const assay_layer_t* layer,
                                const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                const assay_rounding_t* rounding, const assay_hidden_tap_t* tap,
                                assay_local_t* out) ASSAY_MUST_USE;

// The same for an engine that may have read its inputs wider than it has shown them: values in a
// format narrower than fp32 enter with half an ulp of uncertainty.
assay_status_t assay_locals_run_uncertain(assay_locals_t* l, const assay_layer_t* layer,
                                          const assay_node_t* node, assay_tensor_t* const* in,
                                          const assay_rounding_t* rounding,
                                          assay_local_t* out) ASSAY_MUST_USE;

// The layer run again as the emulated engine would, in another order of its sums (variant: 0 as
// documented, 1 backwards) or with stochastic rounding in place of rounding to nearest (2 and up,
// each with draws of its own). Outputs are rounded to where they are stored.
assay_status_t assay_locals_rerun(assay_locals_t* l, const assay_layer_t* layer,
                                  const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                  int variant, size_t n_out, assay_tensor_t** out) ASSAY_MUST_USE;

// Judges all outputs of one run by truth: local->truth or local->converted. `got` is the engine's,
// or a rerun's; what has another shape is left out. special: what explains NaN and infinities
// (special.h); NULL: nothing is known of them.
assay_status_t assay_local_judge(const assay_local_t* local, assay_tensor_t* const* truth,
                                 assay_tensor_t* const* got, const assay_layer_t* layer,
                                 const assay_rounding_t* rounding, const assay_special_t* special,
                                 assay_judgement_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_LOCAL_H_
