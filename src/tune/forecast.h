// What an output's statistics will be at another size of its error, and how large that may be.
//
// Errors keep their direction and the shape of their distribution and change their size: from the
// statistics of a run, those of another one with `ratio` times the mean square follow, whatever
// the statistic. Rows keep their largest elements unless the error is larger than the gap after
// them in truth.
#ifndef ASSAY_TUNE_FORECAST_H_
#define ASSAY_TUNE_FORECAST_H_

#include "account/outputs.h"

// Of an output whose rows are scores: what lies between the first and the second, the fifth and
// the sixth of each row's largest, in truth.
typedef struct assay_tune_gaps {
  double *first, *fifth;
  size_t n, cap_first, cap_fifth;
} assay_tune_gaps_t;
// Adds the rows of truth of one sample: canonical.
assay_status_t assay_tune_gaps_add(assay_tune_gaps_t* g,
                                   const assay_tensor_t* truth) ASSAY_MUST_USE;
void assay_tune_gaps_deinit(assay_tune_gaps_t* g);

// Mean square of an output's error; of integers, of the elements that differ (or by how many
// steps).
double assay_tune_mean_square(const assay_output_check_t* o);

// The statistics with `ratio` times the error. gaps may be NULL, or of other samples.
assay_output_check_t assay_tune_forecast(const assay_output_check_t* measured,
                                         const assay_tune_gaps_t* gaps, double ratio);

// The largest ratio at which all requirements on this output are met; INFINITY: at any; 0: at none.
double assay_tune_largest_ratio(const assay_output_check_t* measured, const assay_tune_gaps_t* gaps,
                                const assay_requirements_t* require);

#endif  // ASSAY_TUNE_FORECAST_H_
