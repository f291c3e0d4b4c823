// How far a normalization's rounding can reach: mean, variance, and what is made of them.
//
// y = (x - mean) / sqrt(var + epsilon) * scale + bias. Mean and variance are sums of n terms; an
// engine may take the variance in two passes, in one (E[x^2] - mean^2), or by updates.
#ifndef ASSAY_OPS_NORM_NORM_BOUND_H_
#define ASSAY_OPS_NORM_NORM_BOUND_H_

#include "ops/bound_parts.h"

// The elements that share a mean: `runs` runs of `run` neighbours, `step` apart.
typedef struct assay_norm_group {
  const double* x;
  const double* e;  // their limits; NULL: exact
  int64_t runs, run, step;
} assay_norm_group_t;

// Statistics in truth, and how far an engine's lie from them.
typedef struct assay_norm_stats {
  double mean, var, inverse;     // inverse: 1 / sqrt(var + epsilon)
  double mean_error, var_error;  // absolute
  double inverse_error;          // relative
} assay_norm_stats_t;

// centered: mean and variance; else the mean is 0 and the variance the mean of squares.
assay_norm_stats_t assay_norm_bound_stats(const assay_rounding_t* r, bool probable, bool centered,
                                          const assay_norm_group_t* group, double epsilon);
// Statistics that are given: only the inverse is computed.
assay_norm_stats_t assay_norm_bound_given(const assay_rounding_t* r, double mean, double var,
                                          double epsilon);

// What is done to n neighbours with these statistics.
typedef struct assay_norm_apply {
  const assay_rounding_t* rounding;
  assay_norm_stats_t stats;
  bool centered;
  int64_t n;
  const double *x, *e;            // as in a group
  const double *scale, *bias;     // bias NULL: none
  int64_t scale_step, bias_step;  // 0: one for all
  double* limits;                 // to be filled
} assay_norm_apply_t;
void assay_norm_bound_apply(const assay_norm_apply_t* a);

#endif  // ASSAY_OPS_NORM_NORM_BOUND_H_
