// The functions of backends/vmath, an element a thread: float_EXP(x, z, p), half_EXP, bf16_EXP and
// all others of its functions.inc, with the bits that the CPU gives.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_VMATH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_VMATH_H_

#include "prelude.h"

#define VTARGET
#define VFN DEVICE
#define VTABLE TABLE
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

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_VMATH_H_
