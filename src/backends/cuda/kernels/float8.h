// Floats of 8 bits: value_TYPE(code), and code_TYPE(x) of a number that is one of them, for the
// types e4m3, e5m2, and e4m3z and e5m2z, whose only zero is 0 and whose only NaN is 0x80 (ONNX's
// "FNUZ"). In integers, so that every architecture has them.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_FLOAT8_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_FLOAT8_H_

#include "elements.h"

// So many bits of fraction; exponents less the bias. Subnormals: whole numbers of the smallest one.
DEVICE float float8_value(uint32_t code, int fraction, int bias) {
  const uint32_t sign = (code & 0x80) << 24, rest = code & 0x7f;
  const float y = rest >> fraction
                      ? float_of((rest << (23 - fraction)) + ((uint32_t)(127 - bias) << 23))
                      : (float)rest * float_of((uint32_t)(128 - bias - fraction) << 23);
  return float_of(bits_of(y) | sign);
}
DEVICE uint8_t float8_code(float x, int fraction, int bias) {
  const uint32_t sign = bits_of(x) >> 24 & 0x80, a = bits_of(x) & 0x7fffffffu;
  const uint32_t normal = (uint32_t)(128 - bias) << 23;
  const uint32_t rest =
      a < normal ? (uint32_t)(float_of(a) * float_of((uint32_t)(126 + bias + fraction) << 23))
                 : (a - ((uint32_t)(127 - bias) << 23)) >> (23 - fraction);
  return (uint8_t)(sign | rest);
}
DEVICE float float8_nan(uint32_t sign) { return float_of(0x7fc00000u | (sign & 0x80) << 24); }

DEVICE float value_e4m3(uint8_t code) {
  return (code & 0x7f) == 0x7f ? float8_nan(code) : float8_value(code, 3, 7);
}
DEVICE float value_e5m2(uint8_t code) {
  const uint32_t rest = code & 0x7f;
  if (rest > 0x7c) return float8_nan(code);
  return rest == 0x7c ? float_of(0x7f800000u | (uint32_t)(code & 0x80) << 24)
                      : float8_value(code, 2, 15);
}
DEVICE float value_e4m3z(uint8_t code) {
  return code == 0x80 ? float8_nan(0) : float8_value(code, 3, 8);
}
DEVICE float value_e5m2z(uint8_t code) {
  return code == 0x80 ? float8_nan(0) : float8_value(code, 2, 16);
}

DEVICE uint8_t code_e4m3(float x) {
  return x != x ? (uint8_t)(bits_of(x) >> 24 | 0x7f) : float8_code(x, 3, 7);
}
DEVICE uint8_t code_e5m2(float x) {
  const uint8_t sign = (uint8_t)(bits_of(x) >> 24 & 0x80);
  const uint32_t a = bits_of(x) & 0x7fffffffu;
  return a > 0x7f800000u    ? (uint8_t)(sign | 0x7e)
         : a == 0x7f800000u ? (uint8_t)(sign | 0x7c)
                            : float8_code(x, 2, 15);
}
DEVICE uint8_t code_e4m3z(float x) { return x != x ? 0x80 : float8_code(x, 3, 8); }
DEVICE uint8_t code_e5m2z(float x) { return x != x ? 0x80 : float8_code(x, 2, 16); }

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_FLOAT8_H_
