// Functions in float32, written so that compilers turn a loop over them into vector code: without
// branches, without calls. tests/backends/test_cpu_vmath.c holds them to their ulps.
#ifndef ASSAY_BACKENDS_CPU_VMATH_H_
#define ASSAY_BACKENDS_CPU_VMATH_H_

#include <math.h>

#include "backends/cpu/convert.h"

// exp(x) = 2^n * exp(r), |r| <= ln(2) / 2: n * ln(2) is taken off in two parts, of which the first
// has so few bits that its product with n is exact (Cody and Waite, 1980); exp(r) by the Taylor
// polynomial of degree 7, whose rest is under 2^-29. Under 2 ulp; NaN stays, overflow and underflow
// go to infinity and, through the subnormals, to 0.
static inline float cpu_exp(float x) {
  const float clamped = x > 104.0F ? 104.0F : x < -104.0F ? -104.0F : x;
  const float shift = 0x1.8p23F;  // adding it rounds to an integer
  const float shifted = clamped * 0x1.715476p0F + shift;
  const float n = shifted - shift;
  const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * (r * r) + r;
  // 2^n in two factors, each a normal number.
  const int32_t k = (int32_t)(cpu_bits(shifted) - cpu_bits(shift)), half = k >> 1;
  const float a = cpu_from_bits((uint32_t)(half + 127) << 23);
  const float b = cpu_from_bits((uint32_t)(k - half + 127) << 23);
  const float y = (p + 1) * a * b;
  return x != x ? x : y;
}

// Under 2 ulp. Below 1 x + x * p(x^2); above 1 - exp(q(|x|)), where q is the logarithm of erfc.
// p and q: polynomials fitted here, by least squares reweighted towards the smallest largest
// relative error of erf, 3.3e-11 and 1.1e-9 before their coefficients were rounded.
static inline float cpu_erf(float x) {
  const float a = fabsf(x) > 4 ? 4 : fabsf(x), s = x * x;
  float p = -0x1.4383f4p-17F;
  p = p * s + 0x1.d8268ap-14F;
  p = p * s - 0x1.bcbe9ap-11F;
  p = p * s + 0x1.5628eep-8F;
  p = p * s - 0x1.b829a8p-6F;
  p = p * s + 0x1.ce2f08p-4F;
  p = p * s - 0x1.812746p-2F;
  p = p * s + 0x1.06eba8p-3F;
  float q = 0x1.86dea6p-13F;
  q = q * a - 0x1.825ba4p-9F;
  q = q * a + 0x1.65cbcap-6F;
  q = q * a - 0x1.a6536ep-4F;
  q = q * a - 0x1.46bae6p-1F;
  q = q * a - 0x1.2088ecp+0F;
  q = q * a - 0x1.661692p-12F;
  const float large = copysignf(1 - cpu_exp(q), x);
  return x != x ? x : fabsf(x) < 1 ? p * x + x : large;
}

// Under 3 ulp. Below 0.6 x + x^3 * p(x^2), fitted as above (9.3e-11); above 1 - 2 / (exp(2|x|) +
// 1).
static inline float cpu_tanh(float x) {
  const float a = fabsf(x), s = x * x;
  float p = 0x1.23e4a8p-9F;
  p = p * s - 0x1.0ec0e0p-7F;
  p = p * s + 0x1.6411a0p-6F;
  p = p * s - 0x1.b9f9e4p-5F;
  p = p * s + 0x1.11109ap-3F;
  p = p * s - 0x1.555554p-2F;
  const float large = copysignf(1 - 2 / (cpu_exp(a + a) + 1), x);
  return x != x ? x : a < 0.6F ? copysignf(p * s * a + a, x) : large;
}

#endif  // ASSAY_BACKENDS_CPU_VMATH_H_
