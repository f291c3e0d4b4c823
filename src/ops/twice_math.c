// Functions of numbers of twice the precision of double: series behind a reduction of the argument,
// and what follows from them. Formulas are exact identities; numbers of terms are chosen so that
// what is left out is below 2^-106.
//
// Source of the reductions of exp and log: Y. Hida, X. S. Li and D. H. Bailey, Algorithms for
// quad-double precision floating point arithmetic, ARITH-15 (2001), section 4; of sin and cos: W.
// J. Cody and W. Waite, Software manual for the elementary functions (1980).
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "ops/twice.h"

static const assay_twice_t one = {1, 0};
static const assay_twice_t ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const assay_twice_t half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static const assay_twice_t two_over_root_pi = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56};

#define PLUS assay_twice_plus
#define MINUS assay_twice_minus
#define TIMES assay_twice_times
#define OVER assay_twice_over

// ---- exponentials ------------------------------------------------------------------------------

// e^x - 1 for |x| < 0.36: the series of x / 512, then nine times e^2x - 1 = s (s + 2).
static assay_twice_t small_expm1(assay_twice_t x) {
  enum { HALVINGS = 9, TERMS = 11 };
  const assay_twice_t r = assay_twice_scaled(x, -HALVINGS);
  assay_twice_t s = one;
  for (int n = TERMS; n > 1; n--) s = PLUS(one, OVER(TIMES(s, r), assay_twice(n)));
  s = TIMES(s, r);
  for (int i = 0; i < HALVINGS; i++) s = TIMES(s, PLUS(s, assay_twice(2)));
  return s;
}

// e^x = 2^k e^(x - k ln 2): the error of k ln 2, below 2^-97, is the result's relative one.
assay_twice_t assay_twice_exp(assay_twice_t x) {
  if (!(x.high > -746 && x.high < 710)) return assay_twice(exp(x.high));
  const double k = nearbyint(x.high / ln2.high);
  const assay_twice_t r = MINUS(x, TIMES(ln2, assay_twice(k)));
  const assay_twice_t y = assay_twice_scaled(PLUS(one, small_expm1(r)), (int)k);
  return assay_twice_end(y.high, y.low);
}

assay_twice_t assay_twice_expm1(assay_twice_t x) {
  if (x.high == 0 || !isfinite(x.high)) return assay_twice(expm1(x.high));
  return fabs(x.high) < 0.35 ? small_expm1(x) : MINUS(assay_twice_exp(x), one);
}

// ln(1 + x) = 2 artanh(x / (2 + x)) for |x| < 1/64.
static assay_twice_t small_log1p(assay_twice_t x) {
  enum { TERMS = 8 };
  const assay_twice_t z = OVER(x, PLUS(assay_twice(2), x)), square = TIMES(z, z);
  assay_twice_t s = {0, 0};
  for (int n = TERMS; n >= 0; n--) s = PLUS(TIMES(s, square), OVER(one, assay_twice(2 * n + 1)));
  return assay_twice_scaled(TIMES(s, z), 1);
}

// ln x = k ln 2 + y + ln(1 + d), where x = 2^k m, y is near ln m and d = m e^-y - 1 is below 2^-50.
assay_twice_t assay_twice_log(assay_twice_t x) {
  if (!(x.high > 0 && x.high < (double)INFINITY)) return assay_twice(log(x.high));
  const assay_twice_t from_one = MINUS(x, one);
  if (fabs(from_one.high) < 0x1p-6) return small_log1p(from_one);
  int k;
  if (frexp(x.high, &k) < 0.7) k--;
  const assay_twice_t m = assay_twice_scaled(x, -k);
  const double y = log(m.high);
  const assay_twice_t d = MINUS(TIMES(m, PLUS(one, small_expm1(assay_twice(-y)))), one);
  const assay_twice_t rest = MINUS(d, assay_twice_scaled(TIMES(d, d), -1));
  return PLUS(TIMES(ln2, assay_twice(k)), PLUS(assay_twice(y), rest));
}

assay_twice_t assay_twice_log1p(assay_twice_t x) {
  if (x.high == 0) return x;
  return fabs(x.high) < 0x1p-6 ? small_log1p(x) : assay_twice_log(PLUS(one, x));
}

// By squaring, for whole n > 0.
static assay_twice_t whole_power(assay_twice_t x, int n) {
  assay_twice_t y = one;
  for (;; x = TIMES(x, x)) {
    if (n & 1) y = TIMES(y, x);
    if ((n >>= 1) == 0) return y;
  }
}

// e^(y ln |x|), whose relative error is that of the logarithm times |y ln x|, at most 745.
assay_twice_t assay_twice_pow(assay_twice_t x, assay_twice_t y) {
  const double rough = pow(x.high, y.high);
  if (!isfinite(rough) || rough == 0 || !isfinite(x.high) || !isfinite(y.high))
    return assay_twice(rough);
  const bool whole = y.low == 0 && y.high == floor(y.high);
  if (whole && fabs(y.high) <= 64) {
    if (y.high == 0) return one;
    const assay_twice_t p = whole_power(x, (int)fabs(y.high));
    if (y.high > 0) return p;
    if (isfinite(p.high) && fabs(p.high) > 0x1p-900) return OVER(one, p);
  }
  const assay_twice_t p = assay_twice_exp(TIMES(y, assay_twice_log(assay_twice_magnitude(x))));
  return rough < 0 ? assay_twice_negated(p) : p;
}

// ---- circular functions ------------------------------------------------------------------------

// x - k pi/2, at most pi/4, and k modulo 4. The first difference is exact, and pi/2 has 160 bits.
static assay_twice_t reduced(assay_twice_t x, int* out_quadrant) {
  static const double parts[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                 -0x1.f1976b7ed8fbcp-110};
  const double k = nearbyint(x.high / half_pi.high);
  assay_twice_t r = {x.high, 0};
  for (int i = 0; i < 3; i++) {
    const double p = k * parts[i];
    r = MINUS(r, (assay_twice_t){p, __builtin_fma(k, parts[i], -p)});
  }
  *out_quadrant = (int)((int64_t)k & 3);
  return PLUS(r, assay_twice(x.low));
}

// The sine (first 1) or cosine (first 0) of |x| < 0.8: their series.
static assay_twice_t series(assay_twice_t x, int first) {
  const assay_twice_t square = TIMES(x, x);
  assay_twice_t s = one;
  for (int n = 26 + first; n > first; n -= 2)
    s = MINUS(one, OVER(TIMES(s, square), assay_twice((double)n * (n - 1))));
  return first ? TIMES(s, x) : s;
}

// sin(x + turns pi/2). Beyond 2^26 the C library's value with the low part's first derivative.
static assay_twice_t circular(assay_twice_t x, int turns) {
  if (!(fabs(x.high) < 0x1p26)) {
    const double s = sin(x.high), c = cos(x.high);
    return assay_twice_end(turns ? c : s, x.low * (turns ? -s : c));
  }
  if (x.high == 0) return turns ? one : x;
  int quadrant;
  const assay_twice_t r = reduced(x, &quadrant);
  quadrant = (quadrant + turns) & 3;
  const assay_twice_t y = series(r, quadrant % 2 == 0);
  return quadrant >= 2 ? assay_twice_negated(y) : y;
}

assay_twice_t assay_twice_sin(assay_twice_t x) { return circular(x, 0); }
assay_twice_t assay_twice_cos(assay_twice_t x) { return circular(x, 1); }
assay_twice_t assay_twice_tan(assay_twice_t x) {
  return OVER(assay_twice_sin(x), assay_twice_cos(x));
}

// y + d, where y is near arctan x and tan d = (x cos y - sin y) / (cos y + x sin y).
assay_twice_t assay_twice_atan(assay_twice_t x) {
  if (isinf(x.high)) return x.high > 0 ? half_pi : assay_twice_negated(half_pi);
  const double y = atan(x.high);
  if (y == 0 || y != y) return assay_twice(y);
  const assay_twice_t s = assay_twice_sin(assay_twice(y)), c = assay_twice_cos(assay_twice(y));
  return PLUS(assay_twice(y), OVER(MINUS(TIMES(x, c), s), PLUS(c, TIMES(x, s))));
}

assay_twice_t assay_twice_asin(assay_twice_t x) {
  const assay_twice_t below = MINUS(one, x), above = PLUS(one, x);
  return assay_twice_atan(OVER(x, assay_twice_root(TIMES(below, above))));
}

assay_twice_t assay_twice_acos(assay_twice_t x) {
  const assay_twice_t below = MINUS(one, x), above = PLUS(one, x);
  return assay_twice_scaled(assay_twice_atan(assay_twice_root(OVER(below, above))), 1);
}

// ---- hyperbolic functions ----------------------------------------------------------------------

static assay_twice_t signed_as(assay_twice_t y, assay_twice_t x) {
  return x.high < 0 ? assay_twice_negated(y) : y;
}

// e^a / 2 for large a, which does not overflow before the result does.
static assay_twice_t half_exp(assay_twice_t a) {
  const assay_twice_t root = assay_twice_exp(assay_twice_scaled(a, -1));
  return TIMES(root, assay_twice_scaled(root, -1));
}

// With e = e^|x| - 1: (e + e / (e + 1)) / 2. From 40 on e^-x is below 2^-115 of it.
assay_twice_t assay_twice_sinh(assay_twice_t x) {
  const assay_twice_t a = assay_twice_magnitude(x);
  if (x.high == 0 || !isfinite(x.high)) return x;
  if (a.high > 40) return signed_as(half_exp(a), x);
  const assay_twice_t e = assay_twice_expm1(a);
  return signed_as(assay_twice_scaled(PLUS(e, OVER(e, PLUS(e, one))), -1), x);
}

assay_twice_t assay_twice_cosh(assay_twice_t x) {
  const assay_twice_t a = assay_twice_magnitude(x);
  if (!isfinite(x.high)) return assay_twice(fabs(x.high));
  if (a.high > 40) return half_exp(a);
  const assay_twice_t e = assay_twice_exp(a);
  return assay_twice_scaled(PLUS(e, OVER(one, e)), -1);
}

// With e = e^(-2|x|) - 1: -e / (2 + e).
assay_twice_t assay_twice_tanh(assay_twice_t x) {
  const assay_twice_t a = assay_twice_magnitude(x);
  if (x.high == 0 || x.high != x.high) return x;
  if (a.high > 60) return signed_as(one, x);
  const assay_twice_t e = assay_twice_expm1(assay_twice_scaled(assay_twice_negated(a), 1));
  return signed_as(OVER(assay_twice_negated(e), PLUS(assay_twice(2), e)), x);
}

// ln(a + a^2 / (1 + sqrt(1 + a^2)) + 1); where a^2 drowns 1, ln 2a.
assay_twice_t assay_twice_asinh(assay_twice_t x) {
  const assay_twice_t a = assay_twice_magnitude(x), square = TIMES(a, a);
  if (x.high == 0 || !isfinite(x.high)) return x;
  if (a.high > 0x1p60) return signed_as(PLUS(assay_twice_log(a), ln2), x);
  const assay_twice_t root = assay_twice_root(PLUS(one, square));
  return signed_as(assay_twice_log1p(PLUS(a, OVER(square, PLUS(one, root)))), x);
}

// With t = x - 1: ln(1 + t + sqrt(t (t + 2))).
assay_twice_t assay_twice_acosh(assay_twice_t x) {
  if (x.high > 0x1p60) return isfinite(x.high) ? PLUS(assay_twice_log(x), ln2) : x;
  const assay_twice_t t = MINUS(x, one);
  return assay_twice_log1p(PLUS(t, assay_twice_root(TIMES(t, PLUS(t, assay_twice(2))))));
}

assay_twice_t assay_twice_atanh(assay_twice_t x) {
  const assay_twice_t a = assay_twice_magnitude(x), twofold = assay_twice_scaled(a, 1);
  if (x.high == 0) return x;
  return signed_as(assay_twice_scaled(assay_twice_log1p(OVER(twofold, MINUS(one, a))), -1), x);
}

assay_twice_t assay_twice_sigmoid(assay_twice_t x) {
  const assay_twice_t e = assay_twice_exp(assay_twice_negated(assay_twice_magnitude(x)));
  return OVER(x.high < 0 ? e : one, PLUS(one, e));
}

// ---- error function ----------------------------------------------------------------------------

// 2/sqrt(pi) e^(-x^2) sum over n of 2^n x^(2n+1) / (1 3 5 ... (2n+1)): all terms are positive.
// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6.
static assay_twice_t erf_series(assay_twice_t x) {
  const assay_twice_t square = TIMES(x, x), twofold = assay_twice_scaled(square, 1);
  assay_twice_t term = x, sum = x;
  for (int n = 1; term.high > sum.high * 0x1p-110; n++) {
    term = OVER(TIMES(term, twofold), assay_twice(2 * n + 1));
    sum = PLUS(sum, term);
  }
  const assay_twice_t e = assay_twice_exp(assay_twice_negated(square));
  return TIMES(TIMES(two_over_root_pi, e), sum);
}

// e^(-x^2) / sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), from the end: n levels leave
// e^(-2x sqrt(2n)) for small x, here below 2^-110; for large x some 40 do. The exponential's error
// is x^2 times that of x^2. Source: Abramowitz and Stegun, 7.1.14.
static assay_twice_t erfc_fraction(assay_twice_t x) {
  const int levels = (int)(800 / (x.high * x.high)) + 40;
  assay_twice_t f = x;
  for (int n = levels; n > 0; n--) f = PLUS(x, OVER(assay_twice(0.5 * n), f));
  // Half the exponent, and its square: e^(-x^2) may be subnormal where the result is not.
  const assay_twice_t e = assay_twice_exp(assay_twice_scaled(assay_twice_negated(TIMES(x, x)), -1));
  const assay_twice_t factor = OVER(assay_twice_scaled(two_over_root_pi, -1), f);
  return TIMES(TIMES(e, factor), e);
}

assay_twice_t assay_twice_erf(assay_twice_t x) {
  const assay_twice_t a = assay_twice_magnitude(x);
  if (x.high == 0 || x.high != x.high) return x;
  if (a.high > 9) return signed_as(one, x);
  return signed_as(a.high < 2 ? erf_series(a) : MINUS(one, erfc_fraction(a)), x);
}

assay_twice_t assay_twice_erfc(assay_twice_t x) {
  if (x.high != x.high) return x;
  if (x.high > 28) return assay_twice(0);
  return x.high < 1 ? MINUS(one, assay_twice_erf(x)) : erfc_fraction(x);
}

// ---- whole numbers -----------------------------------------------------------------------------

assay_twice_t assay_twice_floor(assay_twice_t x) {
  const double whole = floor(x.high);
  return whole == x.high ? assay_twice_end(whole, floor(x.low)) : assay_twice(whole);
}

// Where the high part is whole, the low part decides; where it lies half-way, the low part's sign.
assay_twice_t assay_twice_round(assay_twice_t x) {
  const double whole = nearbyint(x.high);
  if (whole == x.high) return assay_twice_end(whole, nearbyint(x.low));
  const bool tie = fabs(x.high - trunc(x.high)) == 0.5;
  if (!tie || x.low == 0) return assay_twice(whole);
  return assay_twice(x.low > 0 ? ceil(x.high) : floor(x.high));
}
