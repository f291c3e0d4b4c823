// Rounding bounds: how far an engine's result of an operator may lie from truth, element by
// element.
//
// A row's bound function is given the numbers that the engine computed with, truth of the node on
// them, and how the engine rounds; it gives for each element of each float output
//
//   guaranteed  no rounding of that kind can pass it, whatever the order of operations
//   probable    passed by fewer than 1 in 10^6 elements, if rounding errors are independent
//               with mean zero (6 standard deviations)
//
// of the value as the engine's arithmetic leaves it, *before* it is rounded to the format in which
// it is stored (where that is narrower than the arithmetic's). Rounding is monotone, so a stored
// element is explained if it lies between the roundings of truth - bound and truth + bound.
// Discrete outputs (integers, ...) are bounded in their own units: a bound function is needed only
// where rounding comes before the choice (QuantizeLinear); otherwise any difference is a defect.
//
// Where nothing is said otherwise: u is the unit roundoff of the arithmetic, n the number of terms
// of a sum. Sources of the sums' formulas:
//   guaranteed  n u sum|a||b|: C.-P. Jeannerod and S. M. Rump, Improved error bounds for inner
//               products in floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34 (2013)
//   probable    6 sqrt(n) u sum|a||b|: N. J. Higham and T. Mary, A new approach to probabilistic
//               rounding error analysis, SIAM J. Sci. Comput. 41 (2019), with lambda = 6
#ifndef ASSAY_OPS_BOUND_H_
#define ASSAY_OPS_BOUND_H_

#include "ops/op.h"

typedef enum assay_summation {
  ASSAY_SUM_ANY = 0,  // any order, up to one after the other
  ASSAY_SUM_BLOCKED,  // blocks of `block` terms one after the other, their sums pairwise
} assay_summation_t;

typedef enum assay_algorithm {
  ASSAY_ALGORITHM_DIRECT = 0,
  ASSAY_ALGORITHM_WINOGRAD_2_3,  // F(2,3) in each dimension of a convolution
  ASSAY_ALGORITHM_WINOGRAD_4_3,  // F(4,3)
  // Products and convolutions of numbers that are split into bf16 parts: the three or the six
  // largest products of the parts (split_products.h).
  ASSAY_ALGORITHM_SPLIT_3,
  ASSAY_ALGORITHM_SPLIT_6,
  ASSAY_ALGORITHM_TF32_3,  // of two tf32 parts each, the three largest products (tf32_products.h)
} assay_algorithm_t;

// How an engine rounds inside a layer.
typedef struct assay_rounding {
  assay_format_t compute;      // single operations and functions: fp32 for the 16-bit formats
  assay_format_t accumulator;  // running sums
  bool truncates;              // the accumulator rounds towards zero (tensor cores)
  bool flushes;                // subnormal results become 0
  bool documented;             // the order of operations is that of the emulated engine or near it
  bool fma;                    // a product is not rounded before it is added
  bool by_definition;          // functions may be computed by their textbook formulas (Gelu as
                               // x/2 (1 + erf)), whose tails cancel
  double function_ulps;        // error of library functions in ulps of `compute`
  // Weights of attention and states of recurrent layers are rounded to this format where they are
  // multiplied, and are kept as wide as `compute` otherwise; NONE: not rounded. TF32: so are all
  // values hidden in a layer of tf32, as those are that enter it (plan/layers.h).
  assay_format_t operands;
  double weight_error;  // relative, of weights' exponentials; 0: that of function_ulps
  assay_summation_t order;
  int64_t block;   // of BLOCKED
  int64_t splits;  // parts of a sum that are added up at the end (split-K); 0 or 1: none
  assay_algorithm_t algorithm;  // of convolutions and products
} assay_rounding_t;

// What a row's bound function may assume of an engine of which only the formats are known.
assay_rounding_t assay_rounding_unknown(assay_format_t compute, assay_format_t accumulator);

// Limits on the error of a tensor's elements: float64, of its shape. NULL: 0 everywhere.
typedef struct assay_limits {
  assay_tensor_t *guaranteed, *probable;
} assay_limits_t;

struct assay_bound {
  const assay_node_t* node;
  const assay_rounding_t* rounding;
  size_t n_in, n_out;
  assay_tensor_t* const* in;       // what the engine computes with, canonical; NULL: left out
  const assay_limits_t* in_error;  // by input: how far the engine's own value may lie from it
                                   // (hidden values of a fused layer)
  assay_tensor_t* const* out;      // truth of the node on `in`
  assay_limits_t* out_error;       // to be made; what stays NULL is 0
  // Discrete outputs after inputs with limits: choices that these leave open are counted, and
  // taken to be truth's, without limits. With `flips` they have limits that reach to whatever else
  // may come out; so whole numbers have limits, too.
  bool flips;
  int64_t open;  // added to
  // Evaluates the node in float64 on other inputs. coarse: products of matrices may be computed in
  // fp32, each within a relative error of the number of its terms times 2^-23.
  assay_status_t (*evaluate)(assay_bound_t* c, bool coarse, assay_tensor_t* const* in,
                             assay_tensor_t** out);
  void* driver;
};

// The limits of all float outputs of a node: by its row's bound function; 0 for operators that move
// elements only (what came in moves along) and for discrete outputs. Fills c->out_error.
// Errors: UNSUPPORTED if the row has no bound function or does not take limits on its inputs.
assay_status_t assay_bound_node(assay_bound_t* c) ASSAY_MUST_USE;
void assay_limits_deinit(assay_limits_t* l);

// ---- numbers ---------------------------------------------------------------------------------

double assay_bound_unit(assay_format_t format);  // u; 0 for integers
// u of `operands`; 0 where they are rounded no further than the arithmetic's own formats.
double assay_bound_operands(const assay_rounding_t* r);
// What rounding to `operands` adds where the result is subnormal: absolute; 0 as there.
double assay_bound_operand_tiny(const assay_rounding_t* r);

// A factor on sum|terms|: what adding n terms, each rounded once before (a product), can do.
typedef struct assay_factor {
  double guaranteed, probable;
} assay_factor_t;
assay_factor_t assay_bound_sum(const assay_rounding_t* r, double n);
// The limits of a sum of n such terms that is `value` and whose magnitudes add up to `size`: no
// more than the factor times `size`, and less where terms cancel.
assay_factor_t assay_bound_sum_of(const assay_rounding_t* r, double n, double size, double value);
// The limits of a sum of which `few` roundings are inexact, and no partial sum is larger than
// `max`.
assay_factor_t assay_bound_few(const assay_rounding_t* r, double few, double max);
// `ops` roundings in a row in the compute format, relative to the result's magnitude.
assay_factor_t assay_bound_ops(const assay_rounding_t* r, double ops);
// A library function's value, relative: function_ulps.
assay_factor_t assay_bound_function(const assay_rounding_t* r);
static inline assay_factor_t assay_factor_add(assay_factor_t a, assay_factor_t b) {
  return (assay_factor_t){a.guaranteed + b.guaranteed, a.probable + b.probable};
}
// What one operation adds where its result is subnormal or flushed: absolute, in a format.
double assay_bound_tiny(const assay_rounding_t* r, assay_format_t format);

// ---- making limits ---------------------------------------------------------------------------

// Makes limits for output i with elements not set; fills in both arrays' pointers. Where
// the output is not a float tensor or left out, gives NULLs.
assay_status_t assay_bound_output(assay_bound_t* c, size_t i, double** guaranteed,
                                  double** probable) ASSAY_MUST_USE;
// Limits f * |x| + tiny for output i; x has the output's shape.
assay_status_t assay_bound_scaled(assay_bound_t* c, size_t i, assay_factor_t f,
                                  const assay_tensor_t* x, double tiny) ASSAY_MUST_USE;
// Adds b's limits to a's.
assay_status_t assay_limits_add(assay_limits_t* a, const assay_limits_t* b) ASSAY_MUST_USE;

bool assay_bound_inputs_exact(const assay_bound_t* c);  // no input has limits
// |x| of a float tensor as a new one; others retained. NULL gives NULL.
assay_status_t assay_tensor_abs(assay_tensor_t* t, assay_tensor_t** out) ASSAY_MUST_USE;

// ---- ready-made bound functions and their parts ------------------------------------------------

// For operators whose result is computed from the inputs by so many roundings in a row and nothing
// that cancels: limits f * |y| + tiny, and what came in by evaluating at the corners of the inputs'
// limits, which is exact for functions monotone in each input.
assay_status_t assay_bound_monotone(assay_bound_t* c, assay_factor_t local) ASSAY_MUST_USE;
assay_status_t assay_bound_one_rounding(assay_bound_t* c);  // +, -, *, /, sqrt, ...: monotone
assay_status_t assay_bound_exact(assay_bound_t* c);         // Max, Abs, ...: no rounding, monotone
assay_status_t assay_bound_one_function(assay_bound_t* c);  // exp, log, ...: a library function

// A function of input 0, and how it may be computed.
typedef struct assay_curve {
  double ops;  // roundings of single operations; 0: a library function
  // Absolute parts of the error, in units of u: at * 1 + at_x * |x|. Always, where the operator's
  // own definition cancels; only engines that compute by definition have the second pair.
  double floor, floor_x;
  double definition, definition_x;
  // Where the function is neither monotone nor convex or concave around an extremum: its place, and
  // the largest |slope| that it has anywhere. slope 0: none. everywhere: the slope is what counts
  // for all x (sin, cos).
  double extremum, slope;
  bool everywhere;
  bool pole;  // an interval whose ends lie on two branches may hold anything (1/x, tan)
} assay_curve_t;
assay_status_t assay_bound_curve(assay_bound_t* c, const assay_curve_t* curve) ASSAY_MUST_USE;

// Sums of products that are linear in each of the `factors` (inputs by number); the other float
// inputs are added. Limits: factor(terms) * op(|inputs|); what came in: op(|inputs|) with one input
// its limit and the others as wide as they may be.
typedef struct assay_products {
  size_t factors[4], n_factors;
  double terms;  // of one sum, what is added and scaled included
  double extra;  // roundings of a term besides the sum's
  double ends;   // roundings of the whole sum
  double scale;  // |what the sums are multiplied by at the end|; 0: nothing
  bool plain;    // sums of the factor's own elements, divided by `terms` at most
  bool opposed;  // what is added enters with the opposite sign (Gemm with alpha * beta < 0)
} assay_products_t;
assay_status_t assay_bound_products(assay_bound_t* c, const assay_products_t* p) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_BOUND_H_
