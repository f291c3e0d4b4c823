// Several numbers that are lost at once, each its own: a factor and a summand of one line, and a
// factor before each of several nodes that belong together.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_NUMBERS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_NUMBERS_H_

#include "diagnose/causes/surroundings.h"
#include "diagnose/search_trial.h"

// Fits them by one sample and confirms them on the others, the places first whose changes took most
// of the difference away. out, *out_n: as of assay_search_joint.
assay_status_t assay_search_numbers(assay_trials_t* t, const assay_surroundings_t* around,
                                    double end, assay_fault_t* out, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_NUMBERS_H_
