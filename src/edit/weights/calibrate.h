// Ranges of activations from their magnitudes: what calibrators of int8 choose.
#ifndef ASSAY_EDIT_WEIGHTS_CALIBRATE_H_
#define ASSAY_EDIT_WEIGHTS_CALIBRATE_H_

#include "tensor/tensor.h"

// The magnitudes of one value over all samples, in memory that does not grow with them. What they
// hold does not depend on the order in which tensors are added, nor on the number of threads.
typedef struct assay_calibration assay_calibration_t;

// A way to choose a range.
typedef struct assay_calibrator {
  const char* name;
  bool counts;  // needs magnitudes in bins of equal width
  bool ranks;   // needs to know how many lie below one
  // quantile: 0 to 1, of calibrators that have one.
  assay_status_t (*range)(const assay_calibration_t* m, double quantile, double* out);
} assay_calibrator_t;

// minmax, entropy or percentile; NULL if there is none of that name.
const assay_calibrator_t* assay_calibrator_find(const char* name);

assay_status_t assay_calibration_create(const assay_calibrator_t* for_calibrator,
                                        assay_calibration_t** out) ASSAY_MUST_USE;
void assay_calibration_destroy(assay_calibration_t* m);  // NULL is allowed
// Adds a tensor's elements. *out_not_finite: how many of them are NaN or infinite; these are left
// out.
assay_status_t assay_calibration_add(assay_calibration_t* m, assay_tensor_t* t,
                                     int64_t* out_not_finite) ASSAY_MUST_USE;
// The range that the calibrator chooses: [-range, range]. It is no larger than the largest
// magnitude, and 0 only if all of them are 0.
assay_status_t assay_calibration_range(const assay_calibration_t* m, double quantile,
                                       double* out) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_WEIGHTS_CALIBRATE_H_
