// Assignments near one, cheaper than it, those with the least error by the forecast first: what is
// worth running where runs cost little.
#ifndef ASSAY_TUNE_NEAR_H_
#define ASSAY_TUNE_NEAR_H_

#include "tune/problem.h"

typedef struct assay_tune_near {
  uint8_t* formats;  // n blocks of n_units
  double* worst;     // assay_tune_worst of each
  size_t n;
} assay_tune_near_t;

typedef struct assay_tune_near_options {
  double below;                                     // only those that take less time
  double within;                                    // only those whose worst is at most this
  size_t max;                                       // as many as are kept
  bool (*seen)(void* user, const uint8_t* format);  // those are left out; NULL: none
  void* user;
} assay_tune_near_options_t;

// One, two, or, of few units, three changes away.
assay_status_t assay_tune_near(const assay_tune_problem_t* p, const uint8_t* from,
                               const assay_tune_near_options_t* options,
                               assay_tune_near_t* out) ASSAY_MUST_USE;
void assay_tune_near_deinit(assay_tune_near_t* n);

#endif  // ASSAY_TUNE_NEAR_H_
