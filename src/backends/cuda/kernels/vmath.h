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

#include "backends/vmath/uses.h"

// The functions that have a form in float32, without float64: half_quick_NAME(x, z, p, open) gives
// what half_NAME does, unless it says that this is open. A thread that has several elements takes
// the few open ones afterwards: a branch behind each would keep them from overlapping.
DEVICE float quick_short_gelu(float x, bool* open) { return short_gelu32(x, open); }
DEVICE float quick_short_gelu_tanh(float x, bool* open) { return short_gelu_tanh32(x, open); }
DEVICE float quick_swish(float x, float alpha, bool* open) {
  *open = !in_swish32(alpha);
  return *open ? x : v_swish32(x, alpha);
}
DEVICE float quick_short_swish(float x, float alpha, bool* open) {
  *open = !in_swish32(alpha);
  return *open ? x : short_swish32(x, alpha);
}
DEVICE bool float_is_open(float y) {
  (void)y;
  return false;
}
#define v_short_gelu(x) quick_short_gelu(x, open)
#define v_short_gelu_tanh(x) quick_short_gelu_tanh(x, open)
#define v_swish(x, alpha) quick_swish(x, alpha, open)
#define v_short_swish(x, alpha) quick_short_swish(x, alpha, open)
#define QUICK(use, name, in_float32)                                              \
  DEVICE float use##_quick_##name(float x, float z, const float* p, bool* open) { \
    (void)z, (void)p;                                                             \
    *open = false;                                                                \
    const float y = in_float32;                                                   \
    *open |= use##_is_open(y);                                                    \
    return y;                                                                     \
  }
#define VFAST(name, in_float32, in_float64) \
  QUICK(float, name, in_float32)            \
  QUICK(half, name, in_float32)             \
  QUICK(bf16, name, in_float32)
#define VFUNCTION(name, n_in, in_float64)
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION
#undef v_short_gelu
#undef v_short_gelu_tanh
#undef v_swish
#undef v_short_swish

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_VMATH_H_
