// exp in float32, written so that compilers turn a loop over it into vector code.
#ifndef ASSAY_BACKENDS_CPU_VEXP_H_
#define ASSAY_BACKENDS_CPU_VEXP_H_

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

#endif  // ASSAY_BACKENDS_CPU_VEXP_H_
