// The fix: the fewest layers in higher precision, found from the account and verified by running.
#ifndef ASSAY_CHECK_FIX_H_
#define ASSAY_CHECK_FIX_H_

#include "check/check.h"

// Fills check->fix (has_fix) after an unfaithful run, by ASSAY_FEWEST_OBSERVED (diagnose/fewest.h),
// and the front if the options ask for it. At most two runs until a set does. To take layers out of
// it again: as many as take 2e9 operations and bytes in all (three of a MobileNet, none of a
// ResNet-50, at most 512), but four where more than a quarter of the layers are in it.
assay_status_t assay_fix_search(assay_check_t* check, const assay_samples_t* inputs,
                                const assay_samples_t* golden) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_FIX_H_
