// How far the rounding of a p-norm can reach: (sum of |x|^p)^(1/p), as LpPool, ReduceL2 and
// LpNormalization have it; and that of a product of many factors.
#ifndef ASSAY_OPS_CONV_POWER_BOUND_H_
#define ASSAY_OPS_CONV_POWER_BOUND_H_

#include "ops/bound_parts.h"

typedef struct assay_power_norm {
  double p, terms;
  bool no_root;  // the sum itself (ReduceSumSquare)
} assay_power_norm_t;

// An engine's error in a norm of this size, absolute.
double assay_bound_norm_of(const assay_rounding_t* r, const assay_power_norm_t* norm, double size,
                           bool probable);
// Limits of output 0, each element of which is such a norm of elements of input 0.
assay_status_t assay_bound_power_norm(assay_bound_t* c,
                                      const assay_power_norm_t* norm) ASSAY_MUST_USE;

// Limits of output 0, each element of which is a product of so many elements of input 0 at most.
assay_status_t assay_bound_product(assay_bound_t* c, double factors) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_CONV_POWER_BOUND_H_
