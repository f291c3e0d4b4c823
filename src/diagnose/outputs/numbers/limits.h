// Both limits of Clip, at all nodes that have the same ones: neither alone brings golden near.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_LIMITS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_LIMITS_H_

#include "diagnose/search_trial.h"

// Tries usual limits, and those that other nodes of the model have. out, *out_n: as of
// assay_search_joint.
assay_status_t assay_search_limits(assay_trials_t* t, double end, assay_fault_t* out,
                                   size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_LIMITS_H_
