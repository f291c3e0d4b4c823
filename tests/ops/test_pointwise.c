// Pointwise operators: unary.c, activation.c, binary.c, logic.c, variadic.c. Values follow from the
// operators' texts; where these leave something open, from the comments beside the code.
#include "ops/op_case.h"

static void test_unary(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Abs", 13, NULL, {"int8[4] -128 -1 0 127"}, {"int8[4] -128 1 0 127"}, NULL},
      {"Abs",
       13,
       NULL,
       {"uint64[2] 18446744073709551615 1"},
       {"uint64[2] 18446744073709551615 1"},
       NULL},
      {"Abs", 6, NULL, {"float[] -3"}, {"float[] 3"}, NULL},
      {"Neg", 13, NULL, {"int16[2] -32768 5"}, {"int16[2] -32768 -5"}, NULL},
      {"Neg", 13, NULL, {"float[0,2]"}, {"float[0,2]"}, NULL},
      {"Sign", 13, NULL, {"uint64[2] 18446744073709551615 0"}, {"uint64[2] 1 0"}, NULL},
      {"Sign", 9, NULL, {"float[4] -inf 0 nan 2"}, {"float[4] -1 0 nan 1"}, NULL},
      {"Round", 11, NULL, {"float[5] 0.5 1.5 -2.5 -0.4 inf"}, {"float[5] 0 2 -2 -0 inf"}, NULL},
      {"Ceil", 13, NULL, {"float[2] -1.5 1.5"}, {"float[2] -1 2"}, NULL},
      {"Not", 1, NULL, {"bool[2] 0 1"}, {"bool[2] 1 0"}, NULL},
      {"BitwiseNot", 18, NULL, {"uint8[2] 0 15"}, {"uint8[2] 255 240"}, NULL},
      {"BitwiseNot", 18, NULL, {"int32[2] 0 -1"}, {"int32[2] -1 0"}, NULL},
      {"IsNaN", 20, NULL, {"float8e4m3fn[2] nan 1"}, {"bool[2] 1 0"}, NULL},
      {"IsInf", 10, NULL, {"float[3] inf -inf nan"}, {"bool[3] 1 1 0"}, NULL},
      {"IsInf", 10, "detect_negative=0", {"float[2] inf -inf"}, {"bool[2] 1 0"}, NULL},
      {"IsInf", 10, "detect_positive=0", {"float[2] inf -inf"}, {"bool[2] 0 1"}, NULL},
      {"IsInf", 10, "detect_positive=0 detect_negative=0", {"float[1] inf"}, {"bool[1] 0"}, NULL},
      {"Sqrt", 13, NULL, {"int32[1] 4"}, {NULL}, "takes"},
  };
  OP_CASE_RUN(rows);
}

static void test_activations(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Relu", 14, NULL, {"int32[3] -2 0 2"}, {"int32[3] 0 0 2"}, NULL},
      {"Relu", 6, NULL, {"float[4] -inf inf nan -1"}, {"float[4] 0 inf nan 0"}, NULL},
      {"LeakyRelu", 16, "alpha=0.5", {"float[3] -4 4 nan"}, {"float[3] -2 4 nan"}, NULL},
      {"ThresholdedRelu", 10, "alpha=2", {"float[3] 2 2.5 -9"}, {"float[3] 0 2.5 0"}, NULL},
      {"Elu", 22, "alpha=2", {"float[3] -inf 1 0"}, {"float[3] -2 1 0"}, NULL},
      {"Celu", 12, "alpha=2", {"float[3] -inf 1 0"}, {"float[3] -2 1 0"}, NULL},
      {"Selu", 22, "alpha=1 gamma=2", {"float[2] -inf 1"}, {"float[2] -2 2"}, NULL},
      {"HardSigmoid",
       22,
       "alpha=0.5 beta=0.25",
       {"float[5] -inf inf nan 0 1"},
       {"float[5] 0 1 nan 0.25 0.75"},
       NULL},
      {"HardSwish",
       22,
       NULL,
       {"float[5] -inf inf -3 3 1"},
       {"float[5] -0 inf -0 3 0.666666667"},
       NULL},
      {"Softsign", 22, NULL, {"float[4] -inf inf 1 nan"}, {"float[4] -1 1 0.5 nan"}, NULL},
      {"Softplus", 22, NULL, {"float[4] -inf inf 200 nan"}, {"float[4] 0 inf 200 nan"}, NULL},
      {"Mish", 22, NULL, {"float[4] -inf inf 200 nan"}, {"float[4] -0 inf 200 nan"}, NULL},
      {"Gelu", 20, NULL, {"float[4] -inf inf 200 nan"}, {"float[4] -0 inf 200 nan"}, NULL},
      {"Gelu",
       20,
       "approximate=tanh",
       {"float[4] -inf inf 200 nan"},
       {"float[4] -0 inf 200 nan"},
       NULL},
      {"Gelu", 20, "approximate=fast", {"float[1] 1"}, {NULL}, "'none' or 'tanh'"},
      {"Swish", 24, "alpha=0", {"float[3] -inf inf 2"}, {"float[3] -inf inf 1"}, NULL},
      {"Swish", 24, "alpha=-1", {"float[3] -inf inf 0"}, {"float[3] -inf 0 0"}, NULL},
      {"SwiGLU", 28, NULL, {"float[2] 0 200", "float[2] 7 3"}, {"float[2] 0 600"}, NULL},
      {"SwiGLU", 28, NULL, {"float[2] 0 2", "float[1] 7"}, {NULL}, "the same"},
      {"Shrink", 9, "lambd=1.5 bias=1.5", {"int32[5] -6 -1 0 1 6"}, {"int32[5] -4 0 0 0 4"}, NULL},
      {"Shrink", 9, "lambd=0.5 bias=1e30", {"int8[2] -6 6"}, {"int8[2] 127 -128"}, NULL},
      {"Shrink", 9, "bias=0.25", {"float[3] -1 0.5 1"}, {"float[3] -0.75 0 0.75"}, NULL},
      {"Shrink",
       9,
       "bias=1",
       {"uint64[2] 18446744073709551615 0"},
       {"uint64[2] 18446744073709551614 0"},
       NULL},
  };
  OP_CASE_RUN(rows);
}

static void test_arithmetic(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Add", 14, NULL, {"int8[2] 127 -128", "int8[2] 1 -1"}, {"int8[2] -128 127"}, NULL},
      {"Add",
       7,
       NULL,
       {"float[2,1,2] 1 2 3 4", "float[3,1] 10 20 30"},
       {"float[2,3,2] 11 12 21 22 31 32 13 14 23 24 33 34"},
       NULL},
      {"Add", 7, NULL, {"float[0,3]", "float[1]  1"}, {"float[0,3]"}, NULL},
      {"Add", 7, NULL, {"float[] 1", "float[] 2"}, {"float[] 3"}, NULL},
      {"Add", 13, NULL, {"float[2] 1 2", "float[3] 1 2 3"}, {NULL}, "broadcast"},
      {"Sub", 14, NULL, {"uint64[1] 0", "uint64[1] 1"}, {"uint64[1] 18446744073709551615"}, NULL},
      {"Mul", 13, NULL, {"int64[1] 9223372036854775807", "int64[1] 2"}, {"int64[1] -2"}, NULL},
      {"Div",
       14,
       NULL,
       {"int32[4] 7 -7 5 -2147483648", "int32[4] 2 2 0 -1"},
       {"int32[4] 3 -3 0 -2147483648"},
       NULL},
      {"Div",
       13,
       NULL,
       {"int64[1] -9223372036854775808", "int64[1] -1"},
       {"int64[1] -9223372036854775808"},
       NULL},
      {"Div",
       13,
       NULL,
       {"uint64[2] 18446744073709551615 1", "uint64[2] 2 0"},
       {"uint64[2] 9223372036854775807 0"},
       NULL},
      {"Div", 13, NULL, {"float[3] 1 0 -1", "float[] 0"}, {"float[3] inf nan -inf"}, NULL},
      {"Add",
       6,
       "axis=1 broadcast=1",
       {"float[2,3,2] iota", "float[3] 100 200 300"},
       {"float[2,3,2] 100 101 202 203 304 305 106 107 208 209 310 311"},
       NULL},
      {"Mul", 6, "broadcast=1", {"float[2,2] iota", "float[1,1] 3"}, {"float[2,2] 0 3 6 9"}, NULL},
      {"Sub", 1, NULL, {"float[2] 1 2", "float[1] 1"}, {NULL}, "unless broadcast=1"},
      {"Sub", 6, "axis=2 broadcast=1", {"float[2,2] iota", "float[2] iota"}, {NULL}, "axis is 2"},
      {"Sub", 6, "axis=0 broadcast=1", {"float[2,3] iota", "float[3] iota"}, {NULL}, "axis"},
      {"Mod",
       13,
       NULL,
       {"int32[6] 7 -7 7 -7 5 -2147483648", "int32[6] 3 3 -3 -3 0 -1"},
       {"int32[6] 1 2 -2 -1 0 0"},
       NULL},
      {"Mod",
       13,
       "fmod=1",
       {"int32[4] 7 -7 7 -7", "int32[4] 3 3 -3 -3"},
       {"int32[4] 1 -1 1 -1"},
       NULL},
      {"Mod", 10, NULL, {"uint64[1] 18446744073709551615", "uint64[1] 10"}, {"uint64[1] 5"}, NULL},
      {"Mod", 13, NULL, {"float[1] 1", "float[1] 1"}, {NULL}, "fmod must be 1"},
      {"Mod",
       13,
       "fmod=1",
       {"float[3] -7.5 1 inf", "float[3] 2 inf 1"},
       {"float[3] -1.5 1 nan"},
       NULL},
      {"Mod",
       28,
       NULL,
       {"float[6] -7.5 7.5 1 -1 inf 1", "float[6] 2 -2 inf inf 1 0"},
       {"float[6] 0.5 -0.5 1 inf nan nan"},
       NULL},
  };
  OP_CASE_RUN(rows);
}

static void test_pow_and_prelu(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Pow",
       15,
       NULL,
       {"int64[7] 2 -2 1 -1 0 2 3", "int64[7] 10 3 -5 -3 -1 -1 40"},
       {"int64[7] 1024 -8 1 -1 0 0 12157665459056928801"},
       NULL},
      {"Pow", 15, NULL, {"int32[2] 3 2", "float[2] 2 0.5"}, {"int32[2] 9 1"}, NULL},
      {"Pow",
       15,
       NULL,
       {"int32[2] 2 10", "uint8[2] 31 10"},
       {"int32[2] -2147483648 1410065408"},
       NULL},
      {"Pow", 13, NULL, {"float[3] 2 4 -1", "int32[3] -1 0 3"}, {"float[3] 0.5 1 -1"}, NULL},
      {"Pow",
       13,
       NULL,
       {"float[2] 1 -1", "uint64[2] 18446744073709551615 2"},
       {"float[2] 1 1"},
       NULL},
      {"Pow", 7, NULL, {"float[2,1] 2 3", "float[3] 1 2 3"}, {"float[2,3] 2 4 8 3 9 27"}, NULL},
      {"Pow",
       1,
       "broadcast=1",
       {"float[2,2] 1 2 3 4", "float[2] 1 2"},
       {"float[2,2] 1 4 3 16"},
       NULL},
      {"PRelu",
       16,
       NULL,
       {"float[2,3] -1 -2 3 4 -5 nan", "float[2,1] 10 100"},
       {"float[2,3] -10 -20 3 4 -500 nan"},
       NULL},
      {"PRelu", 9, NULL, {"int32[2] -2 2", "int32[] 3"}, {"int32[2] -6 2"}, NULL},
      {"PRelu", 9, NULL, {"uint32[1] 4000000000", "uint32[1] 3"}, {"uint32[1] 4000000000"}, NULL},
      {"PRelu", 7, NULL, {"float[3] 1 2 3", "float[1,3] 1 2 3"}, {NULL}, "slope"},
      {"PRelu",
       6,
       NULL,
       {"float[1,2,2] -1 -2 -3 -4", "float[2] 10 100"},
       {"float[1,2,2] -10 -20 -300 -400"},
       NULL},
      {"PRelu", 1, NULL, {"float[2,2] -1 2 -3 4", "float[1] 2"}, {"float[2,2] -2 2 -6 4"}, NULL},
      {"PRelu", 6, NULL, {"float[1,2] iota", "float[3] iota"}, {NULL}, "one for each channel"},
  };
  OP_CASE_RUN(rows);
}

static void test_logic(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Equal", 19, NULL, {"string[3] a bb ''", "string[1] bb"}, {"bool[3] 0 1 0"}, NULL},
      {"Equal", 13, NULL, {"float[3] nan 1 -0", "float[3] nan 1 0"}, {"bool[3] 0 1 1"}, NULL},
      {"Equal", 7, NULL, {"bool[2] 0 1", "bool[] 1"}, {"bool[2] 0 1"}, NULL},
      {"Less",
       9,
       NULL,
       {"uint64[2] 18446744073709551615 1", "uint64[2] 1 18446744073709551615"},
       {"bool[2] 0 1"},
       NULL},
      {"Less", 9, NULL, {"int64[2] -1 1", "int64[2] 1 -1"}, {"bool[2] 1 0"}, NULL},
      {"LessOrEqual", 16, NULL, {"float[3] 1 2 nan", "float[3] 1 1 1"}, {"bool[3] 1 0 0"}, NULL},
      {"GreaterOrEqual", 12, NULL, {"float[3] 1 2 nan", "float[] 1"}, {"bool[3] 1 1 0"}, NULL},
      {"Greater",
       1,
       "axis=0 broadcast=1",
       {"float[2,2] iota", "float[2] 0 2"},
       {"bool[2,2] 0 1 0 1"},
       NULL},
      {"And", 7, NULL, {"bool[2,1] 0 1", "bool[2] 0 1"}, {"bool[2,2] 0 0 0 1"}, NULL},
      {"Or", 7, NULL, {"bool[2,1] 0 1", "bool[2] 0 1"}, {"bool[2,2] 0 1 1 1"}, NULL},
      {"Xor", 1, NULL, {"bool[2] 0 1", "bool[2] 1 1"}, {"bool[2] 1 0"}, NULL},
      {"BitwiseAnd", 18, NULL, {"int8[2] -1 12", "int8[2] 5 10"}, {"int8[2] 5 8"}, NULL},
      {"BitwiseXor", 18, NULL, {"int8[1] -1", "int8[1] 1"}, {"int8[1] -2"}, NULL},
      {"BitwiseOr",
       18,
       NULL,
       {"uint64[1] 9223372036854775808", "uint64[1] 1"},
       {"uint64[1] 9223372036854775809"},
       NULL},
      {"BitShift",
       11,
       "direction=LEFT",
       {"uint8[3] 255 1 1", "uint8[3] 1 7 8"},
       {"uint8[3] 254 128 0"},
       NULL},
      {"BitShift",
       11,
       "direction=RIGHT",
       {"uint64[3] 18446744073709551615 8 8", "uint64[3] 63 64 18446744073709551615"},
       {"uint64[3] 1 0 0"},
       NULL},
      {"BitShift",
       28,
       "direction=RIGHT",
       {"int8[4] -128 -128 127 -1", "int8[4] 1 8 9 -1"},
       {"int8[4] -64 -1 0 -1"},
       NULL},
      {"BitShift",
       28,
       "direction=LEFT",
       {"int32[2] 1 -1", "int32[2] 31 32"},
       {"int32[2] -2147483648 0"},
       NULL},
      {"BitShift", 11, "direction=UP", {"uint8[1] 1", "uint8[1] 1"}, {NULL}, "'LEFT' or 'RIGHT'"},
  };
  OP_CASE_RUN(rows);
}

static void test_variadic(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Max",
       13,
       NULL,
       {"uint64[2] 18446744073709551615 3", "uint64[2] 1 4"},
       {"uint64[2] 18446744073709551615 4"},
       NULL},
      {"Max", 12, NULL, {"float[2] nan 1", "float[2] 1 nan"}, {"float[2] nan nan"}, NULL},
      {"Min",
       8,
       NULL,
       {"float[2,1] 1 5", "float[2] 3 4", "float[] 2"},
       {"float[2,2] 1 1 2 2"},
       NULL},
      {"Min", 13, NULL, {"int8[1] -128", "int8[1] 127"}, {"int8[1] -128"}, NULL},
      {"Max", 1, NULL, {"float[2] 1 2"}, {"float[2] 1 2"}, NULL},
      {"Max", 6, NULL, {"float[2] 1 2", "float[1] 1"}, {NULL}, "before opset 8"},
      {"Sum",
       13,
       NULL,
       {"float[2] 1 2", "float[] 10", "float[2,1] 100 200"},
       {"float[2,2] 111 112 211 212"},
       NULL},
      {"Sum", 6, NULL, {"float[2] 1 2", "float[2] 1 2"}, {"float[2] 2 4"}, NULL},
      {"Mean", 13, NULL, {"float[2] 1 2", "float[] 4"}, {"float[2] 2.5 3"}, NULL},
      {"Mean", 13, NULL, {"float[0]", "float[1] 4"}, {"float[0]"}, NULL},
      {"Clip", 6, "min=-1 max=1", {"float[4] -5 0.5 5 nan"}, {"float[4] -1 0.5 1 nan"}, NULL},
      {"Clip", 6, NULL, {"float[2] -inf inf"}, {"float[2] -inf inf"}, NULL},
      {"Clip", 13, NULL, {"float[2] -5 5", "-", "float[] 1"}, {"float[2] -5 1"}, NULL},
      {"Clip", 13, NULL, {"float[2] -5 5", "float[] 3", "float[] 1"}, {"float[2] 1 1"}, NULL},
      {"Clip", 11, NULL, {"float[2] -5 5", "float[1] 3"}, {"float[2] 3 5"}, NULL},
      {"Clip", 13, NULL, {"float[2] -5 5", "float[] nan"}, {"float[2] nan nan"}, NULL},
      {"Clip",
       12,
       NULL,
       {"uint64[3] 18446744073709551615 0 5", "uint64[] 3"},
       {"uint64[3] 18446744073709551615 3 5"},
       NULL},
      {"Clip", 12, NULL, {"int8[3] -128 0 127", "int8[] -5", "int8[] 6"}, {"int8[3] -5 0 6"}, NULL},
      {"Clip", 13, NULL, {"float[2] -5 5", "float[2] 3 4"}, {NULL}, "scalar"},
      {"Where",
       16,
       NULL,
       {"bool[2,1] 1 0", "string[2] a b", "string[] c"},
       {"string[2,2] a b c c"},
       NULL},
      {"Where",
       9,
       NULL,
       {"bool[] 1", "complex64[2] 1+2 3-4", "complex64[] 9+9"},
       {"complex64[2] 1+2 3-4"},
       NULL},
      {"Where",
       9,
       NULL,
       {"bool[3] 1 0 1", "int64[] 7", "int64[3] 1 2 3"},
       {"int64[3] 7 2 7"},
       NULL},
      {"Where", 9, NULL, {"bool[3] 1 0 1", "float[2] 1 2", "float[] 1"}, {NULL}, "broadcast"},
  };
  OP_CASE_RUN(rows);
}

// Long tensors go over several threads and blocks: every element must be as if alone.
static void test_long(void** state) {
  (void)state;
  enum { ROWS = 700, COLUMNS = 501 };
  char text[3][64];
  snprintf(text[0], sizeof text[0], "int64[%d,%d] iota", ROWS, COLUMNS);
  snprintf(text[1], sizeof text[1], "int64[%d] iota", COLUMNS);
  snprintf(text[2], sizeof text[2], "int64[%d,1] iota", ROWS);
  for (int b = 1; b <= 2; b++) {
    op_case_t row = {"Sub", 14, NULL, {text[0], text[b]}, {NULL}, NULL};
    assay_tensor_t* in[OP_CASE_VALUES] = {op_case_tensor(text[0]), op_case_tensor(text[b])};
    assay_value_t* values[OP_CASE_VALUES] = {NULL};
    assay_model_t* m = op_case_model(&row, OP_CASE_STATIC, in, values);
    assay_evaluator_t* evaluator = NULL;
    op_case_ok(assay_infer_model(m));
    const assay_evaluator_config_t config = {.keep_all = true};
    op_case_ok(op_case_evaluate(m, &config, 2, values, in, &evaluator));
    const int64_t* z = assay_i64(assay_evaluator_get(evaluator, m->graph->outputs[0]));
    for (int64_t i = 0; i < ROWS; i++)
      for (int64_t k = 0; k < COLUMNS; k++)
        if (z[i * COLUMNS + k] != i * COLUMNS + k - (b == 1 ? k : i))
          fail_msg("%d %d", (int)i, (int)k);
    assay_evaluator_destroy(evaluator);
    assay_model_release(m);
    for (int i = 0; i < 2; i++) assay_tensor_release(in[i]);
  }
}

// Float attributes are float32: left out or written out, epsilon is 9.99999974738e-6, whoever
// defined the operator.
static void test_default_attributes(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"LayerNormalization",
       17,
       NULL,
       {"double[2] -1e-6 1e-6", "double[2] 1e9 1e9"},
       {"double[2] -316227.7541997429 316227.7541997429 ~1"},
       NULL},
      {"LayerNormalization",
       1,
       NULL,
       {"double[2] -1e-6 1e-6", "double[2] 1e9 1e9"},
       {"double[2] -316227.7541997429 316227.7541997429 ~1"},
       NULL},
      {"SimplifiedLayerNormalization",
       1,
       NULL,
       {"double[1] 1e-6", "double[1] 1e9"},
       {"double[1] 316227.7541997429 ~1"},
       NULL},
      {"SimplifiedLayerNormalization",
       1,
       "epsilon=1e-5",
       {"double[1] 1e-6", "double[1] 1e9"},
       {"double[1] 316227.7541997429 ~1"},
       NULL},
  };
  OP_CASE_RUN(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_default_attributes), cmocka_unit_test(test_unary),
      cmocka_unit_test(test_activations),        cmocka_unit_test(test_arithmetic),
      cmocka_unit_test(test_pow_and_prelu),      cmocka_unit_test(test_logic),
      cmocka_unit_test(test_variadic),           cmocka_unit_test(test_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
