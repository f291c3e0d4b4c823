// Activations: functions of one element with parameters or with tails that need care.
//
// e^t for an inexact t of large magnitude would carry t's rounding error times |t|; where that
// matters (Gelu, Swish) t is kept as a sum t + dt of two doubles and e^(t + dt) = e^t * (1 + dt).
#include "ops/math/activation.h"

#include <math.h>

#include "base/functions.h"
#include "ops/bound.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"

// ---- sums of two doubles ------------------------------------------------------------------------
// Source: T. J. Dekker, A floating-point technique for extending the available precision (1971).

typedef struct dd {
  double hi, lo;
} dd_t;

static dd_t dd_fast_sum(double a, double b) {  // |a| >= |b| or a == 0
  double s = a + b;
  return (dd_t){s, b - (s - a)};
}

static dd_t dd_product(double a, double b) {
  double p = a * b;
  return (dd_t){p, fma(a, b, -p)};
}

static dd_t dd_scale(dd_t a, double b) {
  dd_t p = dd_product(a.hi, b);
  return dd_fast_sum(p.hi, fma(a.lo, b, p.lo));
}

static dd_t dd_mul(dd_t a, dd_t b) {
  dd_t p = dd_product(a.hi, b.hi);
  return dd_fast_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static dd_t dd_add(dd_t a, dd_t b) {  // |a| >= |b|
  dd_t s = dd_fast_sum(a.hi, b.hi);
  return dd_fast_sum(s.hi, s.lo + (a.lo + b.lo));
}

// x * sigmoid(t.hi + t.lo); t is not NaN.
static double times_sigmoid(double x, dd_t t) {
  if (t.hi >= 0) {
    double e = assay_exp(-t.hi);
    return x / (1 + (e - e * t.lo));
  }
  // For large -t the denominator is 1, and e^t may be subnormal where x * e^t is not: halve t.
  if (t.hi < -40) {
    double s = assay_exp(t.hi / 2);
    s += s * (t.lo / 2);
    return x * s * s;
  }
  double e = assay_exp(t.hi);
  e += e * t.lo;
  return x * e / (1 + e);
}

// ---- the functions -----------------------------------------------------------------------------

double assay_sigmoid(double x) {
  if (x >= 0) return 1 / (1 + assay_exp(-x));
  double e = assay_exp(x);
  return e / (1 + e);
}

double assay_softplus(double x) {
  if (x > 0) return x + assay_log1p(assay_exp(-x));
  return assay_log1p(assay_exp(x));
}

double assay_softsign(double x) {
  if (isinf(x)) return copysign(1, x);
  return x / (1 + fabs(x));
}

// x * Phi(x) for x < -36: the asymptotic series of the normal distribution's tail,
//   Phi(x) = phi(x) / |x| * (1 - 1/x^2 + 3/x^4 - 15/x^6 + ...),
// whose seventh term is below 2^-70 there.
// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.12.
static double gelu_tail(double x) {
  static const double inv_sqrt_2pi = 0x1.9884533d43651p-2;
  if (x < -60) return -0.0;  // below the smallest subnormal
  dd_t square = dd_product(x, x);
  double r = 1 / square.hi;
  double series = 1 - r * (1 - r * (3 - r * (15 - r * (105 - r * (945 - r * 10395)))));
  double s = assay_exp(-square.hi / 4);  // twice half the exponent: e^(-x^2/2) may be subnormal
  s -= s * (square.lo / 4);
  return -(inv_sqrt_2pi * series * s) * s;
}

double assay_gelu(double x) {
  // 1/sqrt(2) as a sum, and 2/sqrt(pi), the factor of erfc's derivative.
  static const dd_t inv_sqrt2 = {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55};
  static const double two_over_sqrt_pi = 0x1.20dd750429b6dp+0;
  if (x >= 0) {
    if (x > 40) return x;
    return 0.5 * x * (1 + assay_erf(x * inv_sqrt2.hi));
  }
  if (x < -36) return gelu_tail(x);
  // erfc(t + dt) = erfc(t) - 2/sqrt(pi) e^(-t^2) dt
  dd_t t = dd_scale(inv_sqrt2, -x);
  double q = assay_erfc(t.hi) - two_over_sqrt_pi * assay_exp(-t.hi * t.hi) * t.lo;
  return 0.5 * x * q;
}

double assay_gelu_tanh(double x) {
  // (1 + tanh(u)) / 2 = sigmoid(2u), and 2u = x * (a + b x^2) with a = 2 sqrt(2/pi), b = 0.044715
  // a.
  static const dd_t a = {0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54};
  static const dd_t c = {0x1.6e4e26d4801f7p-5, 0x1.441355475a31ap-59};
  if (isnan(x)) return x;
  if (x > 40) return x;
  if (x < -40) return -0.0;
  dd_t cubic = dd_mul(c, dd_product(x, x));
  dd_t factor = cubic.hi > 1 ? dd_add(cubic, (dd_t){1, 0}) : dd_add((dd_t){1, 0}, cubic);
  return times_sigmoid(x, dd_scale(dd_mul(a, factor), x));
}

double assay_swish(double x, double alpha) {
  if (isnan(x) || isnan(alpha)) return x + alpha;
  if (alpha == 0) return x / 2;
  double t = alpha * x;
  if (isinf(t)) return t > 0 ? x : copysign(0, x);
  return times_sigmoid(x, (dd_t){t, fma(alpha, x, -t)});
}

// With e = e^x and m = e^-x: tanh(ln(1 + e)) = e (e + 2) / (e (e + 2) + 2) = (1 + 2m) / (1 + 2m +
// 2m^2).
double assay_mish(double x) {
  if (x > 0) {
    double m = assay_exp(-x);
    return x * ((1 + 2 * m) / (1 + 2 * m * (1 + m)));
  }
  if (x < -40) {  // x e^x, where e^x may be subnormal
    if (isinf(x)) return -0.0;
    double s = assay_exp(x / 2);
    return x * s * s;
  }
  double e = assay_exp(x), n = e * (e + 2);
  return x * (n / (n + 2));
}

double assay_hard_sigmoid(double x, double alpha, double beta) {
  double y = fma(alpha, x, beta);
  return y < 0 ? 0 : y > 1 ? 1 : y;
}

// Source: the function body of HardSwish 14, where alpha = 1/6 is an attribute of HardSigmoid and
// so float32: that is the number that every user of the standard's own definition computes with.
double assay_hard_swish(double x) {
  if (x <= -3) return -0.0;
  return x >= 3 ? x : x * assay_hard_sigmoid(x, 0x1.555556p-3, 0.5);
}

double assay_elu(double x, double alpha) { return x < 0 ? alpha * assay_expm1(x) : x; }

double assay_celu(double x, double alpha) { return x < 0 ? alpha * assay_expm1(x / alpha) : x; }

double assay_selu(double x, double alpha, double gamma) {
  return gamma * (x > 0 ? x : alpha * assay_expm1(x));
}

// ---- the loop over elements --------------------------------------------------------------------

typedef struct activation {
  const assay_tensor_t *x, *b;  // b: second input of SwiGLU
  assay_tensor_t* y;
  double p[2];             // attributes
  double (*f0)(double x);  // one of these
  double (*f1)(double x, double p0);
  double (*f2)(double x, double p0, double p1);
} activation_t;

static void run_chunk(const void* user, int64_t first, int64_t n) {
  const activation_t* a = user;
  const double* x = assay_f64(a->x) + first;
  double* y = assay_f64(a->y) + first;
  if (a->f0) {
    for (int64_t i = 0; i < n; i++) y[i] = a->f0(x[i]);
  } else if (a->f1) {
    for (int64_t i = 0; i < n; i++) y[i] = a->f1(x[i], a->p[0]);
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = a->f2(x[i], a->p[0], a->p[1]);
  }
  if (a->b) {
    const double* b = assay_f64(a->b) + first;
    for (int64_t i = 0; i < n; i++) y[i] *= b[i];
  }
}

static assay_status_t want_floats(const assay_eval_t* c, const assay_tensor_t* t) {
  if (t->store == ASSAY_STORE_F64) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "it does not take %s tensors",
                          assay_type_name(t->type));
}

static assay_status_t run(assay_eval_t* c, activation_t a) {
  a.x = c->in[0];
  ASSAY_TRY(want_floats(c, a.x));
  ASSAY_TRY(assay_eval_output(c, 0, a.x->type, a.x->rank, a.x->dims, &a.y));
  assay_chunks_run(a.x->size, 20, run_chunk, &a);
  return NULL;
}

static double attr(const assay_eval_t* c, const char* name, double otherwise) {
  return assay_attr_f64(c->node, name, otherwise);
}

static assay_status_t sigmoid_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f0 = assay_sigmoid});
}
static assay_status_t softplus_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f0 = assay_softplus});
}
static assay_status_t softsign_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f0 = assay_softsign});
}
static assay_status_t mish_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f0 = assay_mish});
}
static assay_status_t hard_swish_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f0 = assay_hard_swish});
}
static assay_status_t swish_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f1 = assay_swish, .p = {attr(c, "alpha", 1)}});
}
static assay_status_t elu_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f1 = assay_elu, .p = {attr(c, "alpha", 1)}});
}
static assay_status_t celu_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f1 = assay_celu, .p = {attr(c, "alpha", 1)}});
}
static assay_status_t selu_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f2 = assay_selu,
                               .p = {attr(c, "alpha", 1.67326319217681884765625),
                                     attr(c, "gamma", 1.05070102214813232421875)}});
}
static assay_status_t hard_sigmoid_eval(assay_eval_t* c) {
  return run(c, (activation_t){.f2 = assay_hard_sigmoid,
                               .p = {attr(c, "alpha", 0.2), attr(c, "beta", 0.5)}});
}

static assay_status_t gelu_eval(assay_eval_t* c) {
  const char* approximate = assay_attr_str(c->node, "approximate", "none");
  if (strcmp(approximate, "none") == 0) return run(c, (activation_t){.f0 = assay_gelu});
  if (strcmp(approximate, "tanh") == 0) return run(c, (activation_t){.f0 = assay_gelu_tanh});
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "attribute approximate is '%s'; it must be 'none' or 'tanh'",
                          approximate);
}

static assay_status_t swiglu_eval(assay_eval_t* c) {
  const assay_tensor_t *a = c->in[0], *b = c->in[1];
  ASSAY_TRY(want_floats(c, b));
  if (a->rank != b->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "A has shape %s and B has shape %s; they must be the same",
                            ASSAY_DIMS_TEXT(a), ASSAY_DIMS_TEXT(b));
  return run(c, (activation_t){.f1 = assay_swish, .p = {attr(c, "alpha", 1)}, .b = b});
}

static assay_status_t swiglu_infer(assay_infer_t* c) {
  assay_shape_t a = assay_infer_shape(c, 0), b = assay_infer_shape(c, 1);
  bool differ = a.known && b.known && a.rank != b.rank;
  for (int i = 0; a.known && b.known && !differ && i < a.rank; i++) {
    differ = assay_dim_differ(a.dims[i], b.dims[i]);
    if (!a.dims[i]) a.dims[i] = b.dims[i];
  }
  if (differ)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_CORRUPT, "A is %s and B is %s; their shapes must be the same",
        ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)));
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, a.known ? &a : &b);
}

// ---- piecewise linear --------------------------------------------------------------------------

typedef struct piecewise {
  const assay_tensor_t* x;
  assay_tensor_t* y;
  double p[2];
} piecewise_t;

static void relu_chunk(const void* user, int64_t first, int64_t n) {
  const piecewise_t* a = user;
  if (a->x->store == ASSAY_STORE_I64) {
    const int64_t* x = assay_i64(a->x) + first;
    int64_t* y = assay_i64(a->y) + first;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
    return;
  }
  const double* x = assay_f64(a->x) + first;
  double* y = assay_f64(a->y) + first;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static void leaky_relu_chunk(const void* user, int64_t first, int64_t n) {
  const piecewise_t* a = user;
  const double* x = assay_f64(a->x) + first;
  double *y = assay_f64(a->y) + first, alpha = a->p[0];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? alpha * x[i] : x[i];
}

static void thresholded_relu_chunk(const void* user, int64_t first, int64_t n) {
  const piecewise_t* a = user;
  const double* x = assay_f64(a->x) + first;
  double *y = assay_f64(a->y) + first, alpha = a->p[0];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] > alpha ? x[i] : 0;
}

// x + bias truncated towards zero, for an integer of a type. Source: ONNX Shrink-9, whose
// attributes are floats for integer tensors, too.
static int64_t add_truncated(assay_type_t type, int64_t x, double bias) {
  double whole = floor(bias);
  if (!(whole >= -0x1p62 && whole <= 0x1p62)) return assay_type_saturate(type, bias);
  int64_t y = assay_type_wrap(type, assay_as_i64(assay_as_u64(x) + assay_as_u64((int64_t)whole)));
  bool negative = y < 0 && type != ASSAY_TYPE_UINT64;
  return negative && bias > whole ? y + 1 : y;
}

static void shrink_chunk(const void* user, int64_t first, int64_t n) {
  const piecewise_t* a = user;
  double lambd = a->p[0], bias = a->p[1];
  if (a->x->store == ASSAY_STORE_I64) {
    const int64_t* x = assay_i64(a->x) + first;
    int64_t* y = assay_i64(a->y) + first;
    assay_type_t type = a->x->type;
    for (int64_t i = 0; i < n; i++) {
      double v = assay_i64_to_f64(type, x[i]);
      y[i] = v < -lambd  ? add_truncated(type, x[i], bias)
             : v > lambd ? add_truncated(type, x[i], -bias)
                         : 0;
    }
    return;
  }
  const double* x = assay_f64(a->x) + first;
  double* y = assay_f64(a->y) + first;
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    y[i] = x[i] < -lambd ? x[i] + bias : x[i] > lambd ? x[i] - bias : 0;
}

static assay_status_t run_piecewise(assay_eval_t* c, assay_chunk_fn* f, piecewise_t a) {
  a.x = c->in[0];
  ASSAY_TRY(assay_eval_output(c, 0, a.x->type, a.x->rank, a.x->dims, &a.y));
  assay_chunks_run(a.x->size, 1, f, &a);
  return NULL;
}

static assay_status_t want_numbers(const assay_eval_t* c) {
  if (c->in[0]->store == ASSAY_STORE_I64) return NULL;
  return want_floats(c, c->in[0]);
}

static assay_status_t relu_eval(assay_eval_t* c) {
  ASSAY_TRY(want_numbers(c));
  return run_piecewise(c, relu_chunk, (piecewise_t){0});
}

static assay_status_t leaky_relu_eval(assay_eval_t* c) {
  ASSAY_TRY(want_floats(c, c->in[0]));
  return run_piecewise(c, leaky_relu_chunk, (piecewise_t){.p = {attr(c, "alpha", 0.01)}});
}

static assay_status_t thresholded_relu_eval(assay_eval_t* c) {
  ASSAY_TRY(want_floats(c, c->in[0]));
  return run_piecewise(c, thresholded_relu_chunk, (piecewise_t){.p = {attr(c, "alpha", 1)}});
}

static assay_status_t shrink_eval(assay_eval_t* c) {
  ASSAY_TRY(want_numbers(c));
  return run_piecewise(c, shrink_chunk,
                       (piecewise_t){.p = {attr(c, "lambd", 0.5), attr(c, "bias", 0)}});
}

// ---- bounds -----------------------------------------------------------------------------------
// Engines that compute by the textbook formula, x / (1 + e^-x) and the like, have an error of some
// u of the largest intermediate value. Extrema and largest slopes are the functions' own.

static double bound_attr(const assay_bound_t* c, const char* name, double otherwise) {
  return assay_attr_f64(c->node, name, otherwise);
}

#define CURVE(NAME, ...)                                 \
  static assay_status_t NAME##_bound(assay_bound_t* c) { \
    const assay_curve_t curve = {__VA_ARGS__};           \
    return assay_bound_curve(c, &curve);                 \
  }

// (1 + tanh(x / 2)) / 2 is a textbook formula, too: half of what tanh near 1 may be off by.
CURVE(sigmoid, .definition = 4)
CURVE(softplus, .definition = 2, .definition_x = 1)
CURVE(softsign, .ops = 3)
CURVE(gelu, .definition_x = 4, .extremum = -0.7517916243494656, .slope = 1.1290)
CURVE(mish, .definition_x = 4, .extremum = -1.1924312145154, .slope = 1.0885)
CURVE(hard_swish, .ops = 4, .floor_x = 2, .extremum = -1.5, .slope = 1.5)
CURVE(linear, .ops = 1)
CURVE(elu, .definition = 2 * fabs(bound_attr(c, "alpha", 1)), .extremum = 0,
      .slope = fmax(1, fabs(bound_attr(c, "alpha", 1))))
CURVE(celu, .definition = 2 * fabs(bound_attr(c, "alpha", 1)), .extremum = 0, .slope = 1)
CURVE(selu, .definition = 4 * fabs(bound_attr(c, "alpha", 1.6733) * bound_attr(c, "gamma", 1.0508)),
      .extremum = 0,
      .slope = fabs(bound_attr(c, "gamma", 1.0508)) * fmax(1, fabs(bound_attr(c, "alpha", 1.6733))))
CURVE(hard_sigmoid, .ops = 2, .floor = fabs(bound_attr(c, "beta", 0.5)),
      .floor_x = fabs(bound_attr(c, "alpha", 0.2)))

static assay_status_t swish_bound(assay_bound_t* c) {
  const double alpha = bound_attr(c, "alpha", 1);
  const assay_curve_t curve = {
      .definition_x = 3, .extremum = alpha != 0 ? -1.2784645427610738 / alpha : 0, .slope = 1.0999};
  return assay_bound_curve(c, &curve);
}

static assay_status_t swiglu_bound(assay_bound_t* c) {
  if (!assay_bound_inputs_exact(c))
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "it has no bound after rounded inputs");
  return assay_bound_monotone(
      c, assay_factor_add(assay_bound_function(c->rounding), assay_bound_ops(c->rounding, 3)));
}

// ---- in twice the precision ---------------------------------------------------------------------

#define TIMES assay_dd_times
#define PLUS assay_dd_plus

static assay_dd_t dd_relu(assay_dd_t x) { return x.high < 0 ? assay_dd(0) : x; }
static assay_dd_t dd_leaky(assay_dd_t x, assay_dd_t alpha) {
  return x.high < 0 ? TIMES(alpha, x) : x;
}
static assay_dd_t dd_thresholded(assay_dd_t x, assay_dd_t alpha) {
  return assay_dd_less(alpha, x) ? x : assay_dd(0);
}
static assay_dd_t dd_elu(assay_dd_t x, assay_dd_t alpha) {
  return x.high < 0 ? TIMES(alpha, assay_dd_expm1(x)) : x;
}
static assay_dd_t dd_celu(assay_dd_t x, assay_dd_t alpha) {
  return x.high < 0 ? TIMES(alpha, assay_dd_expm1(assay_dd_over(x, alpha))) : x;
}
static assay_dd_t dd_selu(assay_dd_t x, assay_dd_t alpha, assay_dd_t gamma) {
  return TIMES(gamma, x.high > 0 ? x : TIMES(alpha, assay_dd_expm1(x)));
}
static assay_dd_t dd_hard_sigmoid(assay_dd_t x, assay_dd_t alpha, assay_dd_t beta) {
  const assay_dd_t y = PLUS(TIMES(alpha, x), beta);
  return assay_dd_min(assay_dd_max(y, assay_dd(0)), assay_dd(1));
}
static assay_dd_t dd_hard_swish(assay_dd_t x) {
  if (x.high <= -3) return assay_dd(-0.0);
  return x.high >= 3 ? x : TIMES(x, dd_hard_sigmoid(x, assay_dd(0x1.555556p-3), assay_dd(0.5)));
}
static assay_dd_t dd_softplus(assay_dd_t x) {
  const assay_dd_t rest = assay_dd_log1p(assay_dd_exp(assay_dd_negated(assay_dd_magnitude(x))));
  return x.high > 0 ? PLUS(x, rest) : rest;
}
static assay_dd_t dd_softsign(assay_dd_t x) {
  if (isinf(x.high)) return assay_dd(copysign(1, x.high));
  return assay_dd_over(x, PLUS(assay_dd(1), assay_dd_magnitude(x)));
}
static assay_dd_t dd_gelu(assay_dd_t x) {
  static const assay_dd_t inv_sqrt2 = {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55};
  const assay_dd_t tail = assay_dd_erfc(assay_dd_negated(TIMES(x, inv_sqrt2)));
  return TIMES(assay_dd_scaled(x, -1), tail);
}
// See assay_gelu_tanh.
static assay_dd_t dd_gelu_tanh(assay_dd_t x) {
  static const assay_dd_t a = {0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54};
  static const assay_dd_t b = {0x1.6e4e26d4801f7p-5, 0x1.441355475a31ap-59};
  const assay_dd_t factor = PLUS(assay_dd(1), TIMES(b, TIMES(x, x)));
  return TIMES(x, assay_dd_sigmoid(TIMES(TIMES(a, factor), x)));
}
static assay_dd_t dd_mish(assay_dd_t x) { return TIMES(x, assay_dd_tanh(dd_softplus(x))); }
static assay_dd_t dd_swish(assay_dd_t x, assay_dd_t alpha) {
  return TIMES(x, assay_dd_sigmoid(TIMES(alpha, x)));
}
static assay_dd_t dd_shrink(assay_dd_t x, assay_dd_t lambd, assay_dd_t bias) {
  if (assay_dd_less(x, assay_dd_negated(lambd))) return PLUS(x, bias);
  return assay_dd_less(lambd, x) ? assay_dd_minus(x, bias) : assay_dd(0);
}

static void map1(assay_dd_eval_t* c, assay_dd_fn1_t* f) {
  assay_dd_put(c, 0, assay_dd_map1(c, f, assay_dd_in(c, 0)));
}
static void map2(assay_dd_eval_t* c, assay_dd_fn2_t* f, const assay_pair_t* a) {
  assay_dd_put(c, 0, assay_dd_map2(c, f, assay_dd_in(c, 0), a));
}
static void map3(assay_dd_eval_t* c, assay_dd_fn3_t* f, const assay_pair_t* a,
                 const assay_pair_t* b) {
  assay_dd_put(c, 0, assay_dd_map3(c, f, assay_dd_in(c, 0), a, b));
}

static void relu_dd(assay_dd_eval_t* c) { map1(c, dd_relu); }
static void hard_swish_dd(assay_dd_eval_t* c) { map1(c, dd_hard_swish); }
static void sigmoid_dd(assay_dd_eval_t* c) { map1(c, assay_dd_sigmoid); }
static void softplus_dd(assay_dd_eval_t* c) { map1(c, dd_softplus); }
static void softsign_dd(assay_dd_eval_t* c) { map1(c, dd_softsign); }
static void mish_dd(assay_dd_eval_t* c) { map1(c, dd_mish); }
static void gelu_dd(assay_dd_eval_t* c) {
  map1(c, assay_attr_is(c->node, "approximate", "tanh") ? dd_gelu_tanh : dd_gelu);
}
static void leaky_relu_dd(assay_dd_eval_t* c) {
  map2(c, dd_leaky, assay_dd_attr(c, "alpha", 0.01));
}
static void thresholded_relu_dd(assay_dd_eval_t* c) {
  map2(c, dd_thresholded, assay_dd_attr(c, "alpha", 1));
}
static void elu_dd(assay_dd_eval_t* c) { map2(c, dd_elu, assay_dd_attr(c, "alpha", 1)); }
static void celu_dd(assay_dd_eval_t* c) { map2(c, dd_celu, assay_dd_attr(c, "alpha", 1)); }
static void swish_dd(assay_dd_eval_t* c) { map2(c, dd_swish, assay_dd_attr(c, "alpha", 1)); }
static void selu_dd(assay_dd_eval_t* c) {
  map3(c, dd_selu, assay_dd_attr(c, "alpha", 1.67326319217681884765625),
       assay_dd_attr(c, "gamma", 1.05070102214813232421875));
}
static void hard_sigmoid_dd(assay_dd_eval_t* c) {
  map3(c, dd_hard_sigmoid, assay_dd_attr(c, "alpha", 0.2), assay_dd_attr(c, "beta", 0.5));
}
static void shrink_dd(assay_dd_eval_t* c) {
  map3(c, dd_shrink, assay_dd_attr(c, "lambd", 0.5), assay_dd_attr(c, "bias", 0));
}
static void swiglu_dd(assay_dd_eval_t* c) {
  const assay_pair_t* gate =
      assay_dd_map2(c, dd_swish, assay_dd_in(c, 0), assay_dd_attr(c, "alpha", 1));
  assay_dd_put(c, 0, assay_dd_mul(c, gate, assay_dd_in(c, 1)));
}

// One row an operator: later versions widen types only (and -1 had an attribute for memory reuse;
// Selu-1's other defaults come from its schema).
#define ROW(NAME, SINCE, OF, BOUND)                                            \
  .domain = "", .name = NAME, .since = SINCE, .flags = ASSAY_OP_POINTWISE,     \
  .infer = assay_infer_same, .eval = OF##_eval, .bound = BOUND, .dd = OF##_dd, \
  .cost = assay_pointwise_cost

const assay_op_t assay_ops_activation[] = {
    {ROW("Relu", 1, relu, assay_bound_exact)},
    {ROW("LeakyRelu", 1, leaky_relu, linear_bound)},
    {ROW("ThresholdedRelu", 1, thresholded_relu, assay_bound_exact)},
    {ROW("Elu", 1, elu, elu_bound)},
    {ROW("Celu", 12, celu, celu_bound)},
    {ROW("Selu", 1, selu, selu_bound)},
    {ROW("Sigmoid", 1, sigmoid, sigmoid_bound)},
    {ROW("HardSigmoid", 1, hard_sigmoid, hard_sigmoid_bound)},
    {ROW("HardSwish", 14, hard_swish, hard_swish_bound)},
    {ROW("Softplus", 1, softplus, softplus_bound)},
    {ROW("Softsign", 1, softsign, softsign_bound)},
    {ROW("Gelu", 20, gelu, gelu_bound)},
    {ROW("Mish", 18, mish, mish_bound)},
    {ROW("Swish", 24, swish, swish_bound)},
    {ROW("Shrink", 9, shrink, linear_bound)},
    {.domain = "",
     .name = "SwiGLU",
     .since = 28,
     .flags = ASSAY_OP_POINTWISE,
     .infer = swiglu_infer,
     .eval = swiglu_eval,
     .bound = swiglu_bound,
     .dd = swiglu_dd,
     .cost = assay_pointwise_cost},
    {0},
};
