// What include/assay/certify.h calls a verification, for reports.
#ifndef ASSAY_CERTIFY_CERTIFY_PUBLIC_H_
#define ASSAY_CERTIFY_CERTIFY_PUBLIC_H_

#include "base/str.h"
#include "certify/verify.h"

struct assay_verification {
  const assay_certificate_t* certificate;  // borrowed
  assay_model_t* model;
  assay_verified_t found;
  assay_str_t engine;  // what was run
  double seconds;
};

#endif  // ASSAY_CERTIFY_CERTIFY_PUBLIC_H_
