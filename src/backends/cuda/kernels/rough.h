// Functions whose results are rounded to 16 bits, by the hardware's exponential and reciprocal:
// half_rough_NAME(x, z, p, slack) is what a result lies beside, by at most *slack times its own
// magnitude. Where both ends of that round to the same 16 bits, the result does, too; else, once in
// some 400 times, it is open (A. Ziv, as in backends/vmath/float32.h). half_fine_NAME settles all
// of those but one in a hundred, in float64 and without a table, since what is read and run so
// rarely comes from far. Then half_NAME says it. A slack of 1 says that nothing is known: of a fine
// form its result may then be anything.
//
// A rough form's slack is what EXP2_ROUGH and INVERSE_ROUGH may be off by at most (prelude.h), what
// each sum and product is rounded by, and u ln(2) times what the power u that 2 is raised to is off
// by, as shares of the result; a fine form's is what its polynomials may be off by.
// Tests try all of float32 with both functions as wrong as they may be.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_

#include "prelude.h"

#define ROUGH_SLACK 0x1.cp-22F        // of what comes behind the exponential
#define ROUGH_SLACK_OF_U 0x1p-24F     // for each 1 of a power that is rounded twice
#define ROUGH_GELU_SLACK 0x1.d8p-21F  // g's slope makes more of what the reciprocal is off by

// ---- roughly ------------------------------------------------------------------------------------

// x / (1 + 2^u), u up to 126: where u is below 0, 2^u and what it lacks are a small share of 1.
DEVICE float rough_quotient(float x, float u, float of_u, float* slack) {
  *slack = FMA(u > 0 ? u : 0, of_u, ROUGH_SLACK);
  return x * INVERSE_ROUGH(EXP2_ROUGH(u) + 1);
}

// Whether fp16 has nothing but zero for what a function makes of x, and others have.
DEVICE void leave_open(bool tails, bool far, float* slack) {
  if (tails && far) *slack = 1;
}

DEVICE float rough_sigmoid(float x, bool tails, float* slack) {
  const float u = LARGER_OR_NAN(x, -80) * -0x1.715476p+0F;
  const float y = rough_quotient(1, u, ROUGH_SLACK_OF_U, slack);
  leave_open(tails, x < -79, slack);
  return y;
}

DEVICE bool is_alpha(float alpha) { return alpha >= 1.0F / 16 && alpha <= 16; }

// Below -80 / alpha, 0: infinity would be multiplied by it. Of other alphas nothing is known: of 1,
// whose ends are 0 and 2, no 16 bits.
DEVICE float rough_swish(float x, float alpha, bool tails, float* slack) {
  if (!is_alpha(alpha)) return *slack = 1, 1;
  const float y = LARGER_OR_NAN(x, -80 / alpha);
  const float q = rough_quotient(y, y * (alpha * -0x1.715476p+0F), ROUGH_SLACK_OF_U, slack);
  leave_open(tails, x * alpha < -79 || (x < 0x1p-100F && x > -0x1p-100F), slack);
  return q;
}

// x / (1 + e^(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): 0.5 x (1 + tanh(u)). Its power is
// rounded more often.
DEVICE float rough_gelu_tanh(float x, bool tails, float* slack) {
  const float y = LARGER_OR_NAN(x, -8);
  const float u = y * FMA(y * y, -0x1.a5a7d0p-4F, -0x1.26aec2p+1F);
  const float q = rough_quotient(y, u, 2 * ROUGH_SLACK_OF_U, slack);
  leave_open(tails, x < -7 || (x < 0x1p-100F && x > -0x1p-100F), slack);
  return q;
}

// x times the normal distribution's function: at -b it is e^(-b^2 / 2) g(1 / (1 + b / 4)), g a
// polynomial within 2^-23.8 for b up to 5.9 (by E. Remez's algorithm); at b, 1 minus that. What
// lies below -5.9 fp16 rounds to 0.
DEVICE float rough_gelu(float x, bool tails, float* slack) {
  const float y = LARGER_OR_NAN(x, -8), b = float_of(bits_of(y) & 0x7fffffff);
  const float t = INVERSE_ROUGH(FMA(b, 0.25F, 1)), u = y * y * -0x1.715476p-1F;
  float g = FMA(-0x1.952764p-4F, t, 0x1.815e2cp-2F);
  g = FMA(g, t, -0x1.57dc02p-2F);
  g = FMA(g, t, 0x1.6b1696p-2F);
  g = FMA(g, t, -0x1.4f937ap-6F);
  g = FMA(g, t, 0x1.069a0ep-3F);
  g = FMA(g, t, 0x1.888d0ep-4F);
  g = FMA(g, t, 0x1.d01eb8p-13F);
  const float below = g * EXP2_ROUGH(u);
  *slack = y < 0 ? FMA(u, -2 * ROUGH_SLACK_OF_U, ROUGH_GELU_SLACK) : ROUGH_GELU_SLACK;
  leave_open(tails, x < -5.75F || (x < 0x1p-100F && x > -0x1p-100F), slack);
  return y * (y < 0 ? below : 1 - below);
}

// ---- finely -------------------------------------------------------------------------------------

#define FINE_SLACK 0x1p-28F

DEVICE double fine_inverse(double x) {
  const double y = INVERSE_ROUGH((float)x);
  return y * FMA64(-x, y, 2);
}

// 2^u within 2^-29, |u| up to 1000: by a polynomial around the nearest whole number.
DEVICE double fine_exp2(double u) {
  const double shift = 0x1.8p52, k = u + shift, r = u - (k - shift);
  double y = FMA64(0x1.41d33574345ecp-13, r, 0x1.5f456a981dd9dp-10);
  y = FMA64(y, r, 0x1.3b2dbbc1902aap-7);
  y = FMA64(y, r, 0x1.c6aed4b9c9addp-5);
  y = FMA64(y, r, 0x1.ebfbdadca6ff0p-3);
  y = FMA64(y, r, 0x1.62e430c7e7634p-1);
  y = FMA64(y, r, 0x1.0000000261564p+0);
  return y * double_of((bits_of64(k) << 52) + 0x3ff0000000000000u);
}

// Where a fine form is none: of numbers that are not finite or far from 0, and the tiny ones.
DEVICE float fine_slack(float x, float most, bool tails) {
  const float a = float_of(bits_of(x) & 0x7fffffff);
  return a < most && !(tails && a < 0x1p-100F) ? FINE_SLACK : 1;
}

DEVICE double fine_quotient(double x, double u) { return x * fine_inverse(1 + fine_exp2(u)); }

DEVICE double fine_sigmoid(float x, bool tails, float* slack) {
  (void)tails;
  *slack = fine_slack(x, 80, false);
  return fine_quotient(1, (double)x * -0x1.71547652b82fep+0);
}

DEVICE double fine_swish(float x, float alpha, bool tails, float* slack) {
  *slack = is_alpha(alpha) ? fine_slack(x, 80 / alpha, tails) : 1;
  return fine_quotient((double)x, (double)x * ((double)alpha * -0x1.71547652b82fep+0));
}

DEVICE double fine_gelu_tanh(float x, bool tails, float* slack) {
  const double y = (double)x;
  *slack = fine_slack(x, 7, tails);
  return fine_quotient(y, y * FMA64(y * y, -0x1.a5a7cf7572a98p-4, -0x1.26aec21bce75ap+1));
}

// g as above, within 2^-30.
DEVICE double fine_gelu(float x, bool tails, float* slack) {
  const double y = (double)x, b = (double)float_of(bits_of(x) & 0x7fffffff);
  const double t = fine_inverse(FMA64(b, 0.25, 1));
  double g = FMA64(0x1.41f5aaa66a5a7p-5, t, -0x1.cdf74a53782c9p-3);
  g = FMA64(g, t, 0x1.dc1f24d5e400dp-2);
  g = FMA64(g, t, -0x1.b65093b15fbecp-2);
  g = FMA64(g, t, 0x1.89815b7574af1p-2);
  g = FMA64(g, t, -0x1.0564b8f8357bdp-4);
  g = FMA64(g, t, 0x1.180fae9b8a406p-3);
  g = FMA64(g, t, 0x1.7703f136de0c7p-4);
  g = FMA64(g, t, 0x1.9c200529451bfp-4);
  g = FMA64(g, t, -0x1.546d005af29cep-15);
  const double below = g * fine_exp2(y * y * -0x1.71547652b82fep-1);
  *slack = fine_slack(x, 6, tails);
  return y * (x < 0 ? below : 1 - below);
}

// ---- what a result lies between -----------------------------------------------------------------

// The ends.
DEVICE float rough_ends(float middle, float slack, float* least) {
  *least = FMA(-middle, slack, middle);
  return FMA(middle, slack, middle);
}

// To the last bit of float32 that stands for all behind it: it rounds to 16 bits as x does (as
// `odd` in backends/vmath/float64.h).
DEVICE float fine_end(double x) {
  const float y = (float)x;
  const double a = x < 0 ? -x : x, b = y < 0 ? -(double)y : (double)y;
  return float_of((bits_of(y) - (b > a)) | (b != a));
}
DEVICE float fine_ends(double middle, float slack, float* least) {
  *least = fine_end(middle - middle * (double)slack);
  return fine_end(middle + middle * (double)slack);
}

#define ROUGH_USE(type, use, form, name, has_tails, value)                            \
  DEVICE type use##_##form##_##name(float x, float z, const float* p, float* slack) { \
    const bool tails = has_tails;                                                     \
    (void)z, (void)p;                                                                 \
    return value;                                                                     \
  }
#define ROUGH(name, roughly, finely)                  \
  ROUGH_USE(float, half, rough, name, false, roughly) \
  ROUGH_USE(float, bf16, rough, name, true, roughly)  \
  ROUGH_USE(double, half, fine, name, false, finely)  \
  ROUGH_USE(double, bf16, fine, name, true, finely)
#include "rough.inc"
#undef ROUGH

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_
