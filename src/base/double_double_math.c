// Functions of numbers of twice the precision of double: series after a reduction of the argument,
// and what follows from them. Formulas are exact identities; numbers of terms are chosen so that
// what is left out is below 2^-106.
//
// Source of the reductions of exp and log: Y. Hida, X. S. Li and D. H. Bailey, Algorithms for
// quad-double precision floating point arithmetic, ARITH-15 (2001), section 4; of sin and cos: W.
// J. Cody and W. Waite, Software manual for the elementary functions (1980).
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/double_double.h"
#include "base/functions.h"
#include "base/functions_quick.h"

static const assay_dd_t one = {1, 0};
static const assay_dd_t ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const assay_dd_t half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static const assay_dd_t two_over_root_pi = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56};

#define PLUS assay_dd_plus
#define MINUS assay_dd_minus
#define TIMES assay_dd_times
#define OVER assay_dd_over

// ---- exponentials ------------------------------------------------------------------------------

// e^x - 1 for |x| < 0.36: the series of x / 512, then nine times e^2x - 1 = s (s + 2).
static assay_dd_t small_expm1(assay_dd_t x) {
  enum { HALVINGS = 9, TERMS = 11 };
  const assay_dd_t r = assay_dd_scaled(x, -HALVINGS);
  assay_dd_t s = one;
  for (int n = TERMS; n > 1; n--) s = PLUS(one, OVER(TIMES(s, r), assay_dd(n)));
  s = TIMES(s, r);
  for (int i = 0; i < HALVINGS; i++) s = TIMES(s, PLUS(s, assay_dd(2)));
  return s;
}

// e^x = 2^k e^(x - k ln 2): the error of k ln 2, below 2^-97, is the result's relative one.
assay_dd_t assay_dd_exp_parts(assay_dd_t x, int* out_exponent) {
  const double k = nearbyint(x.high / ln2.high);
  const assay_dd_t r = MINUS(x, TIMES(ln2, assay_dd(k)));
  *out_exponent = (int)k;
  return PLUS(one, small_expm1(r));
}

assay_dd_t assay_dd_exp(assay_dd_t x) {
  if (!(x.high > -746 && x.high < 710)) return assay_dd(assay_exp(x.high));
  int k;
  const assay_dd_t e = assay_dd_exp_parts(x, &k), y = assay_dd_scaled(e, k);
  return assay_dd_end(y.high, y.low);
}

assay_dd_t assay_dd_expm1(assay_dd_t x) {
  if (x.high == 0 || !isfinite(x.high)) return assay_dd(assay_expm1(x.high));
  return fabs(x.high) < 0.35 ? small_expm1(x) : MINUS(assay_dd_exp(x), one);
}

// ln(1 + x) = 2 artanh(x / (2 + x)) for |x| < 1/64.
static assay_dd_t small_log1p(assay_dd_t x) {
  enum { TERMS = 8 };
  const assay_dd_t z = OVER(x, PLUS(assay_dd(2), x)), square = TIMES(z, z);
  assay_dd_t s = {0, 0};
  for (int n = TERMS; n >= 0; n--) s = PLUS(TIMES(s, square), OVER(one, assay_dd(2 * n + 1)));
  return assay_dd_scaled(TIMES(s, z), 1);
}

// ln x = k ln 2 + y + ln(1 + d), where x = 2^k m, y is near ln m and d = m e^-y - 1 is below 2^-50.
assay_dd_t assay_dd_log(assay_dd_t x) {
  if (!(x.high > 0 && x.high < (double)INFINITY)) return assay_dd(assay_log(x.high));
  const assay_dd_t from_one = MINUS(x, one);
  if (fabs(from_one.high) < 0x1p-6) return small_log1p(from_one);
  int k;
  if (frexp(x.high, &k) < 0.7) k--;
  const assay_dd_t m = assay_dd_scaled(x, -k);
  const bool below = m.high < 1;
  const double y = assay_quick_log(below ? 2 * m.high : m.high, 0, below ? -1 : 0).high;
  const assay_dd_t d = MINUS(TIMES(m, PLUS(one, small_expm1(assay_dd(-y)))), one);
  const assay_dd_t rest = MINUS(d, assay_dd_scaled(TIMES(d, d), -1));
  return PLUS(TIMES(ln2, assay_dd(k)), PLUS(assay_dd(y), rest));
}

assay_dd_t assay_dd_log1p(assay_dd_t x) {
  if (x.high == 0) return x;
  return fabs(x.high) < 0x1p-6 ? small_log1p(x) : assay_dd_log(PLUS(one, x));
}

// By squaring, for whole n > 0.
static assay_dd_t whole_power(assay_dd_t x, int n) {
  assay_dd_t y = one;
  for (;; x = TIMES(x, x)) {
    if (n & 1) y = TIMES(y, x);
    if ((n >>= 1) == 0) return y;
  }
}

// e^(y ln |x|), whose relative error is that of the logarithm times |y ln x|, at most 745.
assay_dd_t assay_dd_pow(assay_dd_t x, assay_dd_t y) {
  const double rough = assay_pow(x.high, y.high);
  if (!isfinite(rough) || rough == 0 || !isfinite(x.high) || !isfinite(y.high))
    return assay_dd(rough);
  const bool whole = y.low == 0 && y.high == floor(y.high);
  if (whole && fabs(y.high) <= 64) {
    if (y.high == 0) return one;
    const assay_dd_t p = whole_power(x, (int)fabs(y.high));
    if (y.high > 0) return p;
    if (isfinite(p.high) && fabs(p.high) > 0x1p-900) return OVER(one, p);
  }
  const assay_dd_t p = assay_dd_exp(TIMES(y, assay_dd_log(assay_dd_magnitude(x))));
  return rough < 0 ? assay_dd_negated(p) : p;
}

// x^y for x > 0. Exact powers, and such that lie in the middle between two doubles, come out within
// 2^-80 of where they are, and are put there.
assay_dd_t assay_dd_pow_parts(double x, double y, int* out_exponent) {
  int k;
  double m = frexp(x, &k);
  if (m < 0.7) m *= 2, k--;
  assay_dd_t p;
  if (y == floor(y) && fabs(y) <= 64) {
    p = whole_power(assay_dd(m), (int)fabs(y));
    if (y < 0) p = OVER(one, p);
    *out_exponent = k * (int)y;
  } else {
    p = assay_dd_exp_parts(TIMES(assay_dd(y), assay_dd_log(assay_dd(x))), out_exponent);
  }
  const double quarter = ldexp(1, ilogb(p.high) - 54);
  const double middle = quarter * nearbyint(p.low / quarter);
  if (fabs(p.low - middle) < p.high * 0x1p-80) p.low = middle;
  return p;
}

// ---- circular functions ------------------------------------------------------------------------

// The sine (first 1) or cosine (first 0) of |x| < 0.8: their series.
static assay_dd_t series(assay_dd_t x, int first) {
  const assay_dd_t square = TIMES(x, x);
  assay_dd_t s = one;
  for (int n = 26 + first; n > first; n -= 2)
    s = MINUS(one, OVER(TIMES(s, square), assay_dd((double)n * (n - 1))));
  return first ? TIMES(s, x) : s;
}

// sin(x + turns pi/2).
static assay_dd_t circular(assay_dd_t x, int turns) {
  if (!isfinite(x.high)) return assay_dd((double)NAN);
  if (x.high == 0) return turns ? one : x;
  int quadrant;
  const assay_dd_t r = assay_dd_reduced(x, &quadrant);
  quadrant = (quadrant + turns) & 3;
  const assay_dd_t y = series(r, quadrant % 2 == 0);
  return quadrant >= 2 ? assay_dd_negated(y) : y;
}

assay_dd_t assay_dd_sin(assay_dd_t x) { return circular(x, 0); }
assay_dd_t assay_dd_cos(assay_dd_t x) { return circular(x, 1); }
assay_dd_t assay_dd_tan(assay_dd_t x) { return OVER(assay_dd_sin(x), assay_dd_cos(x)); }

// y + d, where y is near arctan x and tan d = (x cos y - sin y) / (cos y + x sin y).
assay_dd_t assay_dd_atan(assay_dd_t x) {
  if (isinf(x.high)) return x.high > 0 ? half_pi : assay_dd_negated(half_pi);
  if (x.high == 0 || x.high != x.high) return assay_dd(x.high);
  const double rough = assay_quick_arctan(assay_dd_magnitude(x)).high;
  const double y = x.high < 0 ? -rough : rough;
  const assay_dd_t s = assay_dd_sin(assay_dd(y)), c = assay_dd_cos(assay_dd(y));
  return PLUS(assay_dd(y), OVER(MINUS(TIMES(x, c), s), PLUS(c, TIMES(x, s))));
}

assay_dd_t assay_dd_asin(assay_dd_t x) {
  const assay_dd_t below = MINUS(one, x), above = PLUS(one, x);
  return assay_dd_atan(OVER(x, assay_dd_root(TIMES(below, above))));
}

assay_dd_t assay_dd_acos(assay_dd_t x) {
  const assay_dd_t below = MINUS(one, x), above = PLUS(one, x);
  return assay_dd_scaled(assay_dd_atan(assay_dd_root(OVER(below, above))), 1);
}

// ---- hyperbolic functions ----------------------------------------------------------------------

static assay_dd_t signed_as(assay_dd_t y, assay_dd_t x) {
  return x.high < 0 ? assay_dd_negated(y) : y;
}

// e^a / 2 for large a, which does not overflow before the result does.
static assay_dd_t half_exp(assay_dd_t a) {
  const assay_dd_t root = assay_dd_exp(assay_dd_scaled(a, -1));
  return TIMES(root, assay_dd_scaled(root, -1));
}

// With e = e^|x| - 1: (e + e / (e + 1)) / 2. From 40 on e^-x is below 2^-115 of it.
assay_dd_t assay_dd_sinh(assay_dd_t x) {
  const assay_dd_t a = assay_dd_magnitude(x);
  if (x.high == 0 || !isfinite(x.high)) return x;
  if (a.high > 40) return signed_as(half_exp(a), x);
  const assay_dd_t e = assay_dd_expm1(a);
  return signed_as(assay_dd_scaled(PLUS(e, OVER(e, PLUS(e, one))), -1), x);
}

assay_dd_t assay_dd_cosh(assay_dd_t x) {
  const assay_dd_t a = assay_dd_magnitude(x);
  if (!isfinite(x.high)) return assay_dd(fabs(x.high));
  if (a.high > 40) return half_exp(a);
  const assay_dd_t e = assay_dd_exp(a);
  return assay_dd_scaled(PLUS(e, OVER(one, e)), -1);
}

// With e = e^(-2|x|) - 1: -e / (2 + e).
assay_dd_t assay_dd_tanh(assay_dd_t x) {
  const assay_dd_t a = assay_dd_magnitude(x);
  if (x.high == 0 || x.high != x.high) return x;
  if (a.high > 60) return signed_as(one, x);
  const assay_dd_t e = assay_dd_expm1(assay_dd_scaled(assay_dd_negated(a), 1));
  return signed_as(OVER(assay_dd_negated(e), PLUS(assay_dd(2), e)), x);
}

// ln(a + a^2 / (1 + sqrt(1 + a^2)) + 1); where a^2 drowns 1, ln 2a.
assay_dd_t assay_dd_asinh(assay_dd_t x) {
  const assay_dd_t a = assay_dd_magnitude(x), square = TIMES(a, a);
  if (x.high == 0 || !isfinite(x.high)) return x;
  if (a.high > 0x1p60) return signed_as(PLUS(assay_dd_log(a), ln2), x);
  const assay_dd_t root = assay_dd_root(PLUS(one, square));
  return signed_as(assay_dd_log1p(PLUS(a, OVER(square, PLUS(one, root)))), x);
}

// With t = x - 1: ln(1 + t + sqrt(t (t + 2))).
assay_dd_t assay_dd_acosh(assay_dd_t x) {
  if (x.high > 0x1p60) return isfinite(x.high) ? PLUS(assay_dd_log(x), ln2) : x;
  const assay_dd_t t = MINUS(x, one);
  return assay_dd_log1p(PLUS(t, assay_dd_root(TIMES(t, PLUS(t, assay_dd(2))))));
}

assay_dd_t assay_dd_atanh(assay_dd_t x) {
  const assay_dd_t a = assay_dd_magnitude(x), twofold = assay_dd_scaled(a, 1);
  if (x.high == 0) return x;
  return signed_as(assay_dd_scaled(assay_dd_log1p(OVER(twofold, MINUS(one, a))), -1), x);
}

assay_dd_t assay_dd_sigmoid(assay_dd_t x) {
  const assay_dd_t e = assay_dd_exp(assay_dd_negated(assay_dd_magnitude(x)));
  return OVER(x.high < 0 ? e : one, PLUS(one, e));
}

// ---- error function ----------------------------------------------------------------------------

// 2/sqrt(pi) e^(-x^2) sum over n of 2^n x^(2n+1) / (1 3 5 ... (2n+1)): all terms are positive.
// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6.
static assay_dd_t erf_series(assay_dd_t x) {
  const assay_dd_t square = TIMES(x, x), twofold = assay_dd_scaled(square, 1);
  assay_dd_t term = x, sum = x;
  for (int n = 1; term.high > sum.high * 0x1p-110; n++) {
    term = OVER(TIMES(term, twofold), assay_dd(2 * n + 1));
    sum = PLUS(sum, term);
  }
  const assay_dd_t e = assay_dd_exp(assay_dd_negated(square));
  return TIMES(TIMES(two_over_root_pi, e), sum);
}

// e^(-x^2) / sqrt(pi) / (x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), from the end: n levels leave
// e^(-2x sqrt(2n)) for small x, here below 2^-110; for large x some 40 do. The exponential's error
// is x^2 times that of x^2. Source: Abramowitz and Stegun, 7.1.14.
static assay_dd_t erfc_fraction(assay_dd_t x, int* out_exponent) {
  const int levels = (int)(800 / (x.high * x.high)) + 40;
  assay_dd_t f = x;
  for (int n = levels; n > 0; n--) f = PLUS(x, OVER(assay_dd(0.5 * n), f));
  const assay_dd_t factor = OVER(assay_dd_scaled(two_over_root_pi, -1), f);
  return TIMES(assay_dd_exp_parts(assay_dd_negated(TIMES(x, x)), out_exponent), factor);
}

// 1 less the series as long as that leaves 2^-84, which is faster there.
assay_dd_t assay_dd_erfc_parts(assay_dd_t x, int* out_exponent) {
  if (x.high >= 2) return erfc_fraction(x, out_exponent);
  *out_exponent = 0;
  return MINUS(one, assay_dd_erf(x));
}

assay_dd_t assay_dd_erf(assay_dd_t x) {
  const assay_dd_t a = assay_dd_magnitude(x);
  if (x.high == 0 || x.high != x.high) return x;
  if (a.high > 9) return signed_as(one, x);
  if (a.high < 2) return signed_as(erf_series(a), x);
  int exponent;
  const assay_dd_t rest = erfc_fraction(a, &exponent);
  return signed_as(MINUS(one, assay_dd_scaled(rest, exponent)), x);
}

assay_dd_t assay_dd_erfc(assay_dd_t x) {
  if (x.high != x.high) return x;
  if (x.high > 28) return assay_dd(0);
  if (x.high < 1) return MINUS(one, assay_dd_erf(x));
  int exponent;
  const assay_dd_t y = erfc_fraction(x, &exponent), scaled = assay_dd_scaled(y, exponent);
  return assay_dd_end(scaled.high, scaled.low);
}

// ---- rounding -----------------------------------------------------------------------------------

// Below the normal numbers the last place is 2^-1074 all along: what lies above it is cut off by a
// sum that has this last place, and the rest says which neighbour is the nearer.
double assay_dd_rounded(assay_dd_t x, int exponent) {
  x = assay_dd_end(x.high, x.low);
  if (x.high == 0 || !isfinite(x.high) || ilogb(x.high) + exponent >= -1022)
    return ldexp(x.high, exponent);
  if (ilogb(x.high) + exponent < -1080) return copysign(0, x.high);
  const double last = ldexp(1, -1074 - exponent), cutoff = copysign(0x1p52 * last, x.high);
  double whole = (x.high + cutoff) - cutoff;
  const double rest = x.high - whole;  // exact; at most half of `last`
  const bool tie = fabs(rest) == last / 2;
  if (tie && x.low != 0) {
    whole = x.high + (x.low > 0 ? last / 2 : -last / 2);
  }
  return ldexp(whole, exponent);
}

// ---- whole numbers -----------------------------------------------------------------------------

assay_dd_t assay_dd_floor(assay_dd_t x) {
  const double whole = floor(x.high);
  return whole == x.high ? assay_dd_end(whole, floor(x.low)) : assay_dd(whole);
}

// Where the high part is whole, the low part decides; where it lies half-way, the low part's sign.
assay_dd_t assay_dd_round(assay_dd_t x) {
  const double whole = nearbyint(x.high);
  if (whole == x.high) return assay_dd_end(whole, nearbyint(x.low));
  const bool tie = fabs(x.high - trunc(x.high)) == 0.5;
  if (!tie || x.low == 0) return assay_dd(whole);
  return assay_dd(x.low > 0 ? ceil(x.high) : floor(x.high));
}
