// Numbers that go together: one number of a formula stands in several nodes, as it is, as its
// reciprocal, or in every block, and an exporter that has it wrong has it wrong in all of them. No
// change of one node brings golden near.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_TIED_H_
#define ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_TIED_H_

#include "diagnose/causes/surroundings.h"
#include "diagnose/search_trial.h"

// Tries, until golden is restored in all samples or the time `end` comes: other forms of constants
// that are the same; one factor of constants that are equal, each other's reciprocal, or of one
// kind and shape; one factor after nodes that are twins; and a summand of its own after each of
// those. out: room for ASSAY_SEARCH_FAULTS; *out_n 0: nothing restores golden. No repair is
// adopted.
assay_status_t assay_search_tied(assay_trials_t* t, const assay_surroundings_t* around, double end,
                                 assay_fault_t* out, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_NUMBERS_TIED_H_
