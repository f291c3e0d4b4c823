// The fix: the fewest layers in higher precision, found from the account and verified by running.
#ifndef ASSAY_CHECK_FIX_H_
#define ASSAY_CHECK_FIX_H_

#include "check/check.h"

// Fills check->fix (has_fix) after an unfaithful run. First: layers that make or read values past
// the format's range and that values need which are within it; where none do, those with the
// largest shares of the error for their time, as many as the requirements ask for. That is run. If
// it does not do, what else passes the range, and the shares of the error that is left, add layers
// for a second run. Where that keeps more than half of the layers by their shares, four more runs
// at most tell which of them can go again.
assay_status_t assay_fix_search(assay_check_t* check, const assay_samples_t* inputs,
                                const assay_samples_t* golden) ASSAY_MUST_USE;

// Shared with check.c: runs of all samples that fill the statistics of outputs. What a
// command of the user's has against the outputs is appended to *unmet, and what each said is set in
// met, by requirement (both may be NULL). Errors: INVALID_ARGUMENT there is nothing to judge.
assay_status_t assay_run_samples(assay_account_t* account, const assay_model_t* model,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 const assay_requirements_t* require, assay_output_check_t* outputs,
                                 bool* out_faithful, bool* met, assay_str_t* unmet) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_FIX_H_
