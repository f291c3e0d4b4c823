// Functions in float32, written so that compilers turn a loop over them into vector code: without
// branches, without calls. tests/backends/test_cpu_vmath.c holds them to their ulps.
#ifndef ASSAY_BACKENDS_CPU_VMATH_H_
#define ASSAY_BACKENDS_CPU_VMATH_H_

#include <math.h>
#include <stdbool.h>

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

// The natural logarithm, under 1 ulp; as musl's and FreeBSD's logf, whose polynomial it is: x is
// 2^k * (1 + f), log(1 + f) = 2 s + s^3 P(s^2) with s = f / (2 + f).
static inline float cpu_log(float x) {
  const bool tiny = x < 0x1p-126F;
  const float normal = tiny ? x * 0x1p25F : x;
  const uint32_t shifted = cpu_bits(normal) + (0x3f800000 - 0x3f3504f3);
  const float k = (float)((int32_t)(shifted >> 23) - 127 - (tiny ? 25 : 0));
  const float f = cpu_from_bits((shifted & 0x007fffff) + 0x3f3504f3) - 1;
  const float s = f / (2 + f), z = s * s, w = z * z, half = 0.5F * f * f;
  const float r =
      z * (0xaaaaaa.0p-24F + w * 0x91e9ee.0p-25F) + w * (0xccce13.0p-25F + w * 0xf89e26.0p-26F);
  const float y = s * (half + r) + k * 9.0580006145e-06F - half + f + k * 6.9313812256e-01F;
  return x != x || x < 0 ? NAN : x == 0 ? -INFINITY : x == INFINITY ? x : y;
}

// log(1 + x) for x >= 0: what 1 + x has lost is put back (Kahan).
static inline float cpu_log1p(float x) {
  const float u = 1 + x;
  return u == INFINITY ? u : cpu_log(u) + (x - (u - 1)) / u;
}

// exp(x) - 1 for x <= 0, under 3 ulp: near 0 the Taylor polynomial of degree 9.
static inline float cpu_expm1(float x) {
  float p = 1.0F / 362880;
  p = p * x + 1.0F / 40320;
  p = p * x + 1.0F / 5040;
  p = p * x + 1.0F / 720;
  p = p * x + 1.0F / 120;
  p = p * x + 1.0F / 24;
  p = p * x + 1.0F / 6;
  p = p * x + 0.5F;
  return x > -0.6F ? p * (x * x) + x : cpu_exp(x) - 1;
}

// x * Phi(x), Phi the normal distribution, in both tails: Phi(-a) = exp(-a^2 / 2) * u * p(u) with
// u = 1 / (1 + 0.3 a), p fitted as above (3.5e-9). a^2 is taken in two parts, of which the first,
// the square of a with 12 bits, is exact.
static inline float cpu_gelu(float x) {
  const float a = fabsf(x) > 15 ? 15 : fabsf(x), u = 1 / (1 + 0.3F * a);
  float p = -0x1.51eb2cp-6F;
  p = p * u + 0x1.cc91d2p-4F;
  p = p * u - 0x1.d36c10p-3F;
  p = p * u + 0x1.88d4c4p-3F;
  p = p * u - 0x1.456a9cp-4F;
  p = p * u + 0x1.89e9cep-4F;
  p = p * u + 0x1.41106ap-4F;
  p = p * u + 0x1.c3875ep-4F;
  p = p * u + 0x1.e9c3fep-4F;
  p = p * u + 0x1.ea3c9ap-4F;
  const float high = cpu_from_bits(cpu_bits(a) & 0xfffff000u);
  // exp(-d) of what the square has left, d < 0.06: the Taylor polynomial of degree 4.
  const float d = 0.5F * ((a - high) * (a + high));
  const float rest = d * (1 - d * (0.5F - d * (1.0F / 6 - d * (1.0F / 24))));
  // The root of exp(-a^2 / 2), twice: the product with x may be normal where exp(-a^2 / 2) is not.
  const float e = cpu_exp(-0.25F * (high * high)), tail = x * ((e - e * rest) * (p * u)) * e;
  return x != x || x > 15 ? x : x > 0 ? x - tail : x < -15 ? -0.0F : tail;
}

// x / (1 + exp(-t)), its limits where t is infinite; x and t of one sign or of opposite ones. Below
// 0 it is exp(t) times the same quotient. Under 2 ulp.
static inline float cpu_gated(float x, float t) {
  const float e = cpu_exp(-fabsf(t)), up = x / (1 + e);
  const float down = e == 0 ? copysignf(0, x) : up * e;
  return t != t ? t : t < 0 ? down : up;
}

// x * tanh(log(1 + e^x)) by e^-|x|, of which a rational function remains.
static inline float cpu_mish(float x) {
  const float e = cpu_exp(-fabsf(x)), n = e * (e + 2);
  const float up = x * ((1 + 2 * e) / (1 + 2 * e * (1 + e)));
  const float down = e == 0 ? -0.0F : x * (n / (n + 2));
  return x != x ? x : x > 0 ? up : down;
}

#endif  // ASSAY_BACKENDS_CPU_VMATH_H_
