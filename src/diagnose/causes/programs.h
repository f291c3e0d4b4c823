// Offers whose only edit is a formula: in place of an input, or of what comes out.
#ifndef ASSAY_DIAGNOSE_CAUSES_PROGRAMS_H_
#define ASSAY_DIAGNOSE_CAUSES_PROGRAMS_H_

#include "diagnose/causes/surroundings.h"

// input: of the node; s->n_in and more: output 0 and those after it. The node that makes the input,
// or those that read the output where they are few, may be at fault as well.
assay_status_t assay_offer_program(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_formula_terms_t* terms, const char* text,
                                   const assay_trial_t* t, bool* stop) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_CAUSES_PROGRAMS_H_
