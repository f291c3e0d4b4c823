// Limits of what ai.onnx.ml's models do to scores.
#ifndef ASSAY_OPS_ML_ML_BOUND_H_
#define ASSAY_OPS_ML_ML_BOUND_H_

#include "ops/bound_number.h"
#include "ops/ml/ml_common.h"

// What assay_ml_post_apply does, with limits.
void assay_ml_post_numbers(const assay_arithmetic_t* a, assay_ml_post_t post, assay_number_t* x,
                           int64_t n);
// Whether rounding cannot change which score is the largest: no other one comes as near as both
// limits. zero: a single score is compared with 0.
bool assay_ml_top_is_certain(const assay_number_t* x, int64_t n, bool zero);

// Makes limits for the scores (output `scores`) and, for integer labels, output 0 (where scores is
// 1): 0, or none where the label is not certain.
typedef struct assay_ml_limits {
  double *guaranteed, *probable;              // of the scores
  double *label_guaranteed, *label_probable;  // NULL: there are none
  int64_t columns;
} assay_ml_limits_t;
assay_status_t assay_ml_limits_begin(assay_bound_t* c, size_t scores,
                                     assay_ml_limits_t* out) ASSAY_MUST_USE;
void assay_ml_limits_row(const assay_arithmetic_t* a, const assay_ml_limits_t* l, int64_t row,
                         const assay_number_t* x, bool label_is_certain);

#endif  // ASSAY_OPS_ML_ML_BOUND_H_
