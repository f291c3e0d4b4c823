// Elements of tensors as float32: load_TYPE(p, i), store_TYPE(p, i, x), for the types f32, f16 and
// bf16. A kernel that is compiled for a type T (-DT=f16) says LOAD(T)(p, i), STORE(T)(p, i, x).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ELEMENTS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ELEMENTS_H_

#include "prelude.h"

#define PASTED(a, b) a##b
#define JOINED(a, b) PASTED(a, b)
#define LOAD(type) JOINED(load_, type)
#define STORE(type) JOINED(store_, type)
#define ROUND(type) JOINED(round_, type)  // to the type and back
#define ELEMENT(type) JOINED(type, _t)    // as it lies in memory

typedef float f32_t;

DEVICE float load_f32(const f32_t* p, int64_t i) { return p[i]; }
DEVICE float load_f16(const f16_t* p, int64_t i) { return f16_to_f32(p[i]); }
DEVICE float load_bf16(const bf16_t* p, int64_t i) { return bf16_to_f32(p[i]); }
DEVICE void store_f32(f32_t* p, int64_t i, float x) { p[i] = x; }
DEVICE void store_f16(f16_t* p, int64_t i, float x) { p[i] = f32_to_f16(x); }
DEVICE void store_bf16(bf16_t* p, int64_t i, float x) { p[i] = f32_to_bf16(x); }
DEVICE float round_f32(float x) { return x; }
DEVICE float round_f16(float x) { return f16_to_f32(f32_to_f16(x)); }
DEVICE float round_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }
DEVICE bool is_finite(float x) { return (bits_of(x) & 0x7f800000u) != 0x7f800000u; }
// To 10 bits of fraction, to nearest, ties to even, as the format tf32 is defined; tensor cores
// read no more bits. (The instruction cvt.rna rounds ties away from zero.)
DEVICE float round_tf32(float x) {
  const uint32_t b = bits_of(x);
  const bool none = b << 1 > 0xff000000u;  // NaN; infinities stay by themselves
  return float_of(none ? b : (b + 0xfffu + (b >> 13 & 1u)) & ~0x1fffu);
}

// What is over of a number that is divided by the base, which it is then: the last one of its
// digits. Both not negative; a division of 64 bits takes ten times as long as one of 32.
DEVICE int64_t take_digit(int64_t* number, int64_t base) {
  if (!((uint64_t)(*number | base) >> 32)) {
    const uint32_t n = (uint32_t)*number, b = (uint32_t)base, rest = n / b;
    *number = rest;
    return n - rest * b;
  }
  const int64_t n = *number, rest = n / base;
  *number = rest;
  return n - rest * base;
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ELEMENTS_H_
