// Functions whose results are rounded to 16 bits, by the hardware's exponential and reciprocal:
// half_rough_NAME(x, z, p, least) gives one of two ends, and *least the other one, that the result
// lies between. Where both round to the same 16 bits, the result does, too; else, once in some 300
// times, it is open (A. Ziv, as in backends/vmath/float32.h). Ends that are zeros of both signs are
// none of two: then the one that is given has the result's sign. half_fine_NAME(x, z, p, slack), in
// float64 and without a table, since what is read and run so rarely comes from far, is what the
// result lies beside, by at most *slack times its own magnitude; it settles all of those that are
// open but one in a hundred. A slack of 1 says that nothing is known: the result may then be
// anything. Then half_NAME says it.
//
// Between ends there is room for what EXP2_ROUGH and INVERSE_ROUGH may be off by at most
// (prelude.h), what each sum and product is rounded by, u ln(2) times what the power u that 2 is
// raised to is off by, as shares of the result, and for what functions in float64 are off by; a
// fine form's slack is what its polynomials may be off by. Tests try all of float32 with both
// functions as wrong as they may be.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_

#include "prelude.h"

#define ROUGH_SLACK 0x1.dp-22F     // of what comes behind the exponential
#define ROUGH_SLACK_OF_U 0x1p-24F  // for each 1 of a power that is rounded twice

// ---- roughly ------------------------------------------------------------------------------------

DEVICE float rough_ends(float middle, float slack, float* least) {
  *least = FMA(-middle, slack, middle);
  return FMA(middle, slack, middle);
}

// x / (1 + 2^u), u up to 126: where u is below 0, 2^u and what it lacks are a small share of 1.
// far: nothing is known.
DEVICE float rough_quotient(float x, float u, float of_u, bool far, float* least) {
  const float slack = far ? 1 : FMA(u > 0 ? u : 0, of_u, ROUGH_SLACK);
  return rough_ends(x * INVERSE_ROUGH(EXP2_ROUGH(u) + 1), slack, least);
}

DEVICE float rough_sigmoid(float x, bool tails, float* least) {
  const float u = LARGER_OR_NAN(x, -80) * -0x1.715476p+0F;
  return rough_quotient(1, u, ROUGH_SLACK_OF_U, tails && x < -79, least);
}

DEVICE bool is_alpha(float alpha) { return alpha >= 1.0F / 16 && alpha <= 16; }
DEVICE bool is_tiny(float x) { return x < 0x1p-100F && x > -0x1p-100F; }

// Below -80 / alpha, 0: infinity would be multiplied by it. Of other alphas nothing is known.
DEVICE float rough_swish(float x, float alpha, bool tails, float* least) {
  if (!is_alpha(alpha)) return *least = 0, POSITIVE_INFINITY;
  const float y = LARGER_OR_NAN(x, -80 / alpha);
  return rough_quotient(y, y * (alpha * -0x1.715476p+0F), ROUGH_SLACK_OF_U,
                        tails && (x * alpha < -79 || is_tiny(x)), least);
}

// x / (1 + e^(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): 0.5 x (1 + tanh(u)). Its power is
// rounded more often.
DEVICE float rough_gelu_tanh(float x, bool tails, float* least) {
  const float y = LARGER_OR_NAN(x, -8);
  const float u = y * FMA(y * y, -0x1.a5a7d0p-4F, -0x1.26aec2p+1F);
  return rough_quotient(y, u, 2 * ROUGH_SLACK_OF_U, tails && (x < -7 || is_tiny(x)), least);
}

// x times the normal distribution's function, by b = |x|: x, where it is above 0, minus b times
// what lies below -b, which is 2 to the power of a polynomial (by E. Remez's algorithm) that gives
// too little, by a share of less than `share`, and so an end that is too high. The other end has b
// times 1 + share for b, and is as much as `lower` lower. Both are rounded outwards.
DEVICE float rough_gelu_ends(float x, float power, float b, float share, float lower,
                             float* least) {
  const float e = EXP2_ROUGH(power), top = LARGER_OR_NAN(x, -0.0F);
  *least = FMA_DOWN(-(MAGNITUDE(x) * share), e, lower ? ADD_DOWN(top, -lower) : top);
  return FMA_UP(-b, e, top);
}

// For fp16, with a share of 26 * 2^-23, and 3 * 2^-31 for results so small that fp16's lie far
// apart: what x below -5.8 makes is rounded to 0.
DEVICE float rough_gelu_f16(float x, float* least) {
  const float b = SMALLER_OR_NAN(MAGNITUDE(x), 8);
  float u = FMA(-0x1.0345cep-20F, b, 0x1.033ae8p-16F);
  u = FMA(u, b, -0x1.0eeedap-14F);
  u = FMA(u, b, -0x1.d6ee06p-12F);
  u = FMA(u, b, 0x1.eab526p-8F);
  u = FMA(u, b, -0x1.b066acp-5F);
  u = FMA(u, b, -0x1.d626d6p-2F);
  u = FMA(u, b, -0x1.26aed4p+0F);
  u = FMA(u, b, -0x1.000038p+0F);
  return rough_gelu_ends(x, u, b, 0x1.000034p+0F, 0x1.8p-30F, least);
}

// For bfloat16, whose numbers are as small as float32's, with a share of 100 * 2^-23 down to -5.9:
// of what lies further below 0 nothing is known.
DEVICE float rough_gelu_bf16(float x, float* least) {
  const float b = SMALLER_OR_NAN(MAGNITUDE(x), 8);
  float u = FMA(-0x1.ec0740p-20F, b, 0x1.023a7ep-14F);
  u = FMA(u, b, -0x1.e7c0c8p-11F);
  u = FMA(u, b, 0x1.16c3bcp-7F);
  u = FMA(u, b, -0x1.ba0836p-5F);
  u = FMA(u, b, -0x1.d577e6p-2F);
  u = FMA(u, b, -0x1.26b860p+0F);
  u = FMA(u, b, -0x1.000046p+0F);
  const float most = rough_gelu_ends(x, u, b, 0x1.0000c8p+0F, 0, least);
  if (x < -5.875F) *least = -1;
  return most;
}

DEVICE float rough_gelu(float x, bool tails, float* least) {
  return tails ? rough_gelu_bf16(x, least) : rough_gelu_f16(x, least);
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

// At -b it is x e^(-b^2 / 2) g(1 / (1 + b / 4)), g a polynomial within 2^-30 for b up to 6; at b, 1
// minus that for the distribution's function.
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

// ---- what a result lies between, finely ---------------------------------------------------------

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

#define ROUGH_USE(type, use, form, name, has_tails, end, value)                     \
  DEVICE type use##_##form##_##name(float x, float z, const float* p, float* end) { \
    const bool tails = has_tails;                                                   \
    (void)z, (void)p, (void)tails;                                                  \
    return value;                                                                   \
  }
#define ROUGH(name, roughly, finely)                         \
  ROUGH_USE(float, half, rough, name, false, least, roughly) \
  ROUGH_USE(float, bf16, rough, name, true, least, roughly)  \
  ROUGH_USE(double, half, fine, name, false, slack, finely)  \
  ROUGH_USE(double, bf16, fine, name, true, slack, finely)
#include "rough.inc"
#undef ROUGH

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_
