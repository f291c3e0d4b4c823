// How far quantized numbers may differ because of rounding before the choice: in steps.
//
// q = round(x / scale) + zero. Where the quotient is known to within e, the integer is one of those
// between that of (quotient - e) and that of (quotient + e): mostly one only, two beside a tie.
#ifndef ASSAY_OPS_QUANT_QUANT_BOUND_H_
#define ASSAY_OPS_QUANT_QUANT_BOUND_H_

#include "ops/bound_parts.h"
#include "ops/quant/quant.h"

typedef struct assay_quant_steps {
  assay_quantizer_t quantizer;  // exact
  double u;                     // of one operation on the quotient, relative
  bool documented;              // divides, and rounds before it adds the zero point
} assay_quant_steps_t;

// quotient: the format that the node itself asks for; FP64 or NONE: none.
assay_quant_steps_t assay_steps_of(const assay_rounding_t* r, assay_type_t type, bool saturate,
                                   assay_format_t quotient);

// A number with how far the engine's may lie from it.
typedef struct assay_quant_near {
  double value, error;
} assay_quant_near_t;

// The most steps (for floats: the most) by which an engine's quantized x may differ from y, which
// is truth's.
double assay_steps_limit(const assay_quant_steps_t* s, assay_quant_near_t x,
                         assay_quant_near_t scale, assay_quant_near_t zero, double y);

// Limits of output 0, a tensor quantized with one scale and zero point (inputs by number; zero
// SIZE_MAX or left out: 0): x is what was quantized, in truth, x_error how far the engine's lies
// from it.
assay_status_t assay_steps_output(assay_bound_t* c, size_t scale, size_t zero, const double* x,
                                  const double* const x_error[2]) ASSAY_MUST_USE;

// The same from what the row's eval puts out as real numbers in truth 'unquantized', with one error
// for all elements: far below a step, so that only those beside a tie may differ.
assay_status_t assay_steps_of_eval(assay_bound_t* c, assay_status_t (*eval)(assay_eval_t* c),
                                   size_t scale, size_t zero, assay_factor_t error) ASSAY_MUST_USE;

// The largest magnitude that dequantizing input `tensor` meets on the way: (|x| + |zero|) |scale|.
double assay_quant_largest(const assay_bound_t* c, size_t tensor, size_t scale, size_t zero);

// The error of a mean of so many real numbers up to `largest`.
assay_factor_t assay_quant_mean_error(const assay_bound_t* c, double terms, double largest);

// Whether output i was quantized (not in truth 'unquantized').
bool assay_bound_is_quantized(const assay_bound_t* c, size_t output);

#endif  // ASSAY_OPS_QUANT_QUANT_BOUND_H_
