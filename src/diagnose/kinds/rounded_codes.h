// Weights that a graph decodes of codes, by whatever arithmetic: how far each may have been from
// where it is, which half a step of its code tells.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_CODES_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_CODES_H_

#include "diagnose/kinds/rounded_made.h"

// Whether a value of so many elements comes of whole numbers that are cast to floats, one for each
// of its own at least.
bool assay_rounded_has_codes(const assay_rounded_made_t* m, const assay_value_t* v, int64_t size);
// How far each number of v may have been from where it is, an array like t, which v is, canonical.
// NULL: its codes are not known. Where several arrays of codes make it, what is added is rest of
// what was rounded before, and what multiplies are scales or signs.
assay_status_t assay_rounded_codes_reach(assay_rounded_made_t* m, const assay_value_t* v,
                                         const assay_tensor_t* t,
                                         assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_CODES_H_
