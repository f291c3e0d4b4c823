// Sums, means and variances of runs of elements, as every normalization needs them.
//
// F64: eight partial sums, added pairwise at the end. F32 and NARROW: one sum in the elements'
// order, each step rounded. The variance takes two passes: the mean, then squared distances to it.
#ifndef ASSAY_OPS_NORM_NORM_H_
#define ASSAY_OPS_NORM_NORM_H_

#include <math.h>

#include "ops/op.h"

// A step's rounding. `exact` (arithmetic F64) is passed as a constant, so that the loops of F64
// have no test in them.
static inline double assay_norm_round(const assay_eval_t* c, bool exact, double x) {
  return exact ? x : assay_acc(c, x);
}

// Sum of the elements, and of their squared distances to `shift`.
static inline double assay_norm_sum(const assay_eval_t* c, bool exact, const double* x, int64_t n) {
  if (!exact) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) s = assay_acc(c, s + x[i]);
    return s;
  }
  double s[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int j = 0; j < 8; j++) s[j] += x[i + j];
  }
  for (; i < n; i++) s[i % 8] += x[i];
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

static inline double assay_norm_square_sum(const assay_eval_t* c, bool exact, const double* x,
                                           int64_t n, double shift) {
  if (!exact) {
    double s = 0;
    for (int64_t i = 0; i < n; i++) {
      const double d = assay_acc(c, x[i] - shift);
      s = assay_acc(c, s + assay_acc(c, d * d));
    }
    return s;
  }
  double s[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int j = 0; j < 8; j++) s[j] += (x[i + j] - shift) * (x[i + j] - shift);
  }
  for (; i < n; i++) s[i % 8] += (x[i] - shift) * (x[i] - shift);
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// 1 / sqrt(v + epsilon).
static inline double assay_norm_inverse(const assay_eval_t* c, bool exact, double v,
                                        double epsilon) {
  const double root = assay_norm_round(c, exact, sqrt(assay_norm_round(c, exact, v + epsilon)));
  return assay_norm_round(c, exact, 1 / root);
}

// Mean and population variance of n elements.
static inline void assay_norm_moments(const assay_eval_t* c, bool exact, const double* x, int64_t n,
                                      double* out_mean, double* out_var) {
  const double mean = assay_norm_round(c, exact, assay_norm_sum(c, exact, x, n) / (double)n);
  *out_mean = mean;
  *out_var = assay_norm_round(c, exact, assay_norm_square_sum(c, exact, x, n, mean) / (double)n);
}

#endif  // ASSAY_OPS_NORM_NORM_H_
