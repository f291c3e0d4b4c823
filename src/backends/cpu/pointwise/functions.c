// Pointwise functions over arrays of float32, and under which operator's name programs find them.
#include "backends/cpu/pointwise/functions.h"

#include <math.h>
#include <stddef.h>

#include "backends/cpu/pointwise/chain.h"
#include "backends/vmath/vmath.h"
#include "base/target.h"

// Min(max, Max(x, min)), also where min is the larger one; NaN stays, as everywhere here.
static inline float limited(float x, float min, float max) {
  const float above = x < min ? min : x;
  return above > max ? max : above;
}

// Loops that compilers turn into vector code where the function allows it; that y may be an input
// is why the arrays are not declared apart.
#define FUNCTION(name, expression)                                                         \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                              \
  void name(const float* a, const float* b, const float* c, const float* param, int64_t n, \
            float* y) {                                                                    \
    (void)a, (void)b, (void)c, (void)param;                                                \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = (float)(expression);        \
  }
#define X a[i]
#define Z b[i]

FUNCTION(cpu_f_add, X + Z)
FUNCTION(cpu_f_sub, X - Z)
FUNCTION(cpu_f_mul, (X * Z))
FUNCTION(cpu_f_quotient, X / Z)
// ONNX Max and Min: a NaN of either operand is the result.
FUNCTION(cpu_f_larger, X != X ? X : Z != Z ? Z : X > Z ? X : Z)
FUNCTION(cpu_f_smaller, X != X ? X : Z != Z ? Z : X < Z ? X : Z)
FUNCTION(cpu_f_identity, X)
FUNCTION(cpu_f_clip, limited(X, param[0], param[1]))
FUNCTION(cpu_f_square, (X * X))
FUNCTION(cpu_f_root, sqrtf(X))
FUNCTION(cpu_f_reciprocal, 1 / X)
FUNCTION(cpu_f_divide_by, X / param[0])
FUNCTION(cpu_f_select, X != 0 ? Z : c[i])
FUNCTION(cpu_f_is_true, X != 0 ? 1 : 0)

#define STATIC(name, expression) static FUNCTION(name, expression)

STATIC(negative, -X)
STATIC(absolute, fabsf(X))
STATIC(sign, X > 0 ? 1 : X < 0 ? -1 : X)
STATIC(up, ceilf(X))
STATIC(down, floorf(X))
STATIC(nearest, nearbyintf(X))
STATIC(relu, X < 0 ? 0 : X)
STATIC(leaky_relu, X < 0 ? param[0] * X : X)
STATIC(prelu, X < 0 ? Z * X : X)
STATIC(thresholded_relu, X > param[0] ? X : 0)
STATIC(equal, X == Z ? 1 : 0)
STATIC(less, X < Z ? 1 : 0)
STATIC(less_or_equal, X <= Z ? 1 : 0)
STATIC(greater, X > Z ? 1 : 0)
STATIC(greater_or_equal, X >= Z ? 1 : 0)
STATIC(conjunction, X != 0 && Z != 0 ? 1 : 0)
STATIC(disjunction, X != 0 || Z != 0 ? 1 : 0)
STATIC(difference, (X != 0) != (Z != 0) ? 1 : 0)
STATIC(negation, X != 0 ? 0 : 1)
STATIC(is_nan, X != X ? 1 : 0)

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

cpu_function_t* cpu_vector_function(cpu_vmath_id_t id) { return vectors[id][CPU_V_FLOAT32]; }

cpu_function_t* cpu_function_before(cpu_function_t* f, assay_type_t type) {
  if (type != ASSAY_TYPE_FLOAT16 && type != ASSAY_TYPE_BFLOAT16) return f;
  for (int i = 0; i < CPU_V_COUNT; i++)
    if (vectors[i][CPU_V_FLOAT32] == f)
      return vectors[i][type == ASSAY_TYPE_FLOAT16 ? CPU_V_FLOAT16 : CPU_V_BFLOAT16];
  return f;
}

cpu_function_t* cpu_short_function(cpu_function_t* f) {
  return f == FLOAT32_SWISH        ? FLOAT32_SHORT_SWISH
         : f == FLOAT32_HARD_SWISH ? FLOAT32_SHORT_HARD_SWISH
         : f == FLOAT32_GELU       ? FLOAT32_SHORT_GELU
         : f == FLOAT32_GELU_TANH  ? FLOAT32_SHORT_GELU_TANH
                                   : f;
}

#define MS "com.microsoft"
const cpu_known_t cpu_known_functions[] = {
    {"Add", cpu_f_add, 2, {{0}}, NULL, 1},
    {"Sub", cpu_f_sub, 2, {{0}}, NULL, 1},
    {"Mul", cpu_f_mul, 2, {{0}}, NULL, 1},
    {"Div", cpu_f_quotient, 2, {{0}}, NULL, 4},
    {"Identity", cpu_f_identity, 1, {{0}}, NULL, 1},
    {"Neg", negative, 1, {{0}}, NULL, 1},
    {"Abs", absolute, 1, {{0}}, NULL, 1},
    {"Sign", sign, 1, {{0}}, NULL, 1},
    {"Ceil", up, 1, {{0}}, NULL, 1},
    {"Floor", down, 1, {{0}}, NULL, 1},
    {"Round", nearest, 1, {{0}}, NULL, 1},
    {"Reciprocal", cpu_f_reciprocal, 1, {{0}}, NULL, 4},
    {"Sqrt", cpu_f_root, 1, {{0}}, NULL, 4},
    {"Relu", relu, 1, {{0}}, NULL, 1},
    {"LeakyRelu", leaky_relu, 1, {{"alpha", 0.01F}}, NULL, 1},
    {"PRelu", prelu, 2, {{0}}, NULL, 1},
    {"ThresholdedRelu", thresholded_relu, 1, {{"alpha", 1}}, NULL, 1},
    {"HardSigmoid", FLOAT32_HARD_SIGMOID, 1, {{"alpha", 0.2F}, {"beta", 0.5F}}, NULL, 3},
    {"HardSwish", FLOAT32_HARD_SWISH, 1, {{0}}, NULL, 6},
    {"Exp", FLOAT32_EXP, 1, {{0}}, NULL, 12},
    {"Log", FLOAT32_LOG, 1, {{0}}, NULL, 16},
    {"Sin", FLOAT32_SIN, 1, {{0}}, NULL, 24},
    {"Cos", FLOAT32_COS, 1, {{0}}, NULL, 24},
    {"Tan", FLOAT32_TAN, 1, {{0}}, NULL, 28},
    {"Asin", FLOAT32_ASIN, 1, {{0}}, NULL, 24},
    {"Acos", FLOAT32_ACOS, 1, {{0}}, NULL, 24},
    {"Atan", FLOAT32_ATAN, 1, {{0}}, NULL, 32},
    {"Sinh", FLOAT32_SINH, 1, {{0}}, NULL, 28},
    {"Cosh", FLOAT32_COSH, 1, {{0}}, NULL, 24},
    {"Asinh", FLOAT32_ASINH, 1, {{0}}, NULL, 60},
    {"Acosh", FLOAT32_ACOSH, 1, {{0}}, NULL, 48},
    {"Atanh", FLOAT32_ATANH, 1, {{0}}, NULL, 40},
    {"Erf", FLOAT32_ERF, 1, {{0}}, NULL, 24},
    {"Tanh", FLOAT32_TANH, 1, {{0}}, NULL, 24},
    {"Sigmoid", FLOAT32_SIGMOID, 1, {{0}}, NULL, 16},
    {"Softplus", FLOAT32_SOFTPLUS, 1, {{0}}, NULL, 32},
    {"Softsign", FLOAT32_SOFTSIGN, 1, {{0}}, NULL, 6},
    {"Elu", FLOAT32_ELU, 1, {{"alpha", 1}}, NULL, 20},
    {"Celu", FLOAT32_CELU, 1, {{"alpha", 1}}, NULL, 20},
    {"Selu",
     FLOAT32_SELU,
     1,
     {{"alpha", 1.67326319217681884765625F}, {"gamma", 1.05070102214813232421875F}},
     NULL,
     20},
    {"Mish", FLOAT32_MISH, 1, {{0}}, NULL, 24},
    {"Swish", FLOAT32_SWISH, 1, {{"alpha", 1}}, NULL, 18},
    {"QuickGelu", FLOAT32_SWISH, 1, {{"alpha", 1.702F}}, MS, 18},
    {"Gelu", FLOAT32_GELU, 1, {{0}}, MS, 40},
    {"Equal", equal, 2, {{0}}, NULL, 1},
    {"Less", less, 2, {{0}}, NULL, 1},
    {"LessOrEqual", less_or_equal, 2, {{0}}, NULL, 1},
    {"Greater", greater, 2, {{0}}, NULL, 1},
    {"GreaterOrEqual", greater_or_equal, 2, {{0}}, NULL, 1},
    {"And", conjunction, 2, {{0}}, NULL, 1},
    {"Or", disjunction, 2, {{0}}, NULL, 1},
    {"Xor", difference, 2, {{0}}, NULL, 1},
    {"Not", negation, 1, {{0}}, NULL, 1},
    {"IsNaN", is_nan, 1, {{0}}, NULL, 1},
    {"Where", cpu_f_select, 3, {{0}}, NULL, 1},
    {NULL, NULL, 0, {{0}}, NULL, 0},
};

cpu_link_kind_t cpu_link_kind(cpu_function_t* f, cpu_vmath_use_t use) {
  // In 16 bits the short ones give the same numbers.
  if (use == CPU_V_FLOAT32 && f != cpu_short_function(f)) return CPU_LINK_CALL;
  static const struct {
    cpu_function_t* f;
    cpu_link_kind_t kind;
  } links[] = {{cpu_f_identity, CPU_LINK_IDENTITY},
               {cpu_f_add, CPU_LINK_ADD},
               {cpu_f_sub, CPU_LINK_SUB},
               {cpu_f_mul, CPU_LINK_MUL},
               {relu, CPU_LINK_RELU},
               {cpu_f_clip, CPU_LINK_CLIP},
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
