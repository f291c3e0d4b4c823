// First evaluations of the elementary functions: a sum of two doubles and how far off it may be.
//
// Only + - * / and square roots of double, in one order (see base/functions.h). Where products have
// to be exact, factors are cut to 26 bits: a fused multiply-add is a slow call where the CPU has
// none.
#ifndef ASSAY_BASE_FUNCTIONS_QUICK_H_
#define ASSAY_BASE_FUNCTIONS_QUICK_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/double_double.h"

// The value (high + low) 2^exponent, within `error` 2^exponent.
typedef struct quick {
  double high, low, error;
  int exponent;
} quick_t;

static inline uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
// 2^k for a normal number.
static inline double power_of_2(int k) { return of_bits((uint64_t)(k + 1023) << 52); }

// ---- exact sums and products --------------------------------------------------------------------

static inline assay_dd_t exact_sum(double a, double b) {  // Knuth
  const double s = a + b, t = s - a;
  return (assay_dd_t){s, (a - (s - t)) + (b - t)};
}
static inline assay_dd_t ordered_sum(double a, double b) {  // Dekker; |a| >= |b| or a == 0
  const double s = a + b;
  return (assay_dd_t){s, b - (s - a)};
}
// The upper 26 bits or so (Veltkamp), for |x| < 2^990.
static inline double upper_half(double x) {
  const double t = x * 0x1.0000002p+27;
  return t - (t - x);
}
static inline assay_dd_t exact_product(double a, double b) {  // Dekker
  const double p = a * b, ah = upper_half(a), bh = upper_half(b), al = a - ah, bl = b - bh;
  return (assay_dd_t){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
static inline assay_dd_t quick_product(assay_dd_t a, assay_dd_t b) {
  const assay_dd_t p = exact_product(a.high, b.high);
  return ordered_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
static inline assay_dd_t quick_quotient(assay_dd_t a, assay_dd_t b) {
  const double q = a.high / b.high;
  const assay_dd_t p = exact_product(q, b.high);
  return ordered_sum(q, (((a.high - p.high) - p.low) + (a.low - q * b.low)) / b.high);
}
static inline assay_dd_t quick_sum(assay_dd_t a, assay_dd_t b) {
  const assay_dd_t s = exact_sum(a.high, b.high);
  return ordered_sum(s.high, s.low + (a.low + b.low));
}

// ---- rounding -----------------------------------------------------------------------------------

// Whether all of high + low +- error rounds to one number, and that number; the result must be
// normal once it is scaled (high may be as small as 2^-20).
static inline bool decided(quick_t q, double* out) {
  const double below = q.high + (q.low - q.error), above = q.high + (q.low + q.error);
  *out = below;
  return below == above;
}
static inline bool decided_scaled(quick_t q, double* out) {
  if (q.exponent < -1000 || q.exponent > 1022 || !decided(q, out)) return false;
  *out *= power_of_2(q.exponent);
  return true;
}
// x 2^exponent rounded once, wherever it lies.
double assay_dd_rounded(assay_dd_t x, int exponent);

// ---- first evaluations --------------------------------------------------------------------------

// e^(x + rest) for |x| < 800 and |rest| < 2^-40: high in (0.99, 2.01), within 2^-66.
quick_t assay_quick_exp(double x, double rest);
// ln((x + rest) 2^exponent) for x in [1, 2).
quick_t assay_quick_log(double x, double rest, int exponent);
// The sine and the cosine of |x| < 12,000.
void assay_quick_circle(double x, quick_t* sine, quick_t* cosine);
quick_t assay_quick_arctan(assay_dd_t x);  // x >= 0

// ---- double-double ------------------------------------------------------------------------------

assay_dd_t assay_dd_exp_parts(assay_dd_t x, int* out_exponent);  // |x| < 800
// x - k pi/2, at most pi/4 or a little more, and k modulo 4, for any finite x.
assay_dd_t assay_dd_reduced(assay_dd_t x, int* out_quadrant);
assay_dd_t assay_dd_pow_parts(double x, double y, int* out_exponent);
assay_dd_t assay_dd_erfc_parts(assay_dd_t x, int* out_exponent);

#endif  // ASSAY_BASE_FUNCTIONS_QUICK_H_
