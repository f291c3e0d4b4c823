// What a search says of the nodes at fault: which are named, and how likely the first is the one.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_LIKELIHOOD_H_
#define ASSAY_DIAGNOSE_OUTPUTS_LIKELIHOOD_H_

#include "diagnose/search_trial.h"

// Hands the best repair over to a fault; where none helps, the node whose change helps most. Rivals
// are what else does; where nothing mends the whole, there is a region. *out_any false: nothing is
// known.
assay_status_t assay_search_report(assay_trials_t* t, assay_fault_t* out,
                                   bool* out_any) ASSAY_MUST_USE;

// Adds to a repair of a set, which restores golden, the nodes that it may as well be a matter of.
void assay_search_add_rivals(const assay_search_t* s, assay_fault_t* f);

#endif  // ASSAY_DIAGNOSE_OUTPUTS_LIKELIHOOD_H_
