// Linear quantization: q = round(x / scale) + zero, x = (q - zero) * scale.
//
// In truth 'unquantized', quantizers neither round nor saturate: what they make are real numbers in
// units of the scale, x / scale + zero, kept as floats whatever integer type the graph declares;
// and so is what other operators make of them. So each operator's own formula stays right, (q -
// zero) * scale as well as a sum of products of MatMulInteger that is scaled later, and quantized
// constants, which stay as they are, fit in. Of saturation one thing is kept: where the zero point
// is the type's smallest number, nothing below it comes out, since exporters drop the Relu in front
// of such a quantizer. The machine hands real numbers to operators that could take floats there,
// and to those with ASSAY_OP_QUANTIZES, which know of them; all others, and who takes the graph's
// outputs, get the integers that the real numbers round to (assay_quant_settle).
#ifndef ASSAY_OPS_QUANT_QUANT_H_
#define ASSAY_OPS_QUANT_QUANT_H_

#include "ops/op.h"

// Whether a value holds real numbers where the graph declares integers.
bool assay_quant_is_real(const assay_value_t* v, const assay_tensor_t* t);
// The zero point of real numbers: none where the scale is so coarse (it was made for a mask of
// -3.4e38) that a sum with it would leave nothing of ordinary numbers in float64.
double assay_quant_real_zero(double scale, double zero);
// The integers of a type that real numbers round to, saturated; NaN becomes 0.
assay_status_t assay_quant_settle(const assay_tensor_t* t, assay_type_t type,
                                  assay_tensor_t** out) ASSAY_MUST_USE;
// Whether a QuantizeLinear lets nothing below 0 through: its zero points are constant, and its
// type's smallest number. It may stand for a Relu.
bool assay_quant_cuts_at_zero(const assay_node_t* node);
// The type of a tensor of quantized values: the declared one, or FLOAT for real numbers in place of
// integers.
assay_type_t assay_quant_type(const assay_eval_t* c, assay_type_t type);

// How to make quantized values. Fill by hand or with assay_quantizer().
typedef struct assay_quantizer {
  assay_type_t type;          // int8, uint4, float8e4m3fn, ...
  double min, max;            // of an integer type
  assay_format_t quotient;    // x, scale and x / scale are rounded to it; FP64: not
  assay_overflow_t overflow;  // of a float type
  bool real;                  // truth 'unquantized'
} assay_quantizer_t;

// saturate: of 8-bit float types; smaller floats and integers saturate always.
assay_quantizer_t assay_quantizer(const assay_eval_t* c, assay_type_t type, assay_format_t quotient,
                                  bool saturate);
// The quantized value as a double. Ties to even. NaN becomes 0 in an integer type.
double assay_quantize(const assay_quantizer_t* q, double x, double scale, double zero);

// How scales lie in a tensor: one for all, one for each index of an axis, or one for each block of
// block_size indices of an axis (its own dimension is ceil(d / block_size)).
// Source: ONNX QuantizeLinear-21, 'three supported quantization granularities'.
typedef struct assay_scales {
  int axis;            // -1: one scale for all
  int64_t block_size;  // 0: no blocks
} assay_scales_t;

// axis is that of the attribute; it counts only where there are several scales.
assay_status_t assay_scales_find(const assay_eval_t* c, const assay_tensor_t* x,
                                 const assay_tensor_t* scale, const assay_tensor_t* zero_or_null,
                                 int64_t axis, int64_t block_size,
                                 assay_scales_t* out) ASSAY_MUST_USE;
// The same when inferring: fails where scale's shape cannot fit x's.
assay_status_t assay_scales_check(const assay_infer_t* c, size_t x, size_t scale, int64_t axis,
                                  int64_t block_size) ASSAY_MUST_USE;

// y = quantized x; y has the shape of x and its elements in F64 or I64 by the quantizer's type.
void assay_quantize_tensor(const assay_quantizer_t* q, const assay_scales_t* where,
                           const assay_tensor_t* x, const assay_tensor_t* scale,
                           const assay_tensor_t* zero_or_null, assay_tensor_t* y);
// y = (x - zero) * scale as doubles.
void assay_dequantize_tensor(const assay_scales_t* where, const assay_tensor_t* x,
                             const assay_tensor_t* scale, const assay_tensor_t* zero_or_null,
                             assay_tensor_t* y);

// Calls f for runs of x: n elements from number x on, by x_step, with their scales from number
// s on, by s_step. In several threads where there is enough work.
typedef void assay_scales_fn(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                             int64_t s_step);
void assay_scales_run(const assay_scales_t* where, const assay_tensor_t* x, assay_scales_fn* f,
                      const void* user);

// ---- operands with one scale, for com.microsoft's QLinear operators ----------------------------

// Reads elements as real numbers.
typedef struct assay_qreal {
  const assay_tensor_t* t;
  double scale, zero;
  bool to_fp32;  // products are rounded to fp32, as all but truth do
} assay_qreal_t;

// Inputs `tensor`, `scale` and `zero` (left out: 0) of the node; one scale.
assay_status_t assay_qreal_init(const assay_eval_t* c, size_t tensor, size_t scale, size_t zero,
                                assay_qreal_t* out) ASSAY_MUST_USE;
double assay_qreal_get(const assay_qreal_t* q, int64_t i);

// Writes real numbers as quantized ones.
typedef struct assay_qwriter {
  assay_quantizer_t quantizer;
  assay_tensor_t* t;
  double scale, zero;
  bool to_fp32;
} assay_qwriter_t;

// Makes output 0 with this shape; its type is `type` where it is quantized.
assay_status_t assay_qwriter_init(assay_eval_t* c, size_t scale, size_t zero, assay_type_t type,
                                  int rank, const int64_t* dims,
                                  assay_qwriter_t* out) ASSAY_MUST_USE;
void assay_qwriter_set(const assay_qwriter_t* w, int64_t i, double x);
// A number rounded as intermediate results of these operators are: to fp32 in all modes but truth.
static inline double assay_qround(bool to_fp32, double x) { return to_fp32 ? (double)(float)x : x; }

#endif  // ASSAY_OPS_QUANT_QUANT_H_
