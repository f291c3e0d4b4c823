// Exponential and hyperbolic functions.
#include <math.h>

#include "base/functions.h"
#include "base/functions_quick.h"

#define ASSAY_TABLE_EXP
#include "base/functions_tables.inc"

static const double inf = (double)INFINITY;

// ---- first evaluation ---------------------------------------------------------------------------

// Room for a sum whose last place is 2^-35: what is added to it loses what lies below that.
static const double to_26_bits = 0x1.8p17;

// x + rest = n ln2/128 + r.high + r.low, |r| <= ln2/256.
static inline assay_dd_t reduce(double x, double rest, int* out_n) {
  const double n = (x * exp_step[0] + 0x1.8p52) - 0x1.8p52;
  // The first product and the difference are exact: n has at most 18 bits, the step 34.
  const assay_dd_t r = exact_sum(x - n * exp_step[1], -(n * exp_step[2]));
  *out_n = (int)n;
  return ordered_sum(r.high, r.low + rest);
}

// e^r - 1 - r for |r| < 2^-8.5.
static inline double behind_r(double r) {
  return r * r *
         (0.5 + r * (0x1.5555555555555p-3 +
                     r * (0x1.5555555555555p-5 +
                          r * (0x1.1111111111111p-7 + r * 0x1.6c16c16c16c17p-10))));
}

// 2^(n/128) (1 + r + (e^r - 1 - r)). The head of the power and that of r have 26 bits: their
// product is exact. Errors: the last terms are below 2^-17, rounded some times; what is left out of
// the series is below 2^-71.
quick_t assay_quick_exp(double x, double rest) {
  int n;
  const assay_dd_t r = reduce(x, rest, &n);
  const double* power = exp_table[n & 127];
  const double head = (r.high + to_26_bits) - to_26_bits;
  const double behind = behind_r(r.high), tail = ((r.high - head) + r.low) + behind;
  const assay_dd_t s = ordered_sum(power[0], power[0] * head);
  const double low = s.low + (power[0] * tail + (power[1] + power[1] * (r.high + behind)));
  const assay_dd_t y = ordered_sum(s.high, low);
  return (quick_t){y.high, y.low, 0x1p-66, n >> 7};
}

// e^x - 1 for |x| < 700, beside its error.
static quick_t quick_expm1(double x) {
  if (fabs(x) < 0x1.6p-9) {
    const double tail = behind_r(x);
    const assay_dd_t y = ordered_sum(x, tail);
    return (quick_t){y.high, y.low, fabs(tail) * 0x1p-50, 0};
  }
  const quick_t e = assay_quick_exp(x, 0);
  const double scale = power_of_2(e.exponent < -200 ? -200 : e.exponent);
  const assay_dd_t s = exact_sum(e.high * scale, -1);
  const assay_dd_t y = ordered_sum(s.high, s.low + e.low * scale);
  return (quick_t){y.high, y.low, e.error * scale + 0x1p-105, 0};
}

// ---- the functions ------------------------------------------------------------------------------

static double accurate_exp(assay_dd_t x) {
  int exponent;
  const assay_dd_t y = assay_dd_exp_parts(x, &exponent);
  return assay_dd_rounded(y, exponent);
}

double assay_exp(double x) {
  if (!(x < 0x1.62e42fefa39fp+9)) return x != x ? x : inf;
  if (!(x > -0x1.74910d52d3052p+9)) return 0;
  if (x == 0x1p-53) return 0x1.0000000000001p+0;  // x^2/2 above a middle: below what pairs can say
  double y;
  return decided_scaled(assay_quick_exp(x, 0), &y) ? y : accurate_exp(assay_dd(x));
}

double assay_exp2(double x) {
  static const assay_dd_t ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  if (!(x < 1024)) return x != x ? x : inf;
  if (x <= -1075) return 0;
  if (x == floor(x)) return ldexp(1, (int)x);
  // Only what lies after the point is rounded.
  const double whole = nearbyint(x), part = x - whole;
  if (fabs(part) < 0x1p-60) return assay_dd_rounded(exact_sum(1, part * ln2.high), (int)whole);
  const assay_dd_t t = quick_product(assay_dd(part), ln2);
  quick_t q = assay_quick_exp(t.high, t.low);
  q.exponent += (int)whole;
  double y;
  if (decided_scaled(q, &y)) return y;
  int exponent;
  const assay_dd_t e = assay_dd_exp_parts(assay_dd_times(assay_dd(part), ln2), &exponent);
  return assay_dd_rounded(e, exponent + (int)whole);
}

double assay_expm1(double x) {
  if (!(x < 700)) return assay_exp(x);  // 1 is below 2^-1000 of it
  if (x < -40) return -1;
  if (fabs(x) < 0x1p-54) return x;
  if (x == 0x1p-52) return 0x1.0000000000001p-52;  // as above, x^3/6
  double y;
  if (decided(quick_expm1(x), &y)) return y;
  const assay_dd_t e = assay_dd_expm1(assay_dd(x));
  return e.high + e.low;
}

// With e = e^-2|x| - 1: -e / (2 + e).
double assay_tanh(double x) {
  const double a = fabs(x);
  if (a < 0x1p-28 || x != x) return x;
  if (a > 20) return x < 0 ? -1 : 1;
  const quick_t e = quick_expm1(-2 * a);
  const assay_dd_t below = quick_sum(assay_dd(2), (assay_dd_t){e.high, e.low});
  const assay_dd_t t = quick_quotient((assay_dd_t){-e.high, -e.low}, below);
  const quick_t q = {t.high, t.low, 2 * e.error / below.high + t.high * 0x1p-95, 0};
  double y;
  if (!decided(q, &y)) {
    const assay_dd_t exact = assay_dd_tanh(assay_dd(a));
    y = exact.high + exact.low;
  }
  return x < 0 ? -y : y;
}

// Beyond 40 e^-x is below 2^-115 of e^x: half of that.
static double half_exp(double a) {
  if (a > 711) return inf;
  quick_t q = assay_quick_exp(a, 0);
  q.exponent--;
  double y;
  if (decided_scaled(q, &y)) return y;
  int exponent;
  const assay_dd_t e = assay_dd_exp_parts(assay_dd(a), &exponent);
  return assay_dd_rounded(e, exponent - 1);
}

// With e = e^|x| - 1: (e + e / (e + 1)) / 2.
double assay_sinh(double x) {
  const double a = fabs(x);
  if (a < 0x1p-28 || !isfinite(x)) return x;
  double y;
  if (a > 40) {
    y = half_exp(a);
  } else {
    const quick_t e = quick_expm1(a);
    const assay_dd_t pair = {e.high, e.low};
    const assay_dd_t s = quick_sum(pair, quick_quotient(pair, quick_sum(assay_dd(1), pair)));
    const quick_t q = {s.high / 2, s.low / 2, e.error + s.high * 0x1p-95, 0};
    if (!decided(q, &y)) {
      const assay_dd_t exact = assay_dd_sinh(assay_dd(a));
      y = exact.high + exact.low;
    }
  }
  return x < 0 ? -y : y;
}

double assay_cosh(double x) {
  const double a = fabs(x);
  if (!isfinite(x)) return x * x;
  if (a < 0x1p-28) return 1;
  if (a == 0x1p-26) return 0x1.0000000000001p+0;  // as above, x^4/24
  if (a > 40) return half_exp(a);
  const quick_t e = assay_quick_exp(a, 0);
  const double scale = power_of_2(e.exponent);
  const assay_dd_t pair = {e.high * scale, e.low * scale};
  const assay_dd_t s = quick_sum(pair, quick_quotient(assay_dd(1), pair));
  const quick_t q = {s.high / 2, s.low / 2, e.error * scale + s.high * 0x1p-95, 0};
  double y;
  if (decided(q, &y)) return y;
  const assay_dd_t exact = assay_dd_cosh(assay_dd(a));
  return exact.high + exact.low;
}
