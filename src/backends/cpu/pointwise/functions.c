// Pointwise functions over arrays of float32.
#include "backends/cpu/pointwise/functions.h"

#include <math.h>
#include <stddef.h>

#include "backends/cpu/pointwise/chain.h"
#include "backends/layers/pointwise_rounding.h"
#include "base/target.h"

// Loops that compilers turn into vector code where the function allows it; that y may be an input
// is why the arrays are not declared apart.
#define FUNCTION(name, expression)                                                            \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                                 \
  static void name(const float* a, const float* b, const float* c, const float* P, int64_t n, \
                   float* y) {                                                                \
    (void)a, (void)b, (void)c, (void)P;                                                       \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = (float)(expression);           \
  }
#define X a[i]
#define Z b[i]
#define W c[i]
#define POINTWISE_SQRT(x) sqrtf(x)
#define POINTWISE_ABS(x) fabsf(x)
#define POINTWISE_CEIL(x) ceilf(x)
#define POINTWISE_FLOOR(x) floorf(x)
#define POINTWISE_NEAREST(x) nearbyintf(x)

#define POINTWISE(name, n_in, expression) FUNCTION(f_##name, expression)
#include "backends/layers/pointwise_functions.inc"
#undef POINTWISE

// ---- vector functions ---------------------------------------------------------------------------

// vectors[use][id]: the functions of vmath.h in the form of this folder's others.
#define VECTOR(use, id)                                                                      \
  static void use##_##id(const float* a, const float* b, const float* c, const float* param, \
                         int64_t n, float* y) {                                              \
    (void)c;                                                                                 \
    cpu_vmath()->function[CPU_V_##use][CPU_V_##id](a, b, param, n, y);                       \
  }
#define VFAST(id, in_float32, in_float64) \
  VECTOR(FLOAT32, id) VECTOR(FLOAT16, id) VECTOR(BFLOAT16, id)
#define VFUNCTION(id, n_in, in_float64) VFAST(id, , )
#include "backends/vmath/functions.inc"
#undef VFAST
#undef VFUNCTION

#define VFUNCTION(id, n_in, in_float64) {FLOAT32_##id, FLOAT16_##id, BFLOAT16_##id},
#define VFAST(id, in_float32, in_float64) VFUNCTION(id, , )
static cpu_function_t* const vectors[CPU_V_COUNT][CPU_V_USES] = {
#include "backends/vmath/functions.inc"
};
#undef VFAST
#undef VFUNCTION

cpu_function_t* cpu_function_of(pointwise_function_t f) {
#define POINTWISE(name, n_in, expression) f_##name,
  static cpu_function_t* const simple[] = {
#include "backends/layers/pointwise_functions.inc"
  };
#undef POINTWISE
  return f < POINTWISE_VMATH ? simple[f] : vectors[f - POINTWISE_VMATH][CPU_V_FLOAT32];
}

cpu_function_t* cpu_function_before(cpu_function_t* f, assay_type_t type) {
  const cpu_vmath_use_t use = pointwise_use(type);
  for (int i = 0; i < CPU_V_COUNT; i++)
    if (vectors[i][CPU_V_FLOAT32] == f) return vectors[i][use];
  return f;
}

// Those that a short one takes the place of after sums.
static bool is_long(cpu_function_t* f) {
  return f == FLOAT32_SWISH || f == FLOAT32_HARD_SWISH || f == FLOAT32_GELU ||
         f == FLOAT32_GELU_TANH;
}

cpu_link_kind_t cpu_link_kind(cpu_function_t* f, cpu_vmath_use_t use) {
  // In 16 bits the short ones give the same numbers.
  if (use == CPU_V_FLOAT32 && is_long(f)) return CPU_LINK_CALL;
  static const struct {
    cpu_function_t* f;
    cpu_link_kind_t kind;
  } links[] = {{f_IDENTITY, CPU_LINK_IDENTITY},
               {f_ADD, CPU_LINK_ADD},
               {f_SUB, CPU_LINK_SUB},
               {f_MUL, CPU_LINK_MUL},
               {f_RELU, CPU_LINK_RELU},
               {f_CLIP, CPU_LINK_CLIP},
               {FLOAT32_HARD_SWISH, CPU_LINK_HARD_SWISH},
               {FLOAT32_SHORT_HARD_SWISH, CPU_LINK_HARD_SWISH},
               {FLOAT32_HARD_SIGMOID, CPU_LINK_HARD_SIGMOID},
               {FLOAT32_SIGMOID, CPU_LINK_SIGMOID},
               {FLOAT32_SWISH, CPU_LINK_SWISH},
               {FLOAT32_SHORT_SWISH, CPU_LINK_SWISH},
               {FLOAT32_GELU, CPU_LINK_GELU},
               {FLOAT32_SHORT_GELU, CPU_LINK_GELU},
               {FLOAT32_GELU_TANH, CPU_LINK_GELU_TANH},
               {FLOAT32_SHORT_GELU_TANH, CPU_LINK_GELU_TANH}};
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    if (links[i].f == f) return links[i].kind;
  return CPU_LINK_CALL;
}
