#include "backends/cpu/functions.h"

#include <math.h>
#include <stddef.h>

#include "backends/cpu/chain.h"
#include "backends/cpu/vmath.h"
#include "base/target.h"

// Min(max, Max(x, min)), also where min is the larger one; NaN stays, as everywhere here.
static inline float limited(float x, float min, float max) {
  const float above = x < min ? min : x;
  return above > max ? max : above;
}

// By exp(-|x|), which does not overflow: the lower tail goes on into the subnormals.
static inline float logistic(float x) {
  const float e = cpu_exp(-fabsf(x));
  return (x < 0 ? e : 1) / (1 + e);
}

// 2 u of x/2 (1 + tanh(u)), the approximation of Gelu: sqrt(8 / pi) * (x + 0.044715 x^3). Where x^3
// overflows, the sign is what counts.
static inline float gelu_tanh_argument(float x) {
  return x * (1.5957691216F + 0.0713548162726F * (x * x));
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
FUNCTION(cpu_f_cube, (X * X * X))
FUNCTION(cpu_f_root, sqrtf(X))
FUNCTION(cpu_f_reciprocal, 1 / X)
FUNCTION(cpu_f_power, powf(X, Z))
FUNCTION(cpu_f_divide_by, X / param[0])
FUNCTION(cpu_f_gelu, cpu_gelu(X))
FUNCTION(cpu_f_gelu_tanh, cpu_gated(X, gelu_tanh_argument(X)))
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
STATIC(hard_sigmoid, limited(param[0] * X + param[1], 0, 1))
// Its limit at -infinity, as the evaluator has it: no product of infinity and 0.
STATIC(hard_swish, X <= -3 ? -0.0F : X * limited(X * (1.0F / 6) + 0.5F, 0, 1))
STATIC(exponential, cpu_exp(X))
STATIC(logarithm, cpu_log(X))
STATIC(sine, sinf(X))
STATIC(cosine, cosf(X))
STATIC(error_function, cpu_erf(X))
STATIC(hyperbolic_tangent, cpu_tanh(X))
STATIC(plain_sigmoid, logistic(X))
STATIC(softplus, X != X ? X : (X > 0 ? X : 0) + cpu_log1p(cpu_exp(-fabsf(X))))
STATIC(softsign, isinf(X) ? copysignf(1, X) : X / (1 + fabsf(X)))
STATIC(elu, X < 0 ? param[0] * cpu_expm1(X) : X)
STATIC(celu, X < 0 ? param[0] * cpu_expm1(X / param[0]) : X)
STATIC(selu, X > 0 ? param[1] * X : param[1] * (param[0] * (X != X ? X : cpu_expm1(X))))
STATIC(mish, cpu_mish(X))
STATIC(plain_swish, param[0] == 0 ? X / 2 : cpu_gated(X, param[0] * X))
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

// Those that chains have must have one set of bits.
static void sigmoid(const float* a, const float* b, const float* c, const float* param, int64_t n,
                    float* y) {
  if (!cpu_chain_sigmoid(a, n, y)) plain_sigmoid(a, b, c, param, n, y);
}
static void swish(const float* a, const float* b, const float* c, const float* param, int64_t n,
                  float* y) {
  if (!cpu_chain_swish(a, param[0], n, y)) plain_swish(a, b, c, param, n, y);
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
    {"HardSigmoid", hard_sigmoid, 1, {{"alpha", 0.2F}, {"beta", 0.5F}}, NULL, 3},
    {"HardSwish", hard_swish, 1, {{0}}, NULL, 6},
    {"Exp", exponential, 1, {{0}}, NULL, 12},
    {"Log", logarithm, 1, {{0}}, NULL, 16},
    {"Sin", sine, 1, {{0}}, NULL, 100},
    {"Cos", cosine, 1, {{0}}, NULL, 100},
    {"Erf", error_function, 1, {{0}}, NULL, 24},
    {"Tanh", hyperbolic_tangent, 1, {{0}}, NULL, 24},
    {"Sigmoid", sigmoid, 1, {{0}}, NULL, 16},
    {"Softplus", softplus, 1, {{0}}, NULL, 32},
    {"Softsign", softsign, 1, {{0}}, NULL, 6},
    {"Elu", elu, 1, {{"alpha", 1}}, NULL, 20},
    {"Celu", celu, 1, {{"alpha", 1}}, NULL, 20},
    {"Selu",
     selu,
     1,
     {{"alpha", 1.67326319217681884765625F}, {"gamma", 1.05070102214813232421875F}},
     NULL,
     20},
    {"Mish", mish, 1, {{0}}, NULL, 24},
    {"Swish", swish, 1, {{"alpha", 1}}, NULL, 18},
    {"QuickGelu", swish, 1, {{"alpha", 1.702F}}, MS, 18},
    {"Gelu", cpu_f_gelu, 1, {{0}}, MS, 40},
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

cpu_link_kind_t cpu_link_kind(cpu_function_t* f) {
  static const struct {
    cpu_function_t* f;
    cpu_link_kind_t kind;
  } links[] = {{cpu_f_identity, CPU_LINK_IDENTITY},
               {cpu_f_add, CPU_LINK_ADD},
               {cpu_f_sub, CPU_LINK_SUB},
               {cpu_f_mul, CPU_LINK_MUL},
               {relu, CPU_LINK_RELU},
               {cpu_f_clip, CPU_LINK_CLIP},
               {hard_swish, CPU_LINK_HARD_SWISH},
               {hard_sigmoid, CPU_LINK_HARD_SIGMOID},
               {sigmoid, CPU_LINK_SIGMOID},
               {swish, CPU_LINK_SWISH}};
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    if (links[i].f == f) return links[i].kind;
  return CPU_LINK_CALL;
}
