// Functions whose results are rounded to 16 bits, by the hardware's exponential and reciprocal:
// half_rough_NAME(x, z, p, slack) is what a result lies beside, by at most *slack times its own
// magnitude. Where both ends of that round to the same 16 bits, the result does, too; else, once in
// some 500 times, it is open, and half_NAME says it (A. Ziv, as in backends/vmath/float32.h).
// A slack of 1 says that nothing is known.
//
// A slack is what EXP2_ROUGH and INVERSE_ROUGH may be off by at most (prelude.h), what each sum and
// product is rounded by, and u ln(2) times what the power u that 2 is raised to is off by, as
// shares of the result; tests try all of float32 with both functions as wrong as they may be.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_

#include "prelude.h"

#define ROUGH_SLACK 0x1.cp-22F        // of what comes behind the exponential
#define ROUGH_SLACK_OF_U 0x1p-24F     // for each 1 of a power that is rounded twice
#define ROUGH_GELU_SLACK 0x1.d8p-21F  // g's slope makes more of what the reciprocal is off by

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

// alpha > 0. Below -80 / alpha, 0: infinity would be multiplied by it.
DEVICE float rough_swish(float x, float alpha, bool tails, float* slack) {
  const float y = LARGER_OR_NAN(x, -80 / alpha);
  const float q = rough_quotient(y, y * (alpha * -0x1.715476p+0F), ROUGH_SLACK_OF_U, slack);
  leave_open(tails, x * alpha < -79 || (x < 0x1p-100F && x > -0x1p-100F), slack);
  if (!(alpha >= 1.0F / 16 && alpha <= 16)) *slack = 1;
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

// The ends of what a result lies between.
DEVICE float rough_ends(float middle, float slack, float* least) {
  *least = FMA(-middle, slack, middle);
  return FMA(middle, slack, middle);
}

#define ROUGH_USE(use, name, has_tails, value)                                      \
  DEVICE float use##_rough_##name(float x, float z, const float* p, float* slack) { \
    const bool tails = has_tails;                                                   \
    (void)z, (void)p;                                                               \
    return value;                                                                   \
  }
#define ROUGH(name, value)            \
  ROUGH_USE(half, name, false, value) \
  ROUGH_USE(bf16, name, true, value)
#include "rough.inc"
#undef ROUGH

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ROUGH_H_
