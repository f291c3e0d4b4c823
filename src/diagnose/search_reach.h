// How much of a value's relative change arrives at the targets of a repair search, as a guess: what
// residual sums and concatenations dilute.
#ifndef ASSAY_DIAGNOSE_SEARCH_REACH_H_
#define ASSAY_DIAGNOSE_SEARCH_REACH_H_

#include "diagnose/search.h"

// *out: by value id, to be freed; 0 for values that no target is made from. A relative change of
// 1 of the value is expected to change the targets by so much of their RMS.
assay_status_t assay_search_reach(const assay_search_t* s, double** out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SEARCH_REACH_H_
