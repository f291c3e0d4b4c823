// What `certify` wrote and what its `--verify` found, told.
#ifndef ASSAY_REPORT_CERTIFY_H_
#define ASSAY_REPORT_CERTIFY_H_

#include <jansson.h>

#include "base/str.h"
#include "certify/verify.h"

typedef struct assay_certify_names {
  const char *model, *target;
  const char* certificate;     // the file; NULL: it could not be written
  const assay_model_t* graph;  // whose outputs have the decisions
  size_t bytes, max;           // of the file, and what it was allowed
  double seconds;
} assay_certify_names_t;

// At most 15 lines, and "assay.certify/1".
assay_status_t assay_report_certify_text(const assay_certificate_t* c,
                                         const assay_certify_names_t* n,
                                         assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_certify_json(const assay_certificate_t* c,
                                         const assay_certify_names_t* n,
                                         json_t** out) ASSAY_MUST_USE;
// At most 15 lines, and "assay.certify.verify/1".
assay_status_t assay_report_verify_text(const assay_certificate_t* c, const assay_verified_t* v,
                                        const assay_certify_names_t* n,
                                        assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_report_verify_json(const assay_certificate_t* c, const assay_verified_t* v,
                                        const assay_certify_names_t* n,
                                        json_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_CERTIFY_H_
