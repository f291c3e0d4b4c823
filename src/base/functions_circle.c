// Circular functions and their inverses.
#include <math.h>

#include "base/functions.h"
#include "base/functions_quick.h"

#define ASSAY_TABLE_CIRCLE
#define ASSAY_TABLE_ARCTAN
#define ASSAY_TABLE_TWO_OVER_PI
#include "base/functions_tables.inc"

static const assay_dd_t half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

static inline double ended(assay_dd_t x) { return x.high + x.low; }

// ---- sine and cosine ----------------------------------------------------------------------------

static const double to_26_bits = 0x1.8p18;  // the last place of a sum with it is 2^-34
enum { STEPS = 128 };                       // of a quarter of the circle

// sin(a + r) from the table's rows of sin a and cos a: S + C sin r + S (cos r - 1).
static inline quick_t turned(const double* s_row, const double* c_row, assay_dd_t r,
                             double sine_tail, double cosine_tail, double sign) {
  const double head = (r.high + to_26_bits) - to_26_bits;
  const double rest = (r.high - head) + (r.low + sine_tail);
  const assay_dd_t s = ordered_sum(s_row[0], sign * (c_row[0] * head));
  const double change = sign * (c_row[0] * rest + c_row[1] * (r.high + sine_tail)) +
                        (s_row[0] + s_row[1]) * cosine_tail;
  const assay_dd_t y = ordered_sum(s.high, s.low + (s_row[1] + change));
  return (quick_t){y.high, y.low, s_row[0] * 0x1p-66 + 0x1p-74, 0};
}

static inline quick_t negated(quick_t q) { return (quick_t){-q.high, -q.low, q.error, 0}; }

void assay_quick_circle(double x, quick_t* sine, quick_t* cosine) {
  // x = n pi/256 + r: two exact products (n has 20 bits, the parts 33), and the rest.
  const double n = (x * circle_step[0] + 0x1.8p52) - 0x1.8p52;
  assay_dd_t r = exact_sum(x - n * circle_step[1], -(n * circle_step[2]));
  r = ordered_sum(r.high, r.low - n * circle_step[3]);
  const int j = (int)n & (4 * STEPS - 1), i = j % STEPS;
  const double z = r.high * r.high;
  const double sine_tail =
      r.high * z * (-0x1.5555555555555p-3 + z * (0x1.1111111111111p-7 - z * 0x1.a01a01a01a01ap-13));
  const double cosine_tail =
      z * (-0.5 + z * (0x1.5555555555555p-5 - z * 0x1.6c16c16c16c17p-10)) - r.high * r.low;
  quick_t s, c;
  if (i == 0) {
    const assay_dd_t y = ordered_sum(r.high, r.low + sine_tail);
    s = (quick_t){y.high, y.low, fabs(sine_tail) * 0x1p-50 + 0x1p-106, 0};
  } else {
    s = turned(sine_table[i], sine_table[STEPS - i], r, sine_tail, cosine_tail, 1);
  }
  c = turned(sine_table[STEPS - i], sine_table[i], r, sine_tail, cosine_tail, -1);
  switch (j / STEPS) {
    case 0:
      *sine = s, *cosine = c;
      break;
    case 1:
      *sine = c, *cosine = negated(s);
      break;
    case 2:
      *sine = negated(s), *cosine = negated(c);
      break;
    default:
      *sine = negated(c), *cosine = s;
  }
}

static inline bool is_near(double x) { return fabs(x) < 12000; }

double assay_sin(double x) {
  if (fabs(x) < 0x1p-28) return x;
  if (!isfinite(x)) return (double)NAN;
  if (is_near(x)) {
    quick_t s, c;
    double y;
    assay_quick_circle(x, &s, &c);
    if (decided(s, &y)) return y;
  }
  return ended(assay_dd_sin(assay_dd(x)));
}

double assay_cos(double x) {
  if (fabs(x) < 0x1p-28) return 1;
  if (!isfinite(x)) return (double)NAN;
  if (is_near(x)) {
    quick_t s, c;
    double y;
    assay_quick_circle(x, &s, &c);
    if (decided(c, &y)) return y;
  }
  return ended(assay_dd_cos(assay_dd(x)));
}

double assay_tan(double x) {
  if (fabs(x) < 0x1p-28) return x;
  if (!isfinite(x)) return (double)NAN;
  if (is_near(x)) {
    quick_t s, c;
    double y;
    assay_quick_circle(x, &s, &c);
    const assay_dd_t t = quick_quotient((assay_dd_t){s.high, s.low}, (assay_dd_t){c.high, c.low});
    const double off = s.error / fabs(s.high) + c.error / fabs(c.high) + 0x1p-95;
    if (decided((quick_t){t.high, t.low, fabs(t.high) * off * 1.125, 0}, &y)) return y;
  }
  return ended(assay_dd_tan(assay_dd(x)));
}

// ---- reduction of any argument ------------------------------------------------------------------

// 2/pi times the whole number m 2^exponent, modulo 4, as the fraction of a quarter turn in [-1/2,
// 1/2] and the quarter. Of 2/pi the bits count that make less than a whole turn, and 256 after
// them. Source: M. Payne and R. Hanek, Radian reduction for trigonometric functions, SIGNUM
// Newsletter 18 (1983).
static assay_dd_t quarters(uint64_t m, int exponent, int* out_quadrant) {
  enum { LIMBS = 8 };
  const uint32_t* digits = &two_over_pi[0][0];
  const int first = exponent > 2 ? exponent - 2 : 0, shift = 2 - (exponent - first);
  uint32_t window[LIMBS], product[LIMBS + 2] = {0};  // the lowest limb first
  for (int i = 0; i < LIMBS; i++) {
    const int at = first + 32 * (LIMBS - 1 - i);
    const uint64_t pair = (uint64_t)digits[at / 32] << 32 | digits[at / 32 + 1];
    window[i] = (uint32_t)(pair >> (32 - at % 32));
  }
  const uint32_t factors[2] = {(uint32_t)m, (uint32_t)(m >> 32)};
  for (int k = 0; k < 2; k++) {
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
      carry += (uint64_t)window[i] * factors[k] + product[i + k];
      product[i + k] = (uint32_t)carry;
      carry >>= 32;
    }
    product[LIMBS + k] = (uint32_t)carry;
  }
  for (int i = 0; shift > 0 && i < LIMBS; i++)
    product[i] = (uint32_t)(((uint64_t)product[i + 1] << 32 | product[i]) >> shift);
  int quadrant = (int)(product[LIMBS - 1] >> 30);
  product[LIMBS - 1] &= 0x3fffffff;
  const bool over = product[LIMBS - 1] >> 29;
  assay_dd_t f = {over ? -1 : 0, 0};
  for (int i = LIMBS - 1; i >= 0; i--)
    f = assay_dd_plus(f, assay_dd(ldexp((double)product[i], 32 * (i - LIMBS) + 2)));
  *out_quadrant = (quadrant + over) & 3;
  return f;
}

static assay_dd_t reduced_double(double x, int* out_quadrant) {
  static const double parts[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                 -0x1.f1976b7ed8fbcp-110};
  if (fabs(x) < 0x1p26) {
    const double k = nearbyint(x / half_pi.high);
    assay_dd_t r = {x, 0};
    for (int i = 0; i < 3; i++) {
      const double p = k * parts[i];
      r = assay_dd_minus(r, (assay_dd_t){p, __builtin_fma(k, parts[i], -p)});
    }
    *out_quadrant = (int)((int64_t)k & 3);
    return r;
  }
  int exponent;
  const double m = ldexp(frexp(fabs(x), &exponent), 53);
  const assay_dd_t r = assay_dd_times(quarters((uint64_t)m, exponent - 53, out_quadrant), half_pi);
  if (x > 0) return r;
  *out_quadrant = -*out_quadrant & 3;
  return assay_dd_negated(r);
}

assay_dd_t assay_dd_reduced(assay_dd_t x, int* out_quadrant) {
  assay_dd_t r = reduced_double(x.high, out_quadrant);
  if (x.low == 0) return r;
  int more, turn = 0;
  r = assay_dd_plus(r, reduced_double(x.low, &more));
  if (fabs(r.high) > 0.79) {
    turn = r.high > 0 ? 1 : -1;
    r = assay_dd_minus(r, turn > 0 ? half_pi : assay_dd_negated(half_pi));
  }
  *out_quadrant = (*out_quadrant + more + turn) & 3;
  return r;
}

// ---- inverse functions --------------------------------------------------------------------------

// arctan c + arctan((x - c) / (1 + c x)) with c = i/64; beyond 1 pi/2 less that of 1/x.
quick_t assay_quick_arctan(assay_dd_t x) {
  const bool beyond = x.high > 1;
  if (beyond) x = quick_quotient(assay_dd(1), x);
  const int i = (int)(x.high * 64 + 0.5);
  const double c = i / 64.0;
  assay_dd_t t = x;
  if (i) {
    const assay_dd_t cx = {c * x.high, 0}, off = exact_sum(x.high, -c);
    const double upper = upper_half(x.high), lost = (c * upper - cx.high) + c * (x.high - upper);
    const assay_dd_t below = exact_sum(1, cx.high);
    t = quick_quotient(ordered_sum(off.high, off.low + x.low),
                       ordered_sum(below.high, below.low + (lost + c * x.low)));
  }
  const double z = t.high * t.high;
  const double tail =
      t.high * z *
      (-0x1.5555555555555p-2 +
       z * (0x1.999999999999ap-3 + z * (-0x1.2492492492492p-3 + z * 0x1.c71c71c71c71cp-4)));
  assay_dd_t y = {arctan_table[i][0], arctan_table[i][1]};
  const assay_dd_t s = exact_sum(y.high, t.high);
  y = ordered_sum(s.high, s.low + (y.low + (t.low + tail)));
  if (beyond) y = quick_sum(half_pi, (assay_dd_t){-y.high, -y.low});
  return (quick_t){y.high, y.low, y.high * 0x1p-64, 0};
}

double assay_atan(double x) {
  const double a = fabs(x);
  if (a < 0x1p-28 || x != x) return x;
  double y = half_pi.high;
  if (a < 0x1p100 && !decided(assay_quick_arctan(assay_dd(a)), &y))
    y = ended(assay_dd_atan(assay_dd(a)));
  return x < 0 ? -y : y;
}

double assay_asin(double x) {
  const double a = fabs(x);
  if (a < 0x1p-28 || x != x) return x;
  if (a > 1) return (double)NAN;
  double y = half_pi.high;
  if (a < 1) {
    const assay_dd_t product = quick_product(exact_sum(1, -a), exact_sum(1, a));
    const assay_dd_t of = quick_quotient(assay_dd(a), assay_dd_root(product));
    if (!decided(assay_quick_arctan(of), &y)) y = ended(assay_dd_asin(assay_dd(a)));
  }
  return x < 0 ? -y : y;
}

// 2 arctan(sqrt((1 - x) / (1 + x))).
double assay_acos(double x) {
  if (x != x) return x;
  if (!(fabs(x) <= 1)) return (double)NAN;
  if (x == 1) return 0;
  if (x == -1) return 2 * half_pi.high;
  const assay_dd_t of = quick_quotient(exact_sum(1, -x), exact_sum(1, x));
  quick_t q = assay_quick_arctan(assay_dd_root(of));
  q.high *= 2, q.low *= 2, q.error *= 2;
  double y;
  return decided(q, &y) ? y : ended(assay_dd_acos(assay_dd(x)));
}
