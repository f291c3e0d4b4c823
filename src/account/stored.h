// What a value loses in being stored in a format, foretold from truth.
#ifndef ASSAY_ACCOUNT_STORED_H_
#define ASSAY_ACCOUNT_STORED_H_

#include "tensor/tensor.h"

typedef struct assay_storage_loss {
  double rms;   // of the value; 0: not known, or all zero
  double lost;  // RMS of what rounding takes; values that the format has lose nothing
} assay_storage_loss_t;

// Of float tensors, by 1,024 elements at most; large packed ones (weights) are not looked at.
// Elements past the range, which pass for a matter of their own, and what is not finite are left
// out.
// Errors: NO_MEMORY.
assay_status_t assay_stored_of(assay_tensor_t* t, assay_format_t format,
                               assay_storage_loss_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_STORED_H_
