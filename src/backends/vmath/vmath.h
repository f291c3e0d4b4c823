// Pointwise functions over arrays of float32: at most 1 ulp (short ones, which serve after
// sums: 2.5) for all inputs, special
// values and subnormal numbers included (tests/backends/test_cpu_vmath.c), with the same bits for
// every instruction set, place in an array and number of elements.
//
// One source, float32.h and float64.h, is compiled for each instruction set over the operations of
// a lanes_*.h; functions.inc is the list.
#ifndef ASSAY_BACKENDS_VMATH_VMATH_H_
#define ASSAY_BACKENDS_VMATH_VMATH_H_

#include <stdint.h>

typedef enum cpu_vmath_id {
#define VFAST(name, in_float32, in_float64) CPU_V_##name,
#define VFUNCTION(name, n_in, in_float64) CPU_V_##name,
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION
  CPU_V_COUNT,
} cpu_vmath_id_t;

// What becomes of a result. It is to be rounded once: what will be narrowed is given such that
// narrowing it rounds the function's value correctly; as a float32 it may be an ulp off.
typedef enum cpu_vmath_use {
  CPU_V_FLOAT32 = 0,
  CPU_V_FLOAT16,
  CPU_V_BFLOAT16,
  CPU_V_USES,
} cpu_vmath_use_t;

// y[i] = f(x[i], z[i]) with parameters p; y may be x or z. p and z are not read by functions that
// have none.
typedef void cpu_vmath_function_t(const float* x, const float* z, const float* p, int64_t n,
                                  float* y);

typedef struct cpu_vmath {
  const char* name;
  cpu_vmath_function_t* function[CPU_V_USES][CPU_V_COUNT];
  // y[i] = exp(x[i] - m); and with an m of each element.
  void (*exp_minus)(const float* x, float m, int64_t n, float* y);
  void (*exp_minus_each)(const float* x, const float* m, int64_t n, float* y);
} cpu_vmath_t;

// For the CPU's best instruction set.
const cpu_vmath_t* cpu_vmath(void);
// All that the CPU runs, the best first: 0, 1, ...; NULL after the last.
const cpu_vmath_t* cpu_vmath_level(int i);

extern const cpu_vmath_t cpu_vmath_plain;
#if defined(__x86_64__) && defined(__GNUC__)
extern const cpu_vmath_t cpu_vmath_avx2, cpu_vmath_avx512;
#endif

#endif  // ASSAY_BACKENDS_VMATH_VMATH_H_
