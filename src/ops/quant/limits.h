// Limits of fewer bits: a type that has more of them than the quantizer uses, and Clip, or Min and
// Max, between the quantizer and what dequantizes it. So six bits are kept in bytes.
// Sources: ONNX's QCDQ form, Pappalardo et al., QONNX: Representing arbitrary-precision quantized
// neural networks, 2022; Brevitas' export.
#ifndef ASSAY_OPS_QUANT_LIMITS_H_
#define ASSAY_OPS_QUANT_LIMITS_H_

#include "ops/op.h"

typedef struct assay_quant_limits {
  double low, high;                    // what comes through; infinite: no limit
  bool low_saturates, high_saturates;  // the end of a range; else it stands for an activation
} assay_quant_limits_t;

// The limits of a node between a quantizer of one zero point and what dequantizes it; false: it is
// no such node. A limit is the end of a range of bits where it is a power of two or one less, with
// either sign; but at the zero point it cuts as a Relu does, and any other number is an
// activation's.
bool assay_quant_limits_of(const assay_node_t* n, assay_quant_limits_t* out);
// What a node between reads besides limits; NULL: nothing, or several.
const assay_value_t* assay_quant_limited_value(const assay_node_t* n);
// The quantizer whose numbers a node between reads first; NULL: it is none.
const assay_node_t* assay_quant_limited(const assay_node_t* n);

// In truth 'unquantized' ends of ranges limit nothing, as quantizers do not saturate there
// (quant.h): before Clip, Min or Max reads them, they become infinite.
assay_status_t assay_quant_free_limits(assay_eval_t* c) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_QUANT_LIMITS_H_
