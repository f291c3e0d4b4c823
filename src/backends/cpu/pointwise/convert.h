// Between float32 and the 16-bit formats, many elements at a time; ties to even, NaN stays NaN.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_CONVERT_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_CONVERT_H_

#include <stdint.h>
#include <string.h>

#include "formats/format.h"

static inline float cpu_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint32_t cpu_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float cpu_from_bf16(uint16_t x) { return cpu_from_bits((uint32_t)x << 16); }
static inline uint16_t cpu_to_bf16(float x) {
  const uint32_t b = cpu_bits(x);
  const uint32_t rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;
  return (uint16_t)(x != x ? b >> 16 | 0x40 : rounded);
}

// Elements [at, at + n) of a packed tensor: of float32, float16, bfloat16, bool; widen also of
// uint8, int8, int32 and int64 (rounded once).
void cpu_widen(const void* from, assay_type_t type, int64_t at, int64_t n, float* to);
void cpu_narrow(const float* from, int64_t n, assay_type_t type, int64_t at, void* to);

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_CONVERT_H_
