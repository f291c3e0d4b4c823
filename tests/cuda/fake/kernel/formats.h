// Formats of few bits as PTX's cvt has them; part of prelude.h.
#ifndef TESTS_CUDA_FAKE_KERNEL_FORMATS_H_
#define TESTS_CUDA_FAKE_KERNEL_FORMATS_H_

typedef uint16_t f16_t;
typedef uint16_t bf16_t;

DEVICE float f16_to_f32(f16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = x & 0x7fff;
  if (rest > 0x7c00) return float_of(0x7fffffff);
  if (rest == 0x7c00) return float_of(sign | 0x7f800000);
  const float magnitude =
      rest < 0x400 ? (float)rest * 0x1p-24F : float_of((rest << 13) + 0x38000000);
  return sign ? -magnitude : magnitude;
}

// To nearest, ties to even; past the largest: infinity; NaN: 0x7fff.
DEVICE f16_t f32_to_f16(float x) {
  const uint32_t sign = bits_of(x) >> 16 & 0x8000, a = bits_of(x) & 0x7fffffff;
  if (a > 0x7f800000) return 0x7fff;
  if (a >= 0x477ff000) return (f16_t)(sign | 0x7c00);
  if (a < 0x38800000) return (f16_t)(sign | (bits_of(float_of(a) + 0.5F) - 0x3f000000));
  return (f16_t)(sign | (a + 0xc8000fff + (a >> 13 & 1)) >> 13);
}

DEVICE float bf16_to_f32(bf16_t x) { return float_of((uint32_t)x << 16); }

DEVICE bf16_t f32_to_bf16(float x) {
  const uint32_t b = bits_of(x);
  if ((b & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (bf16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

DEVICE uint32_t two_f16(float low, float high) {
  return f32_to_f16(low) | (uint32_t)f32_to_f16(high) << 16;
}
DEVICE uint32_t two_bf16(float low, float high) {
  return f32_to_bf16(low) | (uint32_t)f32_to_bf16(high) << 16;
}

// 10 bits of fraction, to nearest, ties away from zero.
DEVICE uint32_t f32_to_tf32(float x) {
  const uint32_t b = bits_of(x);
  if ((b & 0x7fffffff) > 0x7f800000) return 0x7fffffff;
  if ((b & 0x7fffffff) == 0x7f800000) return b;
  return (b + 0x1000) & 0xffffe000;
}

#endif  // TESTS_CUDA_FAKE_KERNEL_FORMATS_H_
