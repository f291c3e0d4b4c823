// Making a certificate: one run of an engine beside truth.
#ifndef ASSAY_CERTIFY_CERTIFY_H_
#define ASSAY_CERTIFY_CERTIFY_H_

#include "certify/certificate.h"
#include "certify/decisions.h"
#include "check/check.h"

// What is certified, and how it is run again.
typedef struct assay_certify_job {
  assay_model_t* model;                // prepared, not rewritten
  const assay_check_setting_t* check;  // precision, plan, backend, unquantized, seed, progress
  // One row a sample, as far as the model lets a batch be cut; values are looked at in the first
  // one.
  const assay_samples_t* inputs;
  bool given;  // from files; else drawn from the seed
  // As the options take them, to be kept in the certificate; NULL: not given.
  const char *precision, *rules, *shapes, *fp32;
  const char* const* thresholds;
  size_t n_thresholds;
} assay_certify_job_t;

// Everything but the file's form (assay_certificate_encode).
assay_status_t assay_certify(const assay_certify_job_t* job,
                             assay_certificate_t* out) ASSAY_MUST_USE;

// What both sides tell of a run, to see whether it is the same.
void assay_certificate_model(const assay_model_t* m, uint64_t* out_hash, uint64_t* out_bytes);
assay_status_t assay_certificate_inputs(const assay_samples_t* inputs,
                                        uint64_t* out_hash) ASSAY_MUST_USE;
// The libraries and instruction sets that an engine is made for.
assay_status_t assay_certificate_machine(const assay_backend_t* backend,
                                         uint32_t* out_hash) ASSAY_MUST_USE;

#endif  // ASSAY_CERTIFY_CERTIFY_H_
