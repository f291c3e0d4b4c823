// The larger of two numbers, the same on every CPU and from every compiler: C leaves it open which
// of two zeros of both signs fmax gives, and instructions differ.
#ifndef ASSAY_BASE_LARGER_H_
#define ASSAY_BASE_LARGER_H_

#include <math.h>

// As fmax: a NaN counts for nothing. -0 is below 0.
static inline double assay_larger(double a, double b) {
  if (a == b) return signbit(a) ? b : a;
  return isnan(a) || a < b ? b : a;
}

#endif  // ASSAY_BASE_LARGER_H_
