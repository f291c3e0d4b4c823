// How far an engine's outputs may lie from truth at all: the rows' guaranteed bounds carried
// through the whole network, from node to node, with every value rounded to where it is stored.
//
// This holds for any engine that computes the nodes of the model in these formats, in whatever
// order and with whatever library functions (up to 4 ulp), and for those that keep some values
// wider. It does not hold for engines that compute something else that is equal in real numbers
// (other algorithms for convolutions, folded scales).
#ifndef ASSAY_CERTIFY_REACH_H_
#define ASSAY_CERTIFY_REACH_H_

#include "eval/evaluator.h"
#include "plan/plan.h"

typedef struct assay_reach assay_reach_t;

// The plan is not fused; borrowed.
assay_status_t assay_reach_create(const assay_plan_t* plan, bool unquantized,
                                  assay_reach_t** out) ASSAY_MUST_USE;
void assay_reach_destroy(assay_reach_t* r);  // NULL is allowed
// One sample.
assay_status_t assay_reach_run(assay_reach_t* r, assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// Of graph output i in the last run, borrowed: float64 of its shape; NULL: exact.
const assay_tensor_t* assay_reach_output(const assay_reach_t* r, size_t i);

#endif  // ASSAY_CERTIFY_REACH_H_
