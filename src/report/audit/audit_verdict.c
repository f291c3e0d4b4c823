// The verdict of an audit.
#include <assay/audit.h>

#include "report/audit/audit_report.h"

assay_audit_verdict_t assay_audit_verdict(const assay_audit_t* a) {
  if (!a->ranges.n_hazards) return ASSAY_AUDIT_SAFE;
  if (a->witness.found) return ASSAY_AUDIT_UNSAFE;
  return a->ranges.n_unknown == a->ranges.n_hazards ? ASSAY_AUDIT_NOT_KNOWN
                                                    : ASSAY_AUDIT_MAY_OVERFLOW;
}

const char* assay_audit_verdict_name(assay_audit_verdict_t v) {
  static const char* const names[] = {"safe", "overflow", "may-overflow", "not-known"};
  return (unsigned)v < sizeof names / sizeof *names ? names[v] : NULL;
}
