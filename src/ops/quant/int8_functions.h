// Functions in float64 for the epilogue of int8 layers, written so that compilers turn a loop over
// them into vector code: no branches, no calls, and no fused operation, so that every instruction
// set gives the same bits.
//
// What is computed here is rounded once to float32. Each is within 2^-48 of the function's value
// (relative; where that is in float32's range; tests/ops/test_int8_functions.c), so that the
// float32 is the nearest one except where that value lies within 2^-48 of a tie: about one argument
// in 2^23, and then the neighbour that is taken is as near as the other to 2^-24 of an ulp. Emu,
// CPU and CUDA take the same neighbour, since this is their common definition.
#ifndef ASSAY_OPS_QUANT_INT8_FUNCTIONS_H_
#define ASSAY_OPS_QUANT_INT8_FUNCTIONS_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double int8_of_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}
static inline uint64_t int8_bits(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

// exp(x) = 2^n (1 + p): n * ln(2) is taken off in two parts, of which the first has so few bits
// that its product with n is exact (Cody and Waite, 1980); p = exp(r) - 1 for |r| <= ln(2) / 2 by
// its Taylor polynomial of degree 13, whose rest is below 2^-57.
typedef struct int8_power {
  double two_n, p;
} int8_power_t;

static inline int8_power_t int8_power_of(double x) {
  const double shift = 0x1.8p52;
  const double shifted = x * 0x1.71547652b82fep0 + shift;
  const double n = shifted - shift;
  const double r = (x - n * 0x1.62e42fefa0000p-1) - n * 0x1.cf79abc9e3b39p-40;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * (r * r) + r;
  const uint64_t k = int8_bits(shifted) - int8_bits(shift);  // n, modulo 2^64
  return (int8_power_t){int8_of_bits((k + 1023) << 52), p};
}

// Beyond these ends results are 0 or infinite in float32, and so is what is computed from them.
static inline double int8_clamped(double x) { return x > 700 ? 700 : x < -700 ? -700 : x; }

static inline double int8_exp(double x) {
  const int8_power_t e = int8_power_of(int8_clamped(x));
  const double y = e.two_n + e.two_n * e.p;
  return x != x ? x : y;
}

static inline double int8_expm1(double x) {
  const int8_power_t e = int8_power_of(int8_clamped(x));
  const double y = e.two_n * e.p + (e.two_n - 1);
  return x != x ? x : y;
}

// log(1 + x) for x in [0, 1]: 2 atanh(z), z = x / (2 + x) <= 1/3, by its series up to z^35.
static inline double int8_log1p(double x) {
  const double z = x / (2 + x), s = z * z;
  double p = 1.0 / 35;
  p = p * s + 1.0 / 33;
  p = p * s + 1.0 / 31;
  p = p * s + 1.0 / 29;
  p = p * s + 1.0 / 27;
  p = p * s + 1.0 / 25;
  p = p * s + 1.0 / 23;
  p = p * s + 1.0 / 21;
  p = p * s + 1.0 / 19;
  p = p * s + 1.0 / 17;
  p = p * s + 1.0 / 15;
  p = p * s + 1.0 / 13;
  p = p * s + 1.0 / 11;
  p = p * s + 1.0 / 9;
  p = p * s + 1.0 / 7;
  p = p * s + 1.0 / 5;
  p = p * s + 1.0 / 3;
  return 2 * (z + z * (s * p));
}

static inline double int8_sigmoid(double x) {
  const double e = int8_exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

// Their limit at -infinity is 0: no product of infinity and 0.
static inline double int8_finite(double x) { return x < -700 ? -700 : x; }

static inline double int8_silu(double x) { return int8_finite(x) * int8_sigmoid(x); }

static inline double int8_softplus(double x) {
  return (x > 0 ? x : x != x ? x : 0) + int8_log1p(int8_exp(-fabs(x)));
}

// tanh(x) = t / (t + 2), t = exp(2x) - 1.
static inline double int8_tanh(double x) {
  const double a = fabs(x) > 20 ? 20 : fabs(x), t = int8_expm1(a + a);
  return x != x ? x : copysign(t / (t + 2), x);
}

// x tanh(ln(1 + e)) = x n / (n + 2) with e = exp(x), n = e (e + 2).
static inline double int8_mish(double x) {
  const double e = int8_exp(x > 40 ? 40 : x), n = e * (e + 2);
  return int8_finite(x) * (n / (n + 2));
}

// erfc(|x|), relative error below 2^-49. Source: W. J. Cody, Rational Chebyshev approximations for
// the error function, Math. Comp. 23 (1969), as in his program CALERF (1990).
static inline double int8_erfc_far(double a) {
  double n = 2.15311535474403846e-8 * a, d = a;
  n = (n + 5.64188496988670089e-1) * a;
  d = (d + 1.57449261107098347e1) * a;
  n = (n + 8.88314979438837594e0) * a;
  d = (d + 1.17693950891312499e2) * a;
  n = (n + 6.61191906371416295e1) * a;
  d = (d + 5.37181101862009858e2) * a;
  n = (n + 2.98635138197400131e2) * a;
  d = (d + 1.62138957456669019e3) * a;
  n = (n + 8.81952221241769090e2) * a;
  d = (d + 3.29079923573344963e3) * a;
  n = (n + 1.71204761263407058e3) * a;
  d = (d + 4.36261909014324716e3) * a;
  n = (n + 2.05107837782607147e3) * a;
  d = (d + 3.43936767414372164e3) * a;
  const double middle = (n + 1.23033935479799725e3) / (d + 1.23033935480374942e3);
  const double s = 1 / (a * a);
  double p = 1.63153871373020978e-2 * s, q = s;
  p = (p + 3.05326634961232344e-1) * s;
  q = (q + 2.56852019228982242e0) * s;
  p = (p + 3.60344899949804439e-1) * s;
  q = (q + 1.87295284992346725e0) * s;
  p = (p + 1.25781726111229246e-1) * s;
  q = (q + 5.27905102951428412e-1) * s;
  p = (p + 1.60837851487422766e-2) * s;
  q = (q + 6.05183413124413191e-2) * s;
  const double rest = s * (p + 6.58749161529837803e-4) / (q + 2.33520497626869185e-3);
  const double tail = (5.6418958354775628695e-1 - rest) / a;
  // exp(-a^2) without the rounding of a^2: a = b + c, b of few bits.
  const double b = floor(a * 16) / 16, c = (a - b) * (a + b);
  return int8_exp(-b * b) * int8_exp(-c) * (a <= 4 ? middle : tail);
}

static inline double int8_erf_near(double x) {
  const double s = x * x;
  double n = 1.85777706184603153e-1 * s, d = s;
  n = (n + 3.16112374387056560e0) * s;
  d = (d + 2.36012909523441209e1) * s;
  n = (n + 1.13864154151050156e2) * s;
  d = (d + 2.44024637934444173e2) * s;
  n = (n + 3.77485237685302021e2) * s;
  d = (d + 1.28261652607737228e3) * s;
  return x * (n + 3.20937758913846947e3) / (d + 2.84423683343917062e3);
}

static inline double int8_erf(double x) {
  const double a = fabs(x) > 26 ? 26 : fabs(x) < 0.25 ? 0.25 : fabs(x);
  const double far = copysign(1 - int8_erfc_far(a), x);
  return x != x ? x : fabs(x) <= 0.46875 ? int8_erf_near(x) : far;
}

static inline double int8_erfc(double x) {
  const double a = fabs(x) > 26 ? 26 : fabs(x) < 0.25 ? 0.25 : fabs(x);
  const double far = int8_erfc_far(a);
  return x != x ? x : fabs(x) <= 0.46875 ? 1 - int8_erf_near(x) : x < 0 ? 2 - far : far;
}

// x Phi(x) = x / 2 erfc(-x / sqrt(2)). What the rounded -x / sqrt(2) leaves out counts where erfc
// is steep: its derivative is -2/sqrt(pi) exp(-t^2). x is a float32, so that the first product of
// the two parts of 1/sqrt(2) is exact.
static inline double int8_gelu(double x) {
  const double high = 0x1.6a09e68p-1, low = -0x1.80c4336f74d05p-29;
  const double xm = x < -40 ? -40 : x;
  const double t = -xm * high, dt = -xm * low;
  const double u = t + dt, rest = dt - (u - t);
  const double a = u > 26 ? 26 : u < -26 ? -26 : u;
  const double q = int8_erfc(a) - 0x1.20dd750429b6dp0 * int8_exp(-a * a) * rest;
  return 0.5 * xm * (x > 40 ? 2 : q);
}

// Within 2^-44 in its tail, where the exponent's rounding counts as often as it is large.
// x (1 + tanh(u)) / 2 = x sigmoid(2u), 2u = 2 sqrt(2 / pi) x (1 + 0.044715 x^2).
static inline double int8_gelu_tanh(double x) {
  const double a = x < -40 ? -40 : x > 40 ? 40 : x;
  const double u = a * 0x1.9884533d43651p+0 * (1 + 0x1.6e4e26d4801f7p-5 * (a * a));
  return x > 40 ? x : a * int8_sigmoid(u);
}

#endif  // ASSAY_OPS_QUANT_INT8_FUNCTIONS_H_
