// Numbers of twice the precision of double: the unevaluated sum high + low of two doubles, of which
// high is the number rounded. u is 2^-53. A number that is infinite, or has no value, has the low
// part 0.
//
// Sources, with the relative errors that they prove:
//   sums of many terms  T. Ogita, S. M. Rump and S. Oishi, Accurate sum and dot product, SIAM J.
//                       Sci. Comput. 26 (2005), algorithms 3.1 (TwoSum, Knuth), 3.5
//                       (TwoProductFMA), 4.3 and 5.3 (Sum2, Dot2): rounded once, the error is
//                       u |result| + (n u)^2 sum|terms|
//   + - * /             M. Joldes, J.-M. Muller and V. Popescu, Tight and rigorous error bounds for
//                       basic building blocks of double-word arithmetic, ACM Trans. Math. Softw. 44
//                       (2017), algorithms 6 (3 u^2), 12 (5 u^2) and 17 (15 u^2)
//   root                V. Lefevre, N. Louvet, J.-M. Muller, J. Picot and L. Rideau, Accurate
//                       calculation of Euclidean norms using double-word arithmetic, ACM Trans.
//                       Math. Softw. 49 (2023), algorithm 8 (25/8 u^2)
#ifndef ASSAY_BASE_DOUBLE_DOUBLE_H_
#define ASSAY_BASE_DOUBLE_DOUBLE_H_

#include <math.h>

typedef struct assay_dd {
  double high, low;
} assay_dd_t;

static inline assay_dd_t assay_dd(double x) { return (assay_dd_t){x, 0}; }

// ---- sums of many terms ------------------------------------------------------------------------

// high += x, low += what that lost.
static inline void assay_dd_add(double* high, double* low, double x) {
  const double s = *high + x, t = s - *high;
  *low += (*high - (s - t)) + (x - t);
  *high = s;
}

// high + low += a * b.
static inline void assay_dd_fma(double* high, double* low, double a, double b) {
  const double p = a * b, rest = __builtin_fma(a, b, -p);
  assay_dd_add(high, low, p);
  *low += rest;
}

// What has been summed up as a number (Fast2Sum, Dekker).
static inline assay_dd_t assay_dd_end(double high, double low) {
  const double s = high + low;
  if (!isfinite(high) || !isfinite(s)) return assay_dd(isfinite(high) ? s : high);
  return (assay_dd_t){s, low - (s - high)};
}

// ---- arithmetic --------------------------------------------------------------------------------

static inline assay_dd_t assay_dd_plus(assay_dd_t x, assay_dd_t y) {
  double s = x.high, s_low = 0, t = x.low, t_low = 0;
  assay_dd_add(&s, &s_low, y.high);
  if (!isfinite(s)) return assay_dd(s);
  assay_dd_add(&t, &t_low, y.low);
  const assay_dd_t v = assay_dd_end(s, s_low + t);
  return assay_dd_end(v.high, t_low + v.low);
}

static inline assay_dd_t assay_dd_negated(assay_dd_t x) { return (assay_dd_t){-x.high, -x.low}; }

static inline assay_dd_t assay_dd_minus(assay_dd_t x, assay_dd_t y) {
  return assay_dd_plus(x, assay_dd_negated(y));
}

static inline assay_dd_t assay_dd_times(assay_dd_t x, assay_dd_t y) {
  const double p = x.high * y.high;
  if (!isfinite(p)) return assay_dd(p);
  const double rest = __builtin_fma(x.high, y.high, -p);
  const double crossed = __builtin_fma(x.high, y.low, x.low * y.low);
  return assay_dd_end(p, rest + __builtin_fma(x.low, y.high, crossed));
}

static inline assay_dd_t assay_dd_over(assay_dd_t x, assay_dd_t y) {
  const double q = x.high / y.high;
  if (!isfinite(q) || q == 0 || !isfinite(y.high)) return assay_dd(q);
  const assay_dd_t r = assay_dd_times(y, assay_dd(q));
  return assay_dd_end(q, ((x.high - r.high) + (x.low - r.low)) / y.high);
}

static inline assay_dd_t assay_dd_root(assay_dd_t x) {
  const double s = sqrt(x.high);
  if (!isfinite(s) || s == 0) return assay_dd(s);
  return assay_dd_end(s, (__builtin_fma(-s, s, x.high) + x.low) / (2 * s));
}

static inline assay_dd_t assay_dd_magnitude(assay_dd_t x) {
  return x.high < 0 ? assay_dd_negated(x) : x;
}

// Times a power of 2.
static inline assay_dd_t assay_dd_scaled(assay_dd_t x, int exponent) {
  return (assay_dd_t){ldexp(x.high, exponent), ldexp(x.low, exponent)};
}

// False where one of them is NaN.
static inline int assay_dd_less(assay_dd_t x, assay_dd_t y) {
  return x.high < y.high || (x.high == y.high && x.low < y.low);
}

// ---- functions
// ----------------------------------------------------------------------------------- Within 2^-90
// of their values, relatively, but for what twice_math.c says of each; where the value is 0,
// infinite or none, the C library's own.

assay_dd_t assay_dd_exp(assay_dd_t x);
assay_dd_t assay_dd_expm1(assay_dd_t x);
assay_dd_t assay_dd_log(assay_dd_t x);
assay_dd_t assay_dd_log1p(assay_dd_t x);
assay_dd_t assay_dd_pow(assay_dd_t x, assay_dd_t y);
assay_dd_t assay_dd_sin(assay_dd_t x);
assay_dd_t assay_dd_cos(assay_dd_t x);
assay_dd_t assay_dd_tan(assay_dd_t x);
assay_dd_t assay_dd_asin(assay_dd_t x);
assay_dd_t assay_dd_acos(assay_dd_t x);
assay_dd_t assay_dd_atan(assay_dd_t x);
assay_dd_t assay_dd_sinh(assay_dd_t x);
assay_dd_t assay_dd_cosh(assay_dd_t x);
assay_dd_t assay_dd_tanh(assay_dd_t x);
assay_dd_t assay_dd_asinh(assay_dd_t x);
assay_dd_t assay_dd_acosh(assay_dd_t x);
assay_dd_t assay_dd_atanh(assay_dd_t x);
assay_dd_t assay_dd_erf(assay_dd_t x);
assay_dd_t assay_dd_erfc(assay_dd_t x);
assay_dd_t assay_dd_sigmoid(assay_dd_t x);  // 1 / (1 + e^-x)
// The nearest whole number: of ties the even one; towards -infinity.
assay_dd_t assay_dd_round(assay_dd_t x);
assay_dd_t assay_dd_floor(assay_dd_t x);

#endif  // ASSAY_BASE_DOUBLE_DOUBLE_H_
