// Sums in twice the precision of double: a number is kept as high + low, of which high is the
// number rounded.
//
// Source: T. Ogita, S. M. Rump and S. Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26
// (2005), algorithms 3.1 (TwoSum, Knuth), 3.5 (TwoProductFMA), 4.3 and 5.3 (Sum2, Dot2): rounded
// once, the error is u |result| + (n u)^2 sum|terms|.
#ifndef ASSAY_OPS_TWICE_H_
#define ASSAY_OPS_TWICE_H_

#include <math.h>

// high + low += x.
static inline void assay_twice_add(double* high, double* low, double x) {
  const double s = *high + x, t = s - *high;
  *low += (*high - (s - t)) + (x - t);
  *high = s;
}

// high + low += a * b.
static inline void assay_twice_fma(double* high, double* low, double a, double b) {
  const double p = a * b, rest = __builtin_fma(a, b, -p);
  assay_twice_add(high, low, p);
  *low += rest;
}

// Rounded once. What is infinite, or has no value, has no low part.
static inline double assay_twice_end(double high, double low) {
  return isfinite(high) ? high + low : high;
}

#endif  // ASSAY_OPS_TWICE_H_
