// Biases of integers that layers of unlike scales share: all layers but one are wrong, and no
// single repair brings golden near.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_BIAS_SETS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_BIAS_SETS_H_

#include "diagnose/causes/surroundings.h"
#include "diagnose/search.h"

// For each such bias, the layer in whose units it is, so that golden is nearest once all others
// have integers of their own. out: room for ASSAY_SEARCH_FAULTS; *out_n 0: that does not restore
// golden, in all samples. s has no repairs adopted.
assay_status_t assay_search_bias_sets(const assay_search_t* s, const assay_surroundings_t* around,
                                      assay_fault_t* out, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_BIAS_SETS_H_
