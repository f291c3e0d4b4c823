// Vector-Jacobian products: how a weighted sum of a node's outputs moves with each of its inputs.
//
// Reverse mode in float64, for several weightings ("probes") at once. The rules stand in a table
// (vjp.inc), one row an operator; pointwise operators without a row of their own are differentiated
// numerically, element by element. An operator without a rule has no gradient: what lies before it
// is *not known*, which is not 0. Discrete outputs and integers carry none.
#ifndef ASSAY_EVAL_GRADIENTS_VJP_H_
#define ASSAY_EVAL_GRADIENTS_VJP_H_

#include "eval/evaluator.h"

typedef struct assay_vjp {
  assay_evaluator_t* evaluator;  // whose kernels evaluate; its slots are not touched
  const assay_node_t* node;
  size_t n_in, n_out;
  assay_tensor_t* const* in;  // canonical, as the node reads them; NULL: left out
  assay_tensor_t* const* out;
  int64_t probes;
  // By output: `probes` blocks of its elements, the derivative by each; NULL: zero. Float tensors
  // only.
  const double* const* out_g;
  // By input: the same, which the products are added to; NULL: not wanted. Float tensors only.
  double* const* in_g;
} assay_vjp_t;

// *out_known false: there is no rule for this node, or not for all inputs that are wanted; in_g may
// hold anything then.
typedef assay_status_t assay_vjp_fn(const assay_vjp_t* c, bool* out_known);
assay_status_t assay_vjp_run(const assay_vjp_t* c, bool* out_known) ASSAY_MUST_USE;

// ---- for the rules ------------------------------------------------------------------------------

#define ASSAY_VJP(op, function) assay_vjp_fn function;
#include "eval/gradients/vjp.inc"
#undef ASSAY_VJP

static inline bool assay_vjp_wants(const assay_vjp_t* c, size_t i) {
  return i < c->n_in && c->in_g[i];
}
// Whether inputs from `first` on are wanted: most rules know the data input only.
bool assay_vjp_wants_from(const assay_vjp_t* c, size_t first);
// Evaluates the node, or another one in its place, on other inputs; out[n_out] is filled with
// retained tensors. attrs NULL: the node's own.
assay_status_t assay_vjp_evaluate(const assay_vjp_t* c, const char* op_type, size_t n_attrs,
                                  assay_attr_t* attrs, size_t n_in, assay_tensor_t* const* in,
                                  size_t n_out, assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_EVAL_GRADIENTS_VJP_H_
