// Functions of one element: y[i] = f(x[i]), without parameters.
//
// A loop is a function of its own wherever f is cheap, so that it can be vectorized; the others
// call the C library's function, which is within 1 or 2 ulp (glibc manual, 'Errors in Math
// Functions').
#include <math.h>

#include "base/functions.h"
#include "ops/bound.h"
#include "ops/content.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"

typedef void f64_loop_t(const double* x, double* y, int64_t n);
typedef void i64_loop_t(assay_type_t type, const int64_t* x, int64_t* y, int64_t n);
typedef void test_loop_t(const double* x, int64_t* y, int64_t n);

typedef struct unary {
  const assay_tensor_t* x;
  assay_tensor_t* y;
  double (*f)(double);  // floats: either a function of one element,
  f64_loop_t* f64;      // or a loop
  i64_loop_t* i64;      // integers; the result is wrapped to the type
  test_loop_t* test;    // floats to bool
} unary_t;

static void run_chunk(const void* user, int64_t first, int64_t n) {
  const unary_t* u = user;
  if (u->x->store == ASSAY_STORE_I64) {
    int64_t* y = assay_i64(u->y) + first;
    u->i64(u->x->type, assay_i64(u->x) + first, y, n);
    assay_wrap_n(u->y->type, y, n);
    return;
  }
  const double* x = assay_f64(u->x) + first;
  if (u->test) {
    u->test(x, assay_i64(u->y) + first, n);
  } else if (u->f64) {
    u->f64(x, assay_f64(u->y) + first, n);
  } else {
    double* y = assay_f64(u->y) + first;
    for (int64_t i = 0; i < n; i++) y[i] = u->f(x[i]);
  }
}

// Runs one of the above over input 0.
static assay_status_t run(assay_eval_t* c, unary_t u) {
  u.x = c->in[0];
  bool as_int = u.x->store == ASSAY_STORE_I64;
  if (u.x->store > ASSAY_STORE_I64 || (as_int ? !u.i64 : !u.f && !u.f64 && !u.test))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "it does not take %s tensors",
                            assay_type_name(u.x->type));
  assay_type_t type = u.test ? ASSAY_TYPE_BOOL : u.x->type;
  ASSAY_TRY(assay_eval_output(c, 0, type, u.x->rank, u.x->dims, &u.y));
  assay_chunks_run(u.x->size, u.f ? 20 : 1, run_chunk, &u);
  return NULL;
}

// ---- the C library's functions ----------------------------------------------------------------

static assay_status_t exp_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_exp}); }
static assay_status_t log_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_log}); }
static assay_status_t sin_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_sin}); }
static assay_status_t cos_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_cos}); }
static assay_status_t tan_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_tan}); }
static assay_status_t asin_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_asin}); }
static assay_status_t acos_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_acos}); }
static assay_status_t atan_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_atan}); }
static assay_status_t sinh_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_sinh}); }
static assay_status_t cosh_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_cosh}); }
static assay_status_t tanh_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_tanh}); }
static assay_status_t asinh_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_asinh}); }
static assay_status_t acosh_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_acosh}); }
static assay_status_t atanh_eval(assay_eval_t* c) { return run(c, (unary_t){.f = assay_atanh}); }

// ai.onnx Erf takes integers, too: what a conversion leaves of the result.
static void erf_i64(assay_type_t type, const int64_t* x, int64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = (int64_t)assay_erf(assay_i64_to_f64(type, x[i]));
}

static assay_status_t erf_eval(assay_eval_t* c) {
  return run(c, (unary_t){.f = assay_erf, .i64 = erf_i64});
}

// ---- arithmetic -------------------------------------------------------------------------------

static void abs_f64(const double* x, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = fabs(x[i]);
}

// |INT_MIN| wraps to INT_MIN.
static void abs_i64(assay_type_t type, const int64_t* x, int64_t* y, int64_t n) {
  bool is_signed = assay_type_is_signed(type);
  for (int64_t i = 0; i < n; i++)
    y[i] = is_signed && x[i] < 0 ? assay_as_i64(-assay_as_u64(x[i])) : x[i];
}

static assay_status_t abs_eval(assay_eval_t* c) {
  return run(c, (unary_t){.f64 = abs_f64, .i64 = abs_i64});
}

static void neg_f64(const double* x, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = -x[i];
}

static void neg_i64(assay_type_t type, const int64_t* x, int64_t* y, int64_t n) {
  (void)type;
  for (int64_t i = 0; i < n; i++) y[i] = assay_as_i64(-assay_as_u64(x[i]));
}

static assay_status_t neg_eval(assay_eval_t* c) {
  return run(c, (unary_t){.f64 = neg_f64, .i64 = neg_i64});
}

// The sign of NaN is NaN, as numpy's; the operator's text does not say.
static void sign_f64(const double* x, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? 1.0 : x[i] < 0 ? -1.0 : x[i];
}

static void sign_i64(assay_type_t type, const int64_t* x, int64_t* y, int64_t n) {
  bool is_signed = assay_type_is_signed(type);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] == 0 ? 0 : is_signed && x[i] < 0 ? -1 : 1;
}

static assay_status_t sign_eval(assay_eval_t* c) {
  return run(c, (unary_t){.f64 = sign_f64, .i64 = sign_i64});
}

static void reciprocal_f64(const double* x, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = 1.0 / x[i];
}

static assay_status_t reciprocal_eval(assay_eval_t* c) {
  return run(c, (unary_t){.f64 = reciprocal_f64});
}

static void sqrt_f64(const double* x, double* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = sqrt(x[i]);
}

static assay_status_t sqrt_eval(assay_eval_t* c) { return run(c, (unary_t){.f64 = sqrt_f64}); }

static assay_status_t ceil_eval(assay_eval_t* c) { return run(c, (unary_t){.f = ceil}); }
static assay_status_t floor_eval(assay_eval_t* c) { return run(c, (unary_t){.f = floor}); }
// Ties to even: the rounding mode of the program, which is never changed.
static assay_status_t round_eval(assay_eval_t* c) { return run(c, (unary_t){.f = nearbyint}); }

// ---- bits and tests -----------------------------------------------------------------------------

static void not_i64(assay_type_t type, const int64_t* x, int64_t* y, int64_t n) {
  (void)type;
  for (int64_t i = 0; i < n; i++) y[i] = !x[i];
}

static assay_status_t not_eval(assay_eval_t* c) { return run(c, (unary_t){.i64 = not_i64}); }

static void bitwise_not_i64(assay_type_t type, const int64_t* x, int64_t* y, int64_t n) {
  (void)type;
  for (int64_t i = 0; i < n; i++) y[i] = ~x[i];
}

static assay_status_t bitwise_not_eval(assay_eval_t* c) {
  return run(c, (unary_t){.i64 = bitwise_not_i64});
}

static void is_nan(const double* x, int64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] != x[i];
}

static assay_status_t is_nan_eval(assay_eval_t* c) { return run(c, (unary_t){.test = is_nan}); }

static void is_inf(const double* x, int64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = isinf(x[i]) != 0;
}

static void is_positive_inf(const double* x, int64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] == (double)INFINITY;
}

static void is_negative_inf(const double* x, int64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] == -(double)INFINITY;
}

static void is_nothing(const double* x, int64_t* y, int64_t n) {
  (void)x;
  for (int64_t i = 0; i < n; i++) y[i] = 0;
}

static assay_status_t is_inf_eval(assay_eval_t* c) {
  bool negative = assay_attr_i64(c->node, "detect_negative", 1) != 0;
  bool positive = assay_attr_i64(c->node, "detect_positive", 1) != 0;
  return run(c, (unary_t){.test = negative && positive ? is_inf
                                  : positive           ? is_positive_inf
                                  : negative           ? is_negative_inf
                                                       : is_nothing});
}

// ---- inference --------------------------------------------------------------------------------

static assay_status_t abs_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_same(c));
  return assay_content_unary(c, assay_content_abs);
}

static assay_status_t neg_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_same(c));
  return assay_content_unary(c, assay_content_neg);
}

static assay_status_t not_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_same(c));
  return assay_content_unary(c, assay_content_not);
}

// What is known of an input are whole numbers.
static assay_status_t whole_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_same(c));
  return assay_content_same(c, 0);
}

static assay_status_t test_infer(assay_infer_t* c) {
  assay_shape_t shape = assay_infer_shape(c, 0);
  return assay_infer_set(c, 0, ASSAY_TYPE_BOOL, &shape);
}

// ---- bounds -----------------------------------------------------------------------------------
// Engines reduce the argument of sin, cos and tan with an error of some u |x|; odd functions that
// are computed from exponentials have an error of some u of 1 near 0.

#define CURVE(NAME, ...)                                 \
  static assay_status_t NAME##_bound(assay_bound_t* c) { \
    static const assay_curve_t curve = {__VA_ARGS__};    \
    return assay_bound_curve(c, &curve);                 \
  }

CURVE(plain, .ops = 0)
CURVE(reciprocal, .ops = 1, .pole = true)
CURVE(circle, .definition_x = 2, .slope = 1, .everywhere = true)
CURVE(tan, .definition_x = 2, .pole = true)
CURVE(odd, .definition = 2)

// ---- in twice the precision ---------------------------------------------------------------------

#define DD(NAME, FUNCTION)                                             \
  static void NAME##_dd(assay_dd_eval_t* c) {                          \
    assay_dd_put(c, 0, assay_dd_map1(c, FUNCTION, assay_dd_in(c, 0))); \
  }

static assay_dd_t reciprocal(assay_dd_t x) { return assay_dd_over(assay_dd(1), x); }
static assay_dd_t sign(assay_dd_t x) {
  return assay_dd(x.high > 0 ? 1.0 : x.high < 0 ? -1.0 : x.high);
}
static assay_dd_t ceiling(assay_dd_t x) {
  return assay_dd_negated(assay_dd_floor(assay_dd_negated(x)));
}

DD(abs, assay_dd_magnitude)
DD(neg, assay_dd_negated)
DD(sign, sign)
DD(ceil, ceiling)
DD(floor, assay_dd_floor)
DD(round, assay_dd_round)
DD(reciprocal, reciprocal)
DD(sqrt, assay_dd_root)
DD(exp, assay_dd_exp)
DD(log, assay_dd_log)
DD(sin, assay_dd_sin)
DD(cos, assay_dd_cos)
DD(tan, assay_dd_tan)
DD(asin, assay_dd_asin)
DD(acos, assay_dd_acos)
DD(atan, assay_dd_atan)
DD(sinh, assay_dd_sinh)
DD(cosh, assay_dd_cosh)
DD(tanh, assay_dd_tanh)
DD(asinh, assay_dd_asinh)
DD(acosh, assay_dd_acosh)
DD(atanh, assay_dd_atanh)
DD(erf, assay_dd_erf)

// One row an operator: later versions widen types only (and -1 had an attribute for memory reuse).
#define ROW(NAME, SINCE, INFER, EVAL)                                                      \
  .domain = "", .name = NAME, .since = SINCE, .flags = ASSAY_OP_POINTWISE, .infer = INFER, \
  .eval = EVAL, .cost = assay_pointwise_cost

const assay_op_t assay_ops_unary[] = {
    {ROW("Abs", 1, abs_infer, abs_eval), .bound = assay_bound_exact, .dd = abs_dd},
    {ROW("Neg", 1, neg_infer, neg_eval), .bound = assay_bound_exact, .dd = neg_dd},
    {ROW("Sign", 9, assay_infer_same, sign_eval), .discrete = 1, .bound = assay_bound_exact,
     .dd = sign_dd},
    {ROW("Ceil", 1, whole_infer, ceil_eval), .discrete = 1, .bound = assay_bound_exact,
     .dd = ceil_dd},
    {ROW("Floor", 1, whole_infer, floor_eval), .discrete = 1, .bound = assay_bound_exact,
     .dd = floor_dd},
    {ROW("Round", 11, whole_infer, round_eval), .discrete = 1, .bound = assay_bound_exact,
     .dd = round_dd},
    {ROW("Reciprocal", 1, assay_infer_same, reciprocal_eval), .bound = reciprocal_bound,
     .dd = reciprocal_dd},
    {ROW("Sqrt", 1, assay_infer_same, sqrt_eval), .bound = assay_bound_one_rounding, .dd = sqrt_dd},
    {ROW("Exp", 1, assay_infer_same, exp_eval), .bound = plain_bound, .dd = exp_dd},
    {ROW("Log", 1, assay_infer_same, log_eval), .bound = plain_bound, .dd = log_dd},
    {ROW("Sin", 7, assay_infer_same, sin_eval), .bound = circle_bound, .dd = sin_dd},
    {ROW("Cos", 7, assay_infer_same, cos_eval), .bound = circle_bound, .dd = cos_dd},
    {ROW("Tan", 7, assay_infer_same, tan_eval), .bound = tan_bound, .dd = tan_dd},
    {ROW("Asin", 7, assay_infer_same, asin_eval), .bound = plain_bound, .dd = asin_dd},
    {ROW("Acos", 7, assay_infer_same, acos_eval), .bound = plain_bound, .dd = acos_dd},
    {ROW("Atan", 7, assay_infer_same, atan_eval), .bound = plain_bound, .dd = atan_dd},
    {ROW("Sinh", 9, assay_infer_same, sinh_eval), .bound = odd_bound, .dd = sinh_dd},
    {ROW("Cosh", 9, assay_infer_same, cosh_eval), .bound = plain_bound, .dd = cosh_dd},
    {ROW("Tanh", 1, assay_infer_same, tanh_eval), .bound = odd_bound, .dd = tanh_dd},
    {ROW("Asinh", 9, assay_infer_same, asinh_eval), .bound = odd_bound, .dd = asinh_dd},
    {ROW("Acosh", 9, assay_infer_same, acosh_eval), .bound = odd_bound, .dd = acosh_dd},
    {ROW("Atanh", 9, assay_infer_same, atanh_eval), .bound = odd_bound, .dd = atanh_dd},
    {ROW("Erf", 9, assay_infer_same, erf_eval), .bound = odd_bound, .dd = erf_dd},
    {ROW("Not", 1, not_infer, not_eval), .bound = assay_bound_exact},
    {ROW("BitwiseNot", 18, assay_infer_same, bitwise_not_eval)},
    {ROW("IsNaN", 9, test_infer, is_nan_eval), .discrete = 1, .bound = assay_bound_exact},
    {ROW("IsInf", 10, test_infer, is_inf_eval), .discrete = 1, .bound = assay_bound_exact},
    {0},
};
