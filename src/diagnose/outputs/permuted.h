// Outputs whose elements golden has in another order: classes that were sorted as texts, channels.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_PERMUTED_H_
#define ASSAY_DIAGNOSE_OUTPUTS_PERMUTED_H_

#include "diagnose/search_trial.h"

// Tries the order along an axis in which truth of a target is golden in all samples, after the last
// node that gives its elements their order.
assay_status_t assay_search_permuted(assay_trials_t* t) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_PERMUTED_H_
