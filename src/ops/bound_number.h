// Numbers that know how far rounding may have taken them: running error analysis, for operators
// whose formulas are short. A formula written with them gives its value and its limits.
//
// Source: J. H. Wilkinson's running error analysis, in N. J. Higham, Accuracy and Stability of
// Numerical Algorithms, 2nd edition, 2002, 3.3. Nothing is left to second order in `g`. `s2` is the
// sum of the variances of rounding errors that are taken as independent, each of u |value|.
#ifndef ASSAY_OPS_BOUND_NUMBER_H_
#define ASSAY_OPS_BOUND_NUMBER_H_

#include <math.h>

#include "ops/bound_parts.h"

typedef struct assay_number {
  double v, g, s2;  // value, guaranteed limit, variance
} assay_number_t;

// How they round.
typedef struct assay_arithmetic {
  const assay_rounding_t* rounding;
  assay_inner_t inner;
} assay_arithmetic_t;

assay_arithmetic_t assay_arithmetic_of(const assay_bound_t* c);

static inline assay_number_t assay_number_exact(double v) { return (assay_number_t){v, 0, 0}; }
// Element i of an input, with its limits.
assay_number_t assay_number_input(const assay_bound_t* c, size_t input, int64_t i);
// The limits as they are put out; what is not a number has none (infinity).
void assay_number_limits(const assay_arithmetic_t* a, assay_number_t x, double* guaranteed,
                         double* probable);
// 6 standard deviations, no more than what is guaranteed.
static inline double assay_number_probable(assay_number_t x) {
  const double p = 6 * sqrt(x.s2);
  return p < x.g ? p : x.g;
}

// x rounded with a relative error of `relative`.
static inline assay_number_t assay_number_round(const assay_arithmetic_t* a, double relative,
                                                assay_number_t x) {
  const double size = fabs(x.v) + x.g, p = assay_number_probable(x);
  const double e = relative * (fabs(x.v) + p) + a->inner.tiny;
  x.g += relative * size + a->inner.tiny;
  x.s2 += e * e;
  if (!(fabs(x.v) + x.g <= a->inner.max)) x.g = (double)INFINITY;
  return x;
}

static inline assay_number_t assay_number_neg(assay_number_t x) {
  x.v = -x.v;
  return x;
}
static inline assay_number_t assay_number_abs(assay_number_t x) {
  x.v = fabs(x.v);
  return x;
}

static inline assay_number_t assay_number_add(const assay_arithmetic_t* a, assay_number_t x,
                                              assay_number_t y) {
  return assay_number_round(a, a->inner.u, (assay_number_t){x.v + y.v, x.g + y.g, x.s2 + y.s2});
}
static inline assay_number_t assay_number_sub(const assay_arithmetic_t* a, assay_number_t x,
                                              assay_number_t y) {
  return assay_number_add(a, x, assay_number_neg(y));
}
static inline assay_number_t assay_number_mul(const assay_arithmetic_t* a, assay_number_t x,
                                              assay_number_t y) {
  const assay_number_t z = {x.v * y.v, fabs(x.v) * y.g + fabs(y.v) * x.g + x.g * y.g,
                            x.v * x.v * y.s2 + y.v * y.v * x.s2 + 36 * x.s2 * y.s2};
  return assay_number_round(a, a->inner.u, z);
}
static inline assay_number_t assay_number_square(const assay_arithmetic_t* a, assay_number_t x) {
  const assay_number_t z = {x.v * x.v, (2 * fabs(x.v) + x.g) * x.g,
                            (4 * x.v * x.v + 36 * x.s2) * x.s2};
  return assay_number_round(a, a->inner.u, z);
}
assay_number_t assay_number_div(const assay_arithmetic_t* a, assay_number_t x, assay_number_t y);
assay_number_t assay_number_sqrt(const assay_arithmetic_t* a, assay_number_t x);
// A library's function that is monotone where x may be, or turns at most at `turn`.
assay_number_t assay_number_function(const assay_arithmetic_t* a, double (*f)(double), double turn,
                                     assay_number_t x);

// Sums in any order.
typedef struct assay_number_sum {
  double v, size, size_probable, g, s2;  // sums over the terms: values, magnitudes, what came in
  double n;
} assay_number_sum_t;
void assay_number_sum_add(assay_number_sum_t* s, assay_number_t term);
// A product, rounded once (or not, with FMA).
void assay_number_sum_add_product(assay_number_sum_t* s, assay_number_t x, assay_number_t y);
assay_number_t assay_number_sum_end(const assay_arithmetic_t* a, const assay_number_sum_t* s);

// Limits of so many roundings in a row for output 0, on top of what comes in at its corners (the
// operator is monotone in each input).
assay_status_t assay_bound_roundings(assay_bound_t* c, double ops) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_BOUND_NUMBER_H_
