// Logarithms, inverse hyperbolic functions and powers.
#include <math.h>

#include "base/functions.h"
#include "base/functions_quick.h"

#define ASSAY_TABLE_LOG
#include "base/functions_tables.inc"

static const double inf = (double)INFINITY;
static const assay_dd_t over_ln2 = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
static const assay_dd_t over_ln10 = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

// ---- first evaluation ---------------------------------------------------------------------------

// x > 0 as m 2^exponent, 1 <= m < 2.
static inline double mantissa_of(double x, int* out_exponent) {
  int below = 0;
  if (x < 0x1p-1022) x *= 0x1p54, below = 54;
  const uint64_t bits = bits_of(x);
  *out_exponent = (int)(bits >> 52) - 1023 - below;
  return of_bits((bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x3ff0000000000000));
}

// With r = (x + rest) c - 1: exponent ln 2 - ln c + ln(1 + r), where |r| is below 2^-7.9, and below
// 2^-7 where c is 1 (or 1/2, of the number's half). Products are exact: x is cut to 26 bits, c
// has 10.
quick_t assay_quick_log(double x, double rest, int exponent) {
  const int i = (int)(bits_of(x) >> 45) & 127;
  const double* row = log_table[i];
  const double k = (double)(exponent + (i >= 53));
  const double upper = of_bits(bits_of(x) & ~UINT64_C(0x7ffffff));
  const assay_dd_t r = exact_sum(upper * row[0] - 1, (x - upper) * row[0]);
  const double r_low = r.low + rest * row[0], z = r.high;
  const double tail =
      z * z *
      (-0.5 +
       z * (0x1.5555555555555p-2 +
            z * (-0.25 + z * (0x1.999999999999ap-3 +
                              z * (-0x1.5555555555555p-3 +
                                   z * (0x1.2492492492492p-3 +
                                        z * (-0.125 + z * (0x1.c71c71c71c71cp-4 - z * 0.1))))))));
  const double head = k * ln2_parts[0] + row[1];  // exact: multiples of 2^-42
  const assay_dd_t s = exact_sum(head, z);
  const double low = s.low + ((r_low - z * r_low) + (tail + (k * ln2_parts[1] + row[2])));
  const assay_dd_t y = ordered_sum(s.high, low);
  return (quick_t){y.high, y.low, z * z * 0x1p-51 + (head != 0 ? 0x1p-67 : fabs(r_low) * 0x1p-52),
                   0};
}

static quick_t quick_log_of(double x) {
  int exponent;
  const double m = mantissa_of(x, &exponent);
  return assay_quick_log(m, 0, exponent);
}

// ln(1 + x) for x > -1; x < 2^900.
static quick_t quick_log1p(assay_dd_t x) {
  assay_dd_t s = exact_sum(1, x.high);
  s = ordered_sum(s.high, s.low + x.low);
  int exponent;
  const double m = mantissa_of(s.high, &exponent);
  return assay_quick_log(m, s.low * power_of_2(-exponent), exponent);
}

static inline double ended(assay_dd_t x) { return x.high + x.low; }

// ---- logarithms ---------------------------------------------------------------------------------

// Where the function has no finite value.
static inline bool is_special(double x) { return !(x > 0 && x < inf); }
static double special_log(double x) {
  if (x == 0) return -inf;
  return x < 0 ? (double)NAN : x;
}

double assay_log(double x) {
  if (is_special(x)) return special_log(x);
  double y;
  return decided(quick_log_of(x), &y) ? y : ended(assay_dd_log(assay_dd(x)));
}

static double to_base(double x, assay_dd_t factor) {
  if (is_special(x)) return special_log(x);
  const quick_t ln = quick_log_of(x);
  const assay_dd_t t = quick_product((assay_dd_t){ln.high, ln.low}, factor);
  const quick_t q = {t.high, t.low, 2 * ln.error + fabs(t.high) * 0x1p-98, 0};
  double y;
  if (decided(q, &y)) return y;
  return ended(assay_dd_times(assay_dd_log(assay_dd(x)), factor));
}

double assay_log2(double x) { return to_base(x, over_ln2); }
double assay_log10(double x) { return to_base(x, over_ln10); }

double assay_log1p(double x) {
  if (!(x > -1 && x < inf)) return x == -1 ? -inf : x < -1 ? (double)NAN : x;
  if (fabs(x) < 0x1p-54) return x;
  if (x > 0x1p200) return assay_log(x);
  double y;
  return decided(quick_log1p(assay_dd(x)), &y) ? y : ended(assay_dd_log1p(assay_dd(x)));
}

// ---- inverse hyperbolic functions ---------------------------------------------------------------

// The quick value's rest beside what rounding of its argument adds.
static bool decided_log1p(assay_dd_t of, double scale, double* out) {
  quick_t q = quick_log1p(of);
  q.high *= scale, q.low *= scale;
  q.error = q.error * scale + fabs(q.high) * 0x1p-95;
  return decided(q, out);
}

// ln(1 + a + a^2 / (1 + sqrt(1 + a^2))); where a^2 drowns 1, ln 2a + 1/(4 a^2).
double assay_asinh(double x) {
  const double a = fabs(x);
  if (a < 0x1p-28 || !isfinite(x)) return x;
  double y;
  bool done;
  if (a > 0x1p28) {
    int exponent;
    const double m = mantissa_of(a, &exponent);
    quick_t q = assay_quick_log(m, 0, exponent + 1);
    q.low += 0.25 / a / a;
    done = decided(q, &y);
  } else {
    const assay_dd_t square = exact_product(a, a), one = assay_dd(1);
    const assay_dd_t root = assay_dd_root(quick_sum(one, square));
    const assay_dd_t part = quick_quotient(square, quick_sum(one, root));
    done = decided_log1p(quick_sum(assay_dd(a), part), 1, &y);
  }
  if (!done) y = ended(assay_dd_asinh(assay_dd(a)));
  return x < 0 ? -y : y;
}

// With t = x - 1: ln(1 + t + sqrt(t (t + 2))); from 2^28 on ln 2x - 1/(4 x^2).
double assay_acosh(double x) {
  if (!(x >= 1)) return (double)NAN;
  if (x == inf) return x;
  double y;
  bool done;
  if (x > 0x1p28) {
    int exponent;
    const double m = mantissa_of(x, &exponent);
    quick_t q = assay_quick_log(m, 0, exponent + 1);
    q.low -= 0.25 / x / x;
    done = decided(q, &y);
  } else {
    const assay_dd_t t = exact_sum(x, -1);
    const assay_dd_t root = assay_dd_root(quick_product(t, quick_sum(t, assay_dd(2))));
    done = decided_log1p(quick_sum(t, root), 1, &y);
  }
  return done ? y : ended(assay_dd_acosh(assay_dd(x)));
}

double assay_atanh(double x) {
  const double a = fabs(x);
  if (a < 0x1p-28 || x != x) return x;
  if (a >= 1) return a > 1 ? (double)NAN : x < 0 ? -inf : inf;
  double y;
  const assay_dd_t of = quick_quotient(assay_dd(2 * a), exact_sum(1, -a));
  if (!decided_log1p(of, 0.5, &y)) y = ended(assay_dd_atanh(assay_dd(a)));
  return x < 0 ? -y : y;
}

// ---- powers -------------------------------------------------------------------------------------

static bool is_whole(double y) { return y == floor(y); }
static bool is_odd(double y) { return fabs(y) < 0x1p53 && is_whole(y) && fmod(y, 2) != 0; }

// x^y of the magnitude of x, which is neither 0 nor infinite, and a finite y that is not 0.
static double accurate_pow(double x, double y) {
  int exponent;
  const assay_dd_t p = assay_dd_pow_parts(x, y, &exponent);
  return assay_dd_rounded(p, exponent);
}

static double positive_pow(double x, double y) {
  if (x == 1) return 1;
  const quick_t ln = quick_log_of(x);
  if (fabs(y) > 0x1p70 || fabs(y * ln.high) > 760) return (y < 0) == (ln.high < 0) ? inf : 0;
  const assay_dd_t p = exact_product(y, ln.high);
  const assay_dd_t t = ordered_sum(p.high, p.low + y * ln.low);
  quick_t q = assay_quick_exp(t.high, t.low);
  q.error += 2 * fabs(y) * ln.error + fabs(t.high) * 0x1p-97;
  double z;
  return decided_scaled(q, &z) ? z : accurate_pow(x, y);
}

double assay_pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return x + y;
  const double a = fabs(x);
  if (isinf(y)) return a == 1 ? 1 : (a > 1) == (y > 0) ? inf : 0;
  if (y == 1) return x;
  if (y == 0.5 && x > 0) return sqrt(x);
  const bool negative = signbit(x) && is_odd(y);
  double z;
  if (a == 0 || a == inf) {
    z = (a == 0) == (y < 0) ? inf : 0;
  } else if (x < 0 && !is_whole(y)) {
    return (double)NAN;
  } else {
    z = positive_pow(a, y);
  }
  return negative ? -z : z;
}

// ---- length -------------------------------------------------------------------------------------

// The root of the sum of two exact squares, of numbers that are brought near 1.
double assay_hypot(double x, double y) {
  x = fabs(x), y = fabs(y);
  if (x == inf || y == inf) return inf;
  if (x != x || y != y) return x + y;
  const double larger = x > y ? x : y, smaller = x > y ? y : x;
  if (smaller == 0) return larger;
  int exponent;
  frexp(larger, &exponent);
  const double a = ldexp(larger, -exponent), b = ldexp(smaller, -exponent);
  if (b < 0x1p-60) return larger;
  const assay_dd_t sum = assay_dd_plus(exact_product(a, a), exact_product(b, b));
  return assay_dd_rounded(assay_dd_root(sum), exponent);
}
