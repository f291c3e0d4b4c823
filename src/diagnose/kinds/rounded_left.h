// Weights as they were before they were rounded, left in the file though nothing reads them.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_LEFT_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_LEFT_H_

#include "ir/ir.h"

// Whether the file has what a rounded weight was: an initializer that nothing reads, of the same
// shape and type, no farther from it than rounding explains.
//   weight, reach   canonical, alike (rounded.h)
assay_status_t assay_rounded_is_left(const assay_model_t* model, const assay_tensor_t* weight,
                                     const assay_tensor_t* reach, bool* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_LEFT_H_
