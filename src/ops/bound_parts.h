// Parts of the bounds of operators that do several steps inside: normalizations, softmax, norms,
// reductions, quantizers.
#ifndef ASSAY_OPS_BOUND_PARTS_H_
#define ASSAY_OPS_BOUND_PARTS_H_

#include "ops/bound.h"

// Steps inside an operator may be kept in the accumulator's format where that is narrower than the
// compute format: whichever rounds more, holds less, or vanishes earlier.
typedef struct assay_inner {
  double u;         // of one operation, relative
  double function;  // of a library function, relative
  double tiny;      // of one operation, absolute
  double max;       // the largest number
} assay_inner_t;
assay_inner_t assay_bound_inner(const assay_rounding_t* r);

// Terms of few bits often add up exactly. For each number that is still to be added, count the
// places of its last bits that lie below those of the largest sum: an addition that is exact leaves
// no more of them than there were, one that is not drops those below its result's last place, one
// at least. So in any order no more additions are inexact than there are such places in the terms.
//
// The place of the last bit of x that is not 0; INT_MAX for 0, INT_MIN for what is not finite.
int assay_last_place(double x);
// The place of the last bit of the largest sum, where one operation rounds by u.
int assay_sum_place(double u, double largest);

// The guaranteed or the probable one.
static inline double assay_factor_of(assay_factor_t f, bool probable) {
  return probable ? f.probable : f.guaranteed;
}
// The limits of an input's elements; NULL: it has none.
const double* assay_bound_in(const assay_bound_t* c, size_t input, bool probable);
bool assay_bound_is_limited(const assay_bound_t* c, size_t input);
// Fails if an input other than `allowed` has limits (SIZE_MAX: any).
assay_status_t assay_bound_want_exact(const assay_bound_t* c, size_t allowed) ASSAY_MUST_USE;
// Whether output i is made of floats.
bool assay_bound_is_float(const assay_bound_t* c, size_t output);

// What an eval's readers of shapes and attributes need; nothing can be put out through it.
assay_eval_t assay_bound_as_eval(const assay_bound_t* c);

// Output 0 with the elements of input 0 replaced.
typedef enum assay_instead {
  ASSAY_INSTEAD_WIDEST,  // |x| plus its limits
  ASSAY_INSTEAD_RAISED,  // the same, at least 1
} assay_instead_t;
assay_status_t assay_bound_instead(assay_bound_t* c, assay_instead_t what, bool probable,
                                   assay_tensor_t** out) ASSAY_MUST_USE;

// Output 0 of an evaluation in float64: of the row's own function or another one. magnitudes: of
// the absolute values of float inputs; unquantized: real numbers where it quantizes.
typedef struct assay_bound_run {
  assay_status_t (*eval)(assay_eval_t* c);
  bool magnitudes, unquantized;
} assay_bound_run_t;
assay_status_t assay_bound_evaluate(const assay_bound_t* c, const assay_bound_run_t* run,
                                    assay_tensor_t** out) ASSAY_MUST_USE;

// Makes sure that output i has limits, zeros if none were there, and gives them.
assay_status_t assay_bound_begin(assay_bound_t* c, size_t i, double** guaranteed,
                                 double** probable) ASSAY_MUST_USE;

// What input 0's limits do to output 0, for functions of |x| that grow with each |x[j]| and are
// convex: nothing moves the result farther than all of them outwards.
assay_status_t assay_bound_outward(assay_bound_t* c) ASSAY_MUST_USE;

// Limits for output 0, added on top of those that it has (`in`): local() of each element.
// magnitude: another number of each element (NULL: |y| + in).
typedef double assay_bound_local_fn(const void* user, double y, double in, double magnitude,
                                    bool probable);
assay_status_t assay_bound_add_local(assay_bound_t* c, assay_bound_local_fn* local,
                                     const void* user,
                                     assay_tensor_t* const magnitude[2]) ASSAY_MUST_USE;

// The same with the magnitude that the operator itself makes of other elements.
assay_status_t assay_bound_add_instead(assay_bound_t* c, assay_instead_t instead,
                                       assay_bound_local_fn* local,
                                       const void* user) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_BOUND_PARTS_H_
