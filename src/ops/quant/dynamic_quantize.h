// Quantization to uint8 by the range of the very elements.
#ifndef ASSAY_OPS_QUANT_DYNAMIC_QUANTIZE_H_
#define ASSAY_OPS_QUANT_DYNAMIC_QUANTIZE_H_

#include "ops/bound.h"

// y[i] = what x[i] is after DynamicQuantizeLinear and DequantizeLinear; x itself in truth
// 'unquantized'. In native mode the scale is rounded to fp32. y may be x.
// Source: ONNX DynamicQuantizeLinear 11.
void assay_dynamic_quantize(const assay_eval_t* c, int64_t n, const double* x, double* y);
// How far an engine's may lie from that in truth: error[i] for each element. in: how far what it
// quantizes lies from x; NULL: nowhere.
void assay_dynamic_quantize_bound(const assay_rounding_t* r, int64_t n, const double* x,
                                  const double* in, double* error);

#endif  // ASSAY_OPS_QUANT_DYNAMIC_QUANTIZE_H_
