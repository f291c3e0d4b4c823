// What golden shows, for check.c: faults of the export, quantizers with wrong scales, and what
// quantizers lose. See also assay_check_find_golden_kind (check.h).
#ifndef ASSAY_CHECK_AGAINST_GOLDEN_H_
#define ASSAY_CHECK_AGAINST_GOLDEN_H_

#include "check/check.h"

// Whether what quantizers lose is to be found out: golden (of the outputs, may be NULL) may be of
// the network before. Its kind is known then (golden_quantized).
bool assay_check_compares_quantizers(const assay_check_t* c, const assay_samples_t* golden);
// After all samples have run: fills export, undone, golden_arithmetic, quantizers.
assay_status_t assay_check_against_golden(assay_check_t* c, const assay_samples_t* inputs,
                                          const assay_samples_t* golden) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_AGAINST_GOLDEN_H_
