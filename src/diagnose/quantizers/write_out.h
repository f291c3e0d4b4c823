// Operators on quantized numbers (QLinearConv and others) as what they stand for: what comes in
// dequantized, the operator on real numbers, what comes out quantized. Then their quantizers are
// nodes like all others.
#ifndef ASSAY_DIAGNOSE_QUANTIZERS_WRITE_OUT_H_
#define ASSAY_DIAGNOSE_QUANTIZERS_WRITE_OUT_H_

#include "ir/ir.h"

// Whether a model has such operators in its top graph.
bool assay_has_qlinear(const assay_model_t* model);
// Writes them out. The QuantizeLinear has the name of the operator; the others begin with it.
// Operators whose scales are not constant, or of a form that QuantizeLinear of the model's operator
// set has not, stay.
assay_status_t assay_qlinear_write_out(assay_model_t* model) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_QUANTIZERS_WRITE_OUT_H_
