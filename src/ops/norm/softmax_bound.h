// How far a softmax's rounding can reach, row by row.
#ifndef ASSAY_OPS_NORM_SOFTMAX_BOUND_H_
#define ASSAY_OPS_NORM_SOFTMAX_BOUND_H_

#include "ops/bound.h"

// One row of n elements that lie `stride` apart.
typedef struct assay_softmax_bound {
  const assay_rounding_t* rounding;
  int64_t n, stride;
  const double *x, *y;       // the row and its softmax (or log-softmax)
  const double* x_error[2];  // what came in: guaranteed, probable; NULL: nothing
  double* limits[2];         // to be filled: guaranteed, probable
} assay_softmax_bound_t;
void assay_softmax_bound_row(const assay_softmax_bound_t* row);
void assay_log_softmax_bound_row(const assay_softmax_bound_t* row);

#endif  // ASSAY_OPS_NORM_SOFTMAX_BOUND_H_
