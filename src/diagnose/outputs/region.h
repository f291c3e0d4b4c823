// Which part of the graph a fault is in, where no repair of a single node brings golden back.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_REGION_H_
#define ASSAY_DIAGNOSE_OUTPUTS_REGION_H_

#include "diagnose/search_trial.h"

// Finds the smallest set of nodes between values that what was tried says can explain the
// difference: the nodes whose repairs, or whose channels, take a part of it away that is near the
// largest, and all on the paths between them. Where some outputs agree with golden, nodes that
// those are made by as well are left out, unless that leaves none.
assay_status_t assay_search_region(const assay_trials_t* t, assay_region_t* out) ASSAY_MUST_USE;

// Marks, by position, the nodes that all differing outputs are made by, and of those the ones that
// no agreeing output is made by, if there are any.
assay_status_t assay_search_possible(const assay_search_t* s, bool* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_REGION_H_
