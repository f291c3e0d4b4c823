// Casts to 16 bits and back that the network does not have, in a model of 32-bit floats.
//
// Truth computes in float64 and does not round at a Cast, and a check allows what the declared type
// costs: such a pair, left over by a converter, looks like rounding. But golden tells. Where truth
// that rounds at the pairs is many times farther from golden than truth that does not, the network
// does not round there. Models that compute anything in 16 bits have such Casts by right: they are
// not looked at.
#ifndef ASSAY_DIAGNOSE_GOLDEN_STRAY_CASTS_H_
#define ASSAY_DIAGNOSE_GOLDEN_STRAY_CASTS_H_

#include "diagnose/golden/walk.h"

// Adds a fault, with its repair, for each pair that is not golden's. After the walk.
assay_status_t assay_golden_find_stray_casts(assay_golden_walk_t* w,
                                             assay_tensor_t* const* inputs) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_GOLDEN_STRAY_CASTS_H_
