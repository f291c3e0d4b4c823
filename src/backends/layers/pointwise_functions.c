// Pointwise functions by number, and under which operator's name layers have them.
#include "backends/layers/pointwise_functions.h"

#include <stddef.h>

#define VMATH(id) (pointwise_function_t)(POINTWISE_VMATH + CPU_V_##id)
#define MS "com.microsoft"
const pointwise_known_t pointwise_known[] = {
    {"Add", POINTWISE_ADD, 2, {{0}}, NULL, 1},
    {"Sub", POINTWISE_SUB, 2, {{0}}, NULL, 1},
    {"Mul", POINTWISE_MUL, 2, {{0}}, NULL, 1},
    {"Div", POINTWISE_QUOTIENT, 2, {{0}}, NULL, 4},
    {"Identity", POINTWISE_IDENTITY, 1, {{0}}, NULL, 1},
    {"Neg", POINTWISE_NEGATIVE, 1, {{0}}, NULL, 1},
    {"Abs", POINTWISE_ABSOLUTE, 1, {{0}}, NULL, 1},
    {"Sign", POINTWISE_SIGN, 1, {{0}}, NULL, 1},
    {"Ceil", POINTWISE_UP, 1, {{0}}, NULL, 1},
    {"Floor", POINTWISE_DOWN, 1, {{0}}, NULL, 1},
    {"Round", POINTWISE_NEAREST, 1, {{0}}, NULL, 1},
    {"Reciprocal", POINTWISE_RECIPROCAL, 1, {{0}}, NULL, 4},
    {"Sqrt", POINTWISE_ROOT, 1, {{0}}, NULL, 4},
    {"Relu", POINTWISE_RELU, 1, {{0}}, NULL, 1},
    {"LeakyRelu", POINTWISE_LEAKY_RELU, 1, {{"alpha", 0.01F}}, NULL, 1},
    {"PRelu", POINTWISE_PRELU, 2, {{0}}, NULL, 1},
    {"ThresholdedRelu", POINTWISE_THRESHOLDED_RELU, 1, {{"alpha", 1}}, NULL, 1},
    {"HardSigmoid", VMATH(HARD_SIGMOID), 1, {{"alpha", 0.2F}, {"beta", 0.5F}}, NULL, 3},
    {"HardSwish", VMATH(HARD_SWISH), 1, {{0}}, NULL, 6},
    {"Exp", VMATH(EXP), 1, {{0}}, NULL, 12},
    {"Log", VMATH(LOG), 1, {{0}}, NULL, 16},
    {"Sin", VMATH(SIN), 1, {{0}}, NULL, 24},
    {"Cos", VMATH(COS), 1, {{0}}, NULL, 24},
    {"Tan", VMATH(TAN), 1, {{0}}, NULL, 28},
    {"Asin", VMATH(ASIN), 1, {{0}}, NULL, 24},
    {"Acos", VMATH(ACOS), 1, {{0}}, NULL, 24},
    {"Atan", VMATH(ATAN), 1, {{0}}, NULL, 32},
    {"Sinh", VMATH(SINH), 1, {{0}}, NULL, 28},
    {"Cosh", VMATH(COSH), 1, {{0}}, NULL, 24},
    {"Asinh", VMATH(ASINH), 1, {{0}}, NULL, 60},
    {"Acosh", VMATH(ACOSH), 1, {{0}}, NULL, 48},
    {"Atanh", VMATH(ATANH), 1, {{0}}, NULL, 40},
    {"Erf", VMATH(ERF), 1, {{0}}, NULL, 24},
    {"Tanh", VMATH(TANH), 1, {{0}}, NULL, 24},
    {"Sigmoid", VMATH(SIGMOID), 1, {{0}}, NULL, 16},
    {"Softplus", VMATH(SOFTPLUS), 1, {{0}}, NULL, 32},
    {"Softsign", VMATH(SOFTSIGN), 1, {{0}}, NULL, 6},
    {"Elu", VMATH(ELU), 1, {{"alpha", 1}}, NULL, 20},
    {"Celu", VMATH(CELU), 1, {{"alpha", 1}}, NULL, 20},
    {"Selu",
     VMATH(SELU),
     1,
     {{"alpha", 1.67326319217681884765625F}, {"gamma", 1.05070102214813232421875F}},
     NULL,
     20},
    {"Mish", VMATH(MISH), 1, {{0}}, NULL, 24},
    {"Swish", VMATH(SWISH), 1, {{"alpha", 1}}, NULL, 18},
    {"QuickGelu", VMATH(SWISH), 1, {{"alpha", 1.702F}}, MS, 18},
    {"Gelu", VMATH(GELU), 1, {{0}}, MS, 40},
    {"Equal", POINTWISE_EQUAL, 2, {{0}}, NULL, 1},
    {"Less", POINTWISE_LESS, 2, {{0}}, NULL, 1},
    {"LessOrEqual", POINTWISE_LESS_OR_EQUAL, 2, {{0}}, NULL, 1},
    {"Greater", POINTWISE_GREATER, 2, {{0}}, NULL, 1},
    {"GreaterOrEqual", POINTWISE_GREATER_OR_EQUAL, 2, {{0}}, NULL, 1},
    {"And", POINTWISE_AND, 2, {{0}}, NULL, 1},
    {"Or", POINTWISE_OR, 2, {{0}}, NULL, 1},
    {"Xor", POINTWISE_XOR, 2, {{0}}, NULL, 1},
    {"Not", POINTWISE_NOT, 1, {{0}}, NULL, 1},
    {"IsNaN", POINTWISE_IS_NAN, 1, {{0}}, NULL, 1},
    {"Where", POINTWISE_SELECT, 3, {{0}}, NULL, 1},
    {NULL, POINTWISE_ADD, 0, {{0}}, NULL, 0},
};

pointwise_function_t pointwise_short(pointwise_function_t f) {
  return f == VMATH(SWISH)        ? VMATH(SHORT_SWISH)
         : f == VMATH(HARD_SWISH) ? VMATH(SHORT_HARD_SWISH)
         : f == VMATH(GELU)       ? VMATH(SHORT_GELU)
         : f == VMATH(GELU_TANH)  ? VMATH(SHORT_GELU_TANH)
                                  : f;
}

cpu_vmath_use_t pointwise_use(assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT16    ? CPU_V_FLOAT16
         : type == ASSAY_TYPE_BFLOAT16 ? CPU_V_BFLOAT16
                                       : CPU_V_FLOAT32;
}
