// The fix: the fewest layers in higher precision, found from the account and verified by running.
#ifndef ASSAY_CHECK_FIX_H_
#define ASSAY_CHECK_FIX_H_

#include "check/check.h"

// Fills check->fix (has_fix) after an unfaithful run, by ASSAY_FEWEST_OBSERVED (diagnose/fewest.h).
assay_status_t assay_fix_search(assay_check_t* check, const assay_samples_t* inputs,
                                const assay_samples_t* golden) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_FIX_H_
