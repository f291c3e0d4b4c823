// Elements that a quantizer rounds to one of two integers as its arithmetic has it: golden's may
// have been rounded to the other one than truth's, and that is not a fault.
#ifndef ASSAY_DIAGNOSE_NEAR_TIES_H_
#define ASSAY_DIAGNOSE_NEAR_TIES_H_

#include "eval/evaluator.h"

// Of a QuantizeLinear to integers, in a run that measures what rounding explains: y, the node's
// output there, gets the other integer than truth wherever x / scale is so near the middle of two
// that float32's own rounding, or a few times what the run's x is away from truth's, may cross it.
// Other nodes keep what they have.
//   truth    the evaluator of truth, whose slots hold the node's inputs
//   noisy_x  input 0 in the run
//   y        replaced, if anything turns
assay_status_t assay_near_ties_turn(const assay_evaluator_t* truth, const assay_node_t* n,
                                    assay_tensor_t* noisy_x, assay_tensor_t** y) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_NEAR_TIES_H_
