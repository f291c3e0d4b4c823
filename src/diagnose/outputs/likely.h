// Which nodes a search that found nothing suspects most.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_LIKELY_H_
#define ASSAY_DIAGNOSE_OUTPUTS_LIKELY_H_

#include "diagnose/search_trial.h"

// Marks, by position, at most so many of the nodes that all differing outputs are made by and no
// agreeing one is: those a change of which takes away most, and those beside the first of them.
// out: all false before. Returns how many in *out_n.
assay_status_t assay_search_likely(const assay_trials_t* t, size_t most, bool* out,
                                   size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_LIKELY_H_
