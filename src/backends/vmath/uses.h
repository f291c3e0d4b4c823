// The functions of functions.inc by what becomes of a result (cpu_vmath_use_t): float_NAME(x, z,
// p), half_NAME, bf16_NAME, of two inputs and parameters, read or not. Included after one of the
// lanes_*.h.
#ifndef ASSAY_BACKENDS_VMATH_USES_H_
#define ASSAY_BACKENDS_VMATH_USES_H_

#include "backends/vmath/float32.h"

#define VUSE(use, name, is_odd, expression)         \
  VFN vf use##_##name(vf x, vf z, const float* p) { \
    const bool odd = is_odd;                        \
    (void)z, (void)p, (void)odd;                    \
    return expression;                              \
  }
#define VNARROWED(use, name, in_float32, in_float64) \
  VFN vf use##_##name(vf x, vf z, const float* p) {  \
    const bool odd = true;                           \
    const vf y = in_float32;                         \
    const vm open = use##_is_open(y);                \
    (void)z, (void)p;                                \
    return OPEN_IN_FLOAT64(y, open, in_float64);     \
  }
#define VFAST(name, in_float32, in_float64)     \
  VUSE(float, name, false, in_float32)          \
  VNARROWED(half, name, in_float32, in_float64) \
  VNARROWED(bf16, name, in_float32, in_float64)
#define VFUNCTION(name, n_in, in_float64) \
  VUSE(float, name, false, in_float64)    \
  VUSE(half, name, true, in_float64)      \
  VUSE(bf16, name, true, in_float64)
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION

#endif  // ASSAY_BACKENDS_VMATH_USES_H_
