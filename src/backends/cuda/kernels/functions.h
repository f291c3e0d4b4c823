// Pointwise functions of values: on floats do_NAME(X, Z, W, P) and those of vmath.h; on integers
// the functions of backends/layers/pointwise_integers.inc by the same names.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_FUNCTIONS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_FUNCTIONS_H_

#include "words.h"

#ifdef PROGRAM_INTEGERS
#define U(x) ((uint64_t)(x))
#define S(x) ((int64_t)(x))
#define POINTWISE_INTEGER(name, expression)                                   \
  DEVICE int64_t do_##name(int64_t X, int64_t Z, int64_t W, const float* P) { \
    (void)X, (void)Z, (void)W, (void)P;                                       \
    return expression;                                                        \
  }
#include "backends/layers/pointwise_integers.inc"
#undef POINTWISE_INTEGER

// To an integer type, towards zero; where it does not fit as ops/math/pointwise.h says
// (assay_f64_to_int).
DEVICE bool fits(double t, double end) { return t >= -end && t < end; }
DEVICE int64_t to_s64_of(double t) {
  return fits(t, 0x1p63) ? (int64_t)t : (int64_t)0x8000000000000000u;
}
DEVICE int64_t to_u64_of(double t) {
  if (t >= 0x1p64) return 0;
  return t >= 0x1p63 ? (int64_t)(uint64_t)t : to_s64_of(t);
}
DEVICE int64_t to_s32_of(double t) { return fits(t, 0x1p31) ? (int64_t)t : -0x80000000ll; }
DEVICE int64_t to_u32_of(double t) { return fits(t, 0x1p63) ? (int64_t)t : 0; }
DEVICE int64_t to_narrow_of(double t) { return fits(t, 0x1p31) ? (int64_t)t : 0; }
#define to_s16_of to_narrow_of
#define to_u16_of to_narrow_of
#define to_s8_of to_narrow_of
#define to_u8_of to_narrow_of
#else
#include "rough.h"
#include "vmath.h"
#define POINTWISE_SQRT(x) SQRT(x)
#define POINTWISE_ABS(x) f_abs(x)
#define POINTWISE_CEIL(x) CEIL(x)
#define POINTWISE_FLOOR(x) FLOOR(x)
#define POINTWISE_NEAREST(x) ROUND_EVEN(x)
#define ROUNDING_FUNCTION DEVICE
#define ROUNDING_BITS(x) bits_of(x)
#define ROUNDING_FLOAT(bits) float_of(bits)
#include "backends/layers/pointwise_rounding.inc"
#define POINTWISE(name, n_in, expression)                             \
  DEVICE float do_##name(float X, float Z, float W, const float* P) { \
    (void)X, (void)Z, (void)W, (void)P;                               \
    return (float)(expression);                                       \
  }
#include "backends/layers/pointwise_functions.inc"
#undef POINTWISE
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_FUNCTIONS_H_
