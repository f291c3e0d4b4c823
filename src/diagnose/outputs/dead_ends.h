// Values that nobody reads: what was left when the nodes that read them were lost.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_DEAD_ENDS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_DEAD_ENDS_H_

#include "diagnose/causes/surroundings.h"
#include "diagnose/search_trial.h"

// Tries two of them, joined or as an operator of both, in place of another value, and one in each
// step or block with what that step makes: t->found, or out and *out_n as of assay_search_joint.
assay_status_t assay_search_dead_ends(assay_trials_t* t, assay_surroundings_t* around, double end,
                                      assay_fault_t* out, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_DEAD_ENDS_H_
