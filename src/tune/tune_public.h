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
  // Of the run: who runs assignments somewhere else (tune_part.c), how many samples there are, and
  // what the options brought with it; NULL: they run here.
  assay_tune_elsewhere_fn_t* elsewhere;
  void* user;
  size_t n_samples;
  assay_tuned_t found;
};

// An assay_tune_setting_t.elsewhere, whose user is the tuning (tune_part.c).
assay_status_t assay_tune_run_elsewhere(void* tune, const assay_format_t* given,
                                        bool golden_quantized,
                                        assay_output_check_t* outputs) ASSAY_MUST_USE;
// INVALID_ARGUMENT before the run has ended well.
assay_status_t assay_tune_want_run(const assay_tune_t* t) ASSAY_MUST_USE;

#endif  // ASSAY_TUNE_TUNE_PUBLIC_H_
