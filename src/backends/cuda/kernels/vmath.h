// The functions of backends/vmath, an element a thread: float_EXP(x, z, p), half_EXP, bf16_EXP and
// all others of its functions.inc, with the bits that the CPU gives.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_VMATH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_VMATH_H_

#include "prelude.h"

#define VTARGET
#define VFN DEVICE
#define VTABLE WIDE_TABLE
#define VUNROLL UNROLL
#define HUGE_F POSITIVE_INFINITY
#define NAN_F (float_of(0x7fc00000u))

DEVICE uint32_t f_bits(float x) { return bits_of(x); }
DEVICE float f_from_bits(uint32_t b) { return float_of(b); }
DEVICE uint64_t d_bits(double x) { return bits_of64(x); }
DEVICE double d_from_bits(uint64_t b) { return double_of(b); }
DEVICE float f_fma(float a, float b, float c) { return FMA(a, b, c); }
DEVICE float f_sqrt(float a) { return SQRT(a); }
DEVICE double d_fma(double a, double b, double c) { return FMA64(a, b, c); }
DEVICE double d_sqrt(double a) { return SQRT64(a); }
DEVICE double d_round(double x) { return ROUND_EVEN64(x); }
DEVICE double d_truncate(double x) { return TRUNC64(x); }

#include "backends/vmath/lanes_one.h"

#define VONE DEVICE
#include "backends/vmath/reduce_one.h"

// As in backends/vmath/reduce.c.
DEVICE void vmath_reduce(const float* x, int n, double* rest, double* turns) {
  (void)n;
  if (!(f_abs(*x) < HUGE_F))
    *rest = (double)(*x - *x);
  else if (f_abs(*x) >= 0x1p28F)
    *rest = reduce_turns(bits_of(*x), turns);
}
DEVICE void vmath_remainder(const float* x, const float* y, int n, float* z) {
  (void)n;
  if (d_abs((double)*x / (double)*y) > 0x1p28) *z = REMAINDER(*x, *y);
}

#include "backends/vmath/negative_exp.h"
#include "backends/vmath/uses.h"

// The functions that have a form in float32, without float64: half_quick_NAME(x, z, p, open) gives
// what rounds to fp16 as half_NAME does, unless it says that this is open. A thread that has
// several elements takes the few open ones afterwards: a branch behind each would keep them from
// overlapping.

// Of numbers below the normal ones of fp16, which are 2^-24 apart, those beside the middle of two
// are open; half_is_open takes all of them, which are many behind an activation: zeros are.
DEVICE bool half_is_open_of(float x, float y) {
  const float a = f_abs(y), off = f_abs(a - ((a + 0.5F) - 0.5F));
  const bool settled = off < 0x1p-25F - 0x1p-33F && f_abs(x) < 0x1p16F;
  return a < 0x1p-14F ? !settled : f_near(y, 0x1fff, 0x1000);
}
DEVICE bool bf16_is_open_of(float x, float y) {
  (void)x;
  return bf16_is_open(y);
}
DEVICE bool float_is_open_of(float x, float y) {
  (void)x, (void)y;
  return false;
}
// Far below 0 the forms in float32 have fewer bits, which are enough where fp16 has few, too.
DEVICE bool far_is_open(float y) {
  const float a = f_abs(y), off = f_abs(a - ((a + 0.5F) - 0.5F));
  return !(a < 0x1p-14F && off < 0x1p-25F - 0x1p-29F);
}
DEVICE float quick_short_gelu(float x, bool half, bool* open) {
  const float y = short_gelu32(x, open);
  *open &= !half || far_is_open(y);
  return y;
}
DEVICE float quick_short_gelu_tanh(float x, bool half, bool* open) {
  const float y = short_gelu_tanh32(x, open);
  *open &= !half || far_is_open(y);
  return y;
}
DEVICE float quick_swish(float x, float alpha, bool* open) {
  *open = !in_swish32(alpha);
  return *open ? x : v_swish32(x, alpha);
}
DEVICE float quick_short_swish(float x, float alpha, bool* open) {
  *open = !in_swish32(alpha);
  return *open ? x : short_swish32(x, alpha);
}
#define v_short_gelu(x) quick_short_gelu(x, is_half, open)
#define v_short_gelu_tanh(x) quick_short_gelu_tanh(x, is_half, open)
#define v_swish(x, alpha) quick_swish(x, alpha, open)
#define v_short_swish(x, alpha) quick_short_swish(x, alpha, open)
#define QUICK(use, name, half, in_float32)                                        \
  DEVICE float use##_quick_##name(float x, float z, const float* p, bool* open) { \
    const bool is_half = half;                                                    \
    (void)z, (void)p, (void)is_half;                                              \
    *open = false;                                                                \
    const float y = in_float32;                                                   \
    *open |= use##_is_open_of(x, y);                                              \
    return y;                                                                     \
  }
// What is open: use_exactly_NAME(x, z, p).
#define EXACTLY(use, name, is_odd, in_float64)                          \
  DEVICE float use##_exactly_##name(float x, float z, const float* p) { \
    const bool odd = is_odd;                                            \
    (void)z, (void)p;                                                   \
    return in_float64;                                                  \
  }
#define VFAST(name, in_float32, in_float64) \
  QUICK(float, name, false, in_float32)     \
  QUICK(half, name, true, in_float32)       \
  QUICK(bf16, name, false, in_float32)      \
  EXACTLY(float, name, false, in_float64)   \
  EXACTLY(half, name, true, in_float64)     \
  EXACTLY(bf16, name, true, in_float64)
#define VFUNCTION(name, n_in, in_float64)
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION
#undef v_short_gelu
#undef v_short_gelu_tanh
#undef v_swish
#undef v_short_swish

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_VMATH_H_
