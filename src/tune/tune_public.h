// Public tunings (assay/tune.h).
#ifndef ASSAY_TUNE_TUNE_PUBLIC_H_
#define ASSAY_TUNE_TUNE_PUBLIC_H_

#include <assay/tune.h>

#include "tune/tune.h"

struct assay_tune {
  assay_check_t* check;  // what runs are made by; it is not run itself
  assay_tune_setting_t setting;
  char *timing_cache, *rules;  // NULL: none
  bool ran;
  double seconds;  // that the run took
  assay_tuned_t found;
};

// INVALID_ARGUMENT before the run has ended well.
assay_status_t assay_tune_want_run(const assay_tune_t* t) ASSAY_MUST_USE;

#endif  // ASSAY_TUNE_TUNE_PUBLIC_H_
