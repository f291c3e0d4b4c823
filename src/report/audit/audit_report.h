// What an audit found, told.
#ifndef ASSAY_REPORT_AUDIT_REPORT_H_
#define ASSAY_REPORT_AUDIT_REPORT_H_

#include <jansson.h>

#include "ranges/audit.h"

typedef struct assay_audit_names {
  const char* model;                               // as the user gave it
  const char* precision;                           // "fp16"; "as declared"
  const char* witness;                             // the file it was saved to; NULL: none
  bool hazards, broadcasts, constants, operators;  // in full
} assay_audit_names_t;

// A dozen lines, verdict first; then the lists that were asked for.
assay_status_t assay_report_audit_text(const assay_audit_t* a, const assay_audit_names_t* names,
                                       assay_str_t* out) ASSAY_MUST_USE;
// The form "assay.audit/1". The caller owns the result.
assay_status_t assay_report_audit_json(const assay_audit_t* a, const assay_audit_names_t* names,
                                       json_t** out) ASSAY_MUST_USE;
// "up to 5.4e+05, fp16 ends at 65504".
void assay_report_hazard(const assay_hazard_t* h, assay_str_t* out);
// "input 1 [8] to [4, 8]".
void assay_report_broadcast(const assay_broadcast_t* b, assay_str_t* out);
// "attribute 'epsilon' of n (LayerNormalization): 1e-12 becomes 0; ...".
void assay_report_constant(const assay_odd_constant_t* c, assay_str_t* out);

#endif  // ASSAY_REPORT_AUDIT_REPORT_H_
