// Loops over arrays and the table of them, as cpu_vmath_LEVEL: included last by the source of one
// instruction set, after its lanes_*.h.
#include <stddef.h>

#include "backends/vmath/uses.h"
#include "backends/vmath/vmath.h"

// The last elements by loads and stores of some lanes: by the same operations.
#define LOOP(name, n_in, expression)                                                              \
  VTARGET static void name(const float* a, const float* b, const float* p, int64_t n, float* y) { \
    int64_t i = 0;                                                                                \
    (void)b, (void)p;                                                                             \
    for (; i + LANES <= n; i += LANES) {                                                          \
      const vf x = f_load(a + i), z = n_in == 2 ? f_load(b + i) : x;                              \
      (void)z;                                                                                    \
      f_store(y + i, expression);                                                                 \
    }                                                                                             \
    if (i < n) {                                                                                  \
      const vf x = f_load_some(a + i, n - i), z = n_in == 2 ? f_load_some(b + i, n - i) : x;      \
      (void)z;                                                                                    \
      f_store_some(y + i, n - i, expression);                                                     \
    }                                                                                             \
  }

#define VFAST(name, in_float32, in_float64)       \
  LOOP(to_float_##name, 1, float_##name(x, z, p)) \
  LOOP(to_half_##name, 1, half_##name(x, z, p))   \
  LOOP(to_bf16_##name, 1, bf16_##name(x, z, p))
#define VFUNCTION(name, n_in, in_float64)            \
  LOOP(to_float_##name, n_in, float_##name(x, z, p)) \
  LOOP(to_half_##name, n_in, half_##name(x, z, p))
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION

VTARGET static void exp_minus(const float* x, float m, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) f_store(y + i, v_exp(f_load(x + i) - f_set(m)));
  if (i < n) f_store_some(y + i, n - i, v_exp(f_load_some(x + i, n - i) - f_set(m)));
}
VTARGET static void exp_minus_each(const float* x, const float* m, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) f_store(y + i, v_exp(f_load(x + i) - f_load(m + i)));
  const int64_t left = n - i;
  if (left) f_store_some(y + i, left, v_exp(f_load_some(x + i, left) - f_load_some(m + i, left)));
}

const cpu_vmath_t LEVEL = {
    .name = LEVEL_NAME,
    .function = {{
#define VFAST(name, in_float32, in_float64) to_float_##name,
#define VFUNCTION(name, n_in, in_float64) to_float_##name,
#include "backends/vmath/functions.inc"
                 },
                 {
#undef VFAST
#undef VFUNCTION
#define VFAST(name, in_float32, in_float64) to_half_##name,
#define VFUNCTION(name, n_in, in_float64) to_half_##name,
#include "backends/vmath/functions.inc"
                 },
                 {
#undef VFAST
#define VFAST(name, in_float32, in_float64) to_bf16_##name,
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION
                 }},
    .exp_minus = exp_minus,
    .exp_minus_each = exp_minus_each,
};
