// Weights after quantizers that become their codes.
#ifndef ASSAY_EDIT_WEIGHTS_STORE_CODES_H_
#define ASSAY_EDIT_WEIGHTS_STORE_CODES_H_

#include "edit/editor.h"

// Computes QuantizeLinear nodes that read constants, once: truth has the same codes. What is left
// is a quarter of float32 weights, of int4 an eighth. *out_n: how many there were.
assay_status_t assay_edit_store_codes(assay_editing_t* e, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_WEIGHTS_STORE_CODES_H_
