// What a layer is, as text: layers with the same signature are run by the same kernels and take the
// same time.
#ifndef ASSAY_EXEC_CHOICE_SIGNATURE_H_
#define ASSAY_EXEC_CHOICE_SIGNATURE_H_

#include "exec/kernel.h"

// "Conv(group=1, strides=1,1) i0 i1 i2 -> h0; Relu h0 | i0 float[1, 64, 56, 56] last; ... | o0
// float[1, 64, 56, 56]": nodes with all their attributes, how their values hang together, and the
// operands; no names. One line.
assay_status_t assay_layer_signature(const assay_sized_layer_t* l, assay_str_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_CHOICE_SIGNATURE_H_
