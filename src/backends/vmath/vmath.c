// The choice of an instruction set.
#include "backends/vmath/vmath.h"

#include <stdbool.h>
#include <stddef.h>

const cpu_vmath_t* cpu_vmath_level(int i) {
  const cpu_vmath_t* levels[4];
  int n = 0;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  const bool fma = __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    levels[n++] = &cpu_vmath_avx512;
  if (fma && __builtin_cpu_supports("avx2")) levels[n++] = &cpu_vmath_avx2;
#endif
  levels[n++] = &cpu_vmath_plain;
  return i < n ? levels[i] : NULL;
}

const cpu_vmath_t* cpu_vmath(void) { return cpu_vmath_level(0); }
