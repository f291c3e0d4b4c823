// A run of all samples with an account, and the statistics of their outputs.
//
// Truth is the account's: after a flip it goes on with the engine's choice. runs.h judges by one
// truth that does not depend on the run.
#ifndef ASSAY_ACCOUNT_SAMPLES_RUN_H_
#define ASSAY_ACCOUNT_SAMPLES_RUN_H_

#include "account/account.h"
#include "account/outputs.h"
#include "data/samples.h"

// Fills the statistics of outputs. What a command of the user's has against the outputs is appended
// to *unmet, and what each said is set in met, by requirement (both may be NULL). golden may be
// NULL; golden_quantized: it is of a network that quantizes, else of one that does not, so that the
// quantization's error is not taken for the export's. Errors: INVALID_ARGUMENT there is nothing to
// judge.
assay_status_t assay_samples_run(assay_account_t* account, const assay_model_t* model,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 bool golden_quantized, const assay_requirements_t* require,
                                 assay_output_check_t* outputs, bool* out_faithful, bool* met,
                                 assay_str_t* unmet) ASSAY_MUST_USE;

// The same of one sample after the other, for parts of the samples; nothing is judged.
assay_status_t assay_samples_add(assay_account_t* account, const assay_model_t* model,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 bool golden_quantized,
                                 assay_output_check_t* outputs) ASSAY_MUST_USE;
// Judges what has been added, where no command of the user's is asked.
assay_status_t assay_samples_judge(const assay_model_t* model, const assay_requirements_t* require,
                                   assay_output_check_t* outputs,
                                   bool* out_faithful) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_SAMPLES_RUN_H_
