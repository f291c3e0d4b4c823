// Softmax of one row, for every operator that has one inside.
#ifndef ASSAY_OPS_NORM_SOFTMAX_H_
#define ASSAY_OPS_NORM_SOFTMAX_H_

#include "ops/op.h"

// y[i] = exp(x[i] - max) / sum of exp(x[j] - max), over n elements that lie `stride` apart; y may
// be x. A row with a NaN or of infinite maximum (all -inf, too) is NaN where IEEE 754 says so. Sums
// go in the order of i; difference, exponential, sum and quotient are each rounded (assay_acc).
void assay_softmax_row(const assay_eval_t* c, int64_t n, int64_t stride, const double* x,
                       double* y);

// y[i] = x[i] - max - log(sum of exp(x[j] - max)).
void assay_log_softmax_row(const assay_eval_t* c, int64_t n, int64_t stride, const double* x,
                           double* y);

#endif  // ASSAY_OPS_NORM_SOFTMAX_H_
