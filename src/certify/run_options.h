// How the public API's options say that a model is run, for making certificates and for verifying.
#ifndef ASSAY_CERTIFY_RUN_OPTIONS_H_
#define ASSAY_CERTIFY_RUN_OPTIONS_H_

#include "check/check.h"

typedef struct assay_run_request {
  const char *target, *layer_precision, *inject;
  assay_format_t precision;
  assay_fp32_t fp32;
  assay_fusion_t fusion;
  const char* const* passes_off;
  size_t n_passes_off;
} assay_run_request_t;

// Fills in precision (assay_precision_deinit), plan and backend. Texts are borrowed. Errors:
// INVALID_ARGUMENT; NOT_FOUND a pattern or pass that there is not; UNSUPPORTED.
assay_status_t assay_run_options_open(assay_model_t* model, const assay_run_request_t* request,
                                      assay_check_setting_t* out) ASSAY_MUST_USE;
// The samples as rows, as far as the model lets a batch be cut: from `given`, or drawn from the
// seed.
assay_status_t assay_run_rows(const assay_model_t* model, const assay_samples_t* given,
                              uint64_t seed, assay_samples_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_CERTIFY_RUN_OPTIONS_H_
