// Conversions and quantization: cast.c, number_text.c, quantize.c, quant.c, trt.c, ms_quant.c, ms_qpool.c.
#include "ops/op_case.h"

static void test_cast(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Cast", 1, "to=INT32", {"float[2] 1.9 -1.9"}, {"int32[2] 1 -1"}, NULL},
      {"Cast", 1, "to=INT33", {"float[1] 1"}, {NULL}, "'INT33'"},
      {"Cast", 13, "to=99", {"float[1] 1"}, {NULL}, "attribute to is 99"},
      {"Cast", 13, "to=17", {"float[1] 1"}, {NULL}, "float8e4m3fn"},
      {"Cast", 13, "to=3", {"int16[3] 200 -129 5"}, {"int8[3] -56 127 5"}, NULL},
      {"Cast", 13, "to=13", {"int8[1] -1"}, {"uint64[1] 18446744073709551615"}, NULL},
      {"Cast", 13, "to=7", {"uint64[1] 18446744073709551615"}, {"int64[1] -1"}, NULL},
      {"Cast", 13, "to=7", {"bool[2] 0 1"}, {"int64[2] 0 1"}, NULL},
      {"Cast", 13, "to=9", {"float[4] 0 -0 nan 0.1"}, {"bool[4] 0 0 1 1"}, NULL},
      {"Cast", 13, "to=9", {"uint8[2] 36 0"}, {"bool[2] 1 0"}, NULL},
      {"Cast", 13, "to=1", {"uint64[1] 18446744073709551615"}, {"float[1] 18446744073709551616"},
       NULL},
      // 2^60 + 2^36 + 1: above the middle of two floats, but on it once rounded to float64.
      {"Cast", 13, "to=1", {"int64[2] 1152921573326323713 -1152921573326323713"},
       {"float[2] 1152921642045800448 -1152921642045800448"}, NULL},
      {"Cast", 13, "to=6", {"double[3] 3e9 -3e9 nan"}, {"int32[3] -2147483648 -2147483648 -2147483648"},
       NULL},
      {"Cast", 13, "to=2", {"double[3] -1 300 1e20"}, {"uint8[3] 255 44 0"}, NULL},
      {"Cast", 13, "to=13", {"double[4] -1 1e19 2e19 -1e30"},
       {"uint64[4] 18446744073709551615 10000000000000000000 0 9223372036854775808"}, NULL},
      {"Cast", 21, "to=22", {"float[3] 8 -9 7.9"}, {"int4[3] -8 7 7"}, NULL},
      {"Cast", 19, "to=17", {"float[4] 1e9 -inf nan 17"}, {"float8e4m3fn[4] 448 -448 nan 16"}, NULL},
      {"Cast", 19, "to=17 saturate=0", {"float[2] 1e9 -inf"}, {"float8e4m3fn[2] nan nan"}, NULL},
      {"Cast", 19, "to=19 saturate=0", {"float[2] 1e9 -inf"}, {"float8e5m2[2] inf -inf"}, NULL},
      {"Cast", 23, "to=23", {"float[4] 9 -inf nan 0.25"}, {"float4e2m1[4] 6 -6 0 0"}, NULL},
      {"Cast", 24, "to=24", {"float[4] 0 1.1 inf 1e-45"},
       {"float8e8m0[4] 5.877e-39 2 1.7014118346046923e38 5.877e-39"}, NULL},
      {"Cast", 24, "to=24 round_mode=nearest saturate=0", {"float[4] 0 1.5 inf 1.4"},
       {"float8e8m0[4] nan 2 nan 1"}, NULL},
      {"Cast", 24, "to=24 round_mode=down", {"float[2] 1.9 0.9"}, {"float8e8m0[2] 1 0.5"}, NULL},
      {"Cast", 24, "to=24 round_mode=odd", {"float[1] 1.9"}, {NULL}, "round_mode"},
      {"CastLike", 19, NULL, {"float[2] 1.5 -2.5", "int8[0]"}, {"int8[2] 1 -2"}, NULL},
      {"CastLike", 15, NULL, {"float[] 1.5", "string[1] x"}, {"string[] 1.5"}, NULL},
      {"BitCast", 26, "to=6", {"float[2] 1 -2"}, {"int32[2] 1065353216 -1073741824"}, NULL},
      {"BitCast", 26, "to=1", {"uint32[1] 1065353216"}, {"float[1] 1"}, NULL},
      {"BitCast", 26, "to=22", {"uint4[3] 15 8 7"}, {"int4[3] -1 -8 7"}, NULL},
      {"BitCast", 26, "to=7", {"complex64[1] 1+0"}, {"int64[1] 1065353216"}, NULL},
      {"BitCast", 26, "to=7", {"float[1] 1"}, {NULL}, "number of bits"},
      {"BitCast", 26, "to=2", {"float8e4m3fn[2] 1 -448"}, {"uint8[2] 56 254"}, NULL},
  };
  OP_CASE_RUN(rows);
}

static void test_cast_strings(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Cast", 9, "to=1", {"string[8] 1.5 -2e3 INF -inf NaN +4 .5 1E8"},
       {"float[8] 1.5 -2000 inf -inf nan 4 0.5 100000000"}, NULL},
      {"Cast", 9, "to=7", {"string[4] 15 -9223372036854775808 100.5 +7"},
       {"int64[4] 15 -9223372036854775808 100 7"}, NULL},
      {"Cast", 9, "to=13", {"string[1] 18446744073709551615"}, {"uint64[1] 18446744073709551615"},
       NULL},
      {"Cast", 9, "to=9", {"string[4] True false 0 2.5"}, {"bool[4] 1 0 0 1"}, NULL},
      {"Cast", 9, "to=1", {"string[1] Hello"}, {NULL}, "'Hello', which is no number"},
      {"Cast", 9, "to=1", {"string[1] 0x10"}, {NULL}, "no number"},
      {"Cast", 9, "to=1", {"string[1] 1e"}, {NULL}, "no number"},
      {"Cast", 9, "to=6", {"string[1] ''"}, {NULL}, "no number"},
      {"Cast", 9, "to=8", {"float[7] 0.1 1 -2.25 100000 1e-05 1e20 314.15926"},
       {"string[7] 0.1 1.0 -2.25 100000.0 1e-05 1e+20 314.15927"}, NULL},
      {"Cast", 9, "to=8", {"double[7] 0.1 -0 1e16 0.0001 5e-324 inf nan"},
       {"string[7] 0.1 -0.0 1e+16 0.0001 5e-324 INF NaN"}, NULL},
      {"Cast", 9, "to=8", {"float16[2] 0.1 65504"}, {"string[2] 0.1 65500.0"}, NULL},
      {"Cast", 9, "to=8", {"uint64[1] 18446744073709551615"}, {"string[1] 18446744073709551615"},
       NULL},
      {"Cast", 9, "to=8", {"int8[2] -128 0"}, {"string[2] -128 0"}, NULL},
      {"Cast", 9, "to=8", {"bool[2] 0 1"}, {"string[2] False True"}, NULL},
      {"Cast", 13, "to=8", {"string[0]"}, {"string[0]"}, NULL},
  };
  OP_CASE_RUN(rows);
}

static void test_quantize(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"QuantizeLinear", 10, NULL, {"float[6] 0.5 1.5 2.5 -1 300 nan", "float[] 1"},
       {"uint8[6] 0 2 2 0 255 0"}, NULL},
      {"QuantizeLinear", 10, NULL, {"float[3] inf -inf 1", "float[] 2", "int8[] 3"},
       {"int8[3] 127 -128 3"}, NULL},
      {"QuantizeLinear", 13, "axis=0", {"float[2,2] 1 2 3 4", "float[2] 1 2", "uint8[2] 0 10"},
       {"uint8[2,2] 1 2 12 12"}, NULL},
      {"QuantizeLinear", 13, "axis=-1", {"float[2,2] 1 2 3 4", "float[2] 1 2"},
       {"uint8[2,2] 1 1 3 2"}, NULL},
      {"QuantizeLinear", 13, NULL, {"float[3] 1 2 3", "float[3] 1 2 3"}, {"uint8[3] 1 1 1"}, NULL},
      {"QuantizeLinear", 13, NULL, {"float[2,2] 1 2 3 4", "float[3] 1 2 3"}, {NULL}, "scale"},
      {"QuantizeLinear", 13, "axis=5", {"float[2,2] 1 2 3 4", "float[2] 1 2"}, {NULL}, "axis is 5"},
      {"QuantizeLinear", 13, NULL, {"float[2,2] 1 2 3 4", "float[2] 1 2", "uint8[1] 0"}, {NULL},
       "zero point"},
      {"QuantizeLinear", 21, "axis=1 block_size=2",
       {"float[1,5] 1 2 3 4 5", "float[1,3] 1 2 5", "int4[1,3] 0 1 2"}, {"int4[1,5] 1 2 3 3 3"}, NULL},
      {"QuantizeLinear", 21, "axis=0 block_size=2", {"float[3,2] 1 2 3 4 5 6", "float[2,2] 1 2 5 3"},
       {"uint8[3,2] 1 1 3 2 1 2"}, NULL},
      {"QuantizeLinear", 21, "axis=1 block_size=2", {"float[1,5] iota", "float[1,2] 1 2"}, {NULL},
       "block_size 2"},
      {"QuantizeLinear", 21, "block_size=-2", {"float[1,5] iota", "float[1,2] 1 2"}, {NULL}, "block_size"},
      {"QuantizeLinear", 21, "output_dtype=22", {"float[2] 100 -100", "float[] 1"}, {"int4[2] 7 -8"},
       NULL},
      {"QuantizeLinear", 21, "output_dtype=3", {"float[1] 1", "float[] 1", "uint8[] 1"}, {NULL},
       "output_dtype"},
      {"QuantizeLinear", 19, NULL, {"float[3] 1000 -1000 17", "float[] 1", "float8e4m3fn[] 0"},
       {"float8e4m3fn[3] 448 -448 16"}, NULL},
      {"QuantizeLinear", 19, "saturate=0", {"float[2] 1000 3", "float[] 1", "float8e4m3fn[] 0"},
       {"float8e4m3fn[2] nan 3"}, NULL},
      {"QuantizeLinear", 24, "output_dtype=17", {"float[2] 3 6", "float8e8m0[] 2"},
       {"float8e4m3fn[2] 1.5 3"}, NULL},
      {"QuantizeLinear", 10, NULL, {"int32[2] 5 -7", "float[] 2", "int8[] 0"}, {"int8[2] 2 -4"}, NULL},
      {"QuantizeLinear", 10, NULL, {"float[0,3]", "float[] 2"}, {"uint8[0,3]"}, NULL},
      // 1/3 in float16 is 0.33325: 99.975... steps become 100, and 5 / 0.33325 = 15.004.
      {"QuantizeLinear", 21, NULL, {"float16[2] 33.3125 5", "float16[] 0.333251953125"},
       {"uint8[2] 100 15"}, NULL},
      {"DequantizeLinear", 10, NULL, {"uint8[3] 0 128 255", "float[] 2", "uint8[] 128"},
       {"float[3] -256 0 254"}, NULL},
      {"DequantizeLinear", 10, NULL, {"int32[2] 1000000 -1", "float[] 0.5"}, {"float[2] 500000 -0.5"},
       NULL},
      {"DequantizeLinear", 13, "axis=0", {"int8[2,1] 4 4", "float[2] 1 2", "int8[2] 0 1"},
       {"float[2,1] 4 6"}, NULL},
      {"DequantizeLinear", 21, "axis=-1 block_size=2", {"int4[1,3] 1 2 3", "float[1,2] 1 10"},
       {"float[1,3] 1 2 30"}, NULL},
      {"DequantizeLinear", 23, "output_dtype=10", {"int8[1] 3", "float[] 0.5"}, {"float16[1] 1.5"},
       NULL},
      {"DequantizeLinear", 24, NULL, {"float4e2m1[2] 6 -0.5", "float8e8m0[] 2"}, {NULL}, "the output must"},
      {"DequantizeLinear", 24, "output_dtype=1", {"float4e2m1[2] 6 -0.5", "float8e8m0[] 2"},
       {"float[2] 12 -1"}, NULL},
      {"DynamicQuantizeLinear", 11, NULL, {"float[3] -1 0 1.55"},
       {"uint8[3] 0 100 255", "float[] 0.01", "uint8[] 100"}, NULL},
      {"DynamicQuantizeLinear", 11, NULL, {"float[2] 0 0"}, {"uint8[2] 0 0", "float[] 1", "uint8[] 0"},
       NULL},
      {"com.microsoft.QuantizeLinear", 1, NULL, {"float[2] 1 3", "float[] 2", "uint16[] 1000"},
       {"uint16[2] 1000 1002"}, NULL},
      {"com.microsoft.DequantizeLinear", 1, "axis=1", {"uint8[1,2] 4 4", "float[2] 1 2", "uint8[2] 1 2"},
       {"float[1,2] 3 4"}, NULL},
  };
  OP_CASE_RUN(rows);
}

static void test_trt(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"trt.TRT_FP8QuantizeLinear", 1, NULL, {"float16[2] 1000 3", "float[] 2"},
       {"float8e4m3fn[2] 448 1.5"}, NULL},
      {"TRT_FP8DequantizeLinear", 17, NULL, {"uint8[2] 56 254", "float[] 2"}, {"float[2] 2 -896"}, NULL},
      {"trt.TRT_INT4DequantizeLinear", 1, "axis=0 block_size=2",
       {"int4[3,1] 1 2 -8", "float16[2,1] 2 10"}, {"float16[3,1] 2 4 -80"}, NULL},
      {"trt.TRT_INT4QuantizeLinear", 1, NULL, {"float[2] 9 -9", "float[] 1"}, {"int4[2] 7 -8"}, NULL},
      {"trt.DequantizeLinear", 1, "axis=-1 block_size=2",
       {"float4e2m1[1,3] 6 1 -3", "float8e4m3fn[1,2] 2 4"}, {"float[1,3] 12 2 -12"}, NULL},
      {"trt.TRT_FP4DynamicQuantize", 1, "axis=-1 block_size=2",
       {"float[1,5] 6 -3 0 0 12", "float[] 0.5"},
       {"float4e2m1[1,5] 6 -3 0 0 6", "float8e4m3fn[1,3] 2 0 4"}, NULL},
      {"trt.TRT_MXFP8DynamicQuantize", 1, "block_size=2", {"float[1,4] 448 1 449 1"},
       {"float8e4m3fn[1,4] 448 1 224 0.5", "float8e8m0[1,2] 1 2"}, NULL},
      {"trt.TRT_MXFP8DequantizeLinear", 1, "block_size=2", {"uint8[1,3] 56 56 184", "uint8[1,2] 128 126"},
       {"float[1,3] 2 2 -0.5"}, NULL},
      {"trt.TRT_FP4DynamicQuantize", 1, "block_size=0", {"float[2] 1 1"}, {"float[0]", "float[0]"}, "block_size"},
  };
  OP_CASE_RUN(rows);
}

#define ONE "float[] 1"

static void test_ms(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"com.microsoft.QLinearAdd", 1, NULL,
       {"uint8[2,1] 12 20", ONE, "uint8[] 10", "uint8[2] 1 2", "float[] 10", "-", "float[] 2",
        "uint8[] 100"},
       {"uint8[2,2] 106 111 110 115"}, NULL},
      {"com.microsoft.QLinearMul", 1, NULL,
       {"int8[2] 2 -3", ONE, "-", "int8[] 50", ONE, "-", ONE}, {"int8[2] 100 -128"}, NULL},
      {"com.microsoft.QLinearSigmoid", 1, NULL, {"int8[2] 0 127", ONE, "-", "float[] 0.00390625", "int8[] -128"},
       {"int8[2] 0 127"}, NULL},
      {"com.microsoft.QLinearLeakyRelu", 1, "alpha=0.5", {"int8[2] -8 8", ONE, "-", ONE},
       {"int8[2] -4 8"}, NULL},
      {"com.microsoft.QLinearConcat", 1, "axis=1",
       {ONE, "uint8[] 0", "uint8[2,1] 1 2", "float[] 2", "uint8[] 0", "uint8[2,2] 1 2 3 4", ONE, "uint8[] 1"},
       {"uint8[2,3] 2 0 1 4 2 3"}, NULL},
      {"com.microsoft.QLinearSoftmax", 1, "opset=13 axis=0",
       {"uint8[2,2] 1 200 1 0", ONE, "uint8[] 0", "float[] 0.00390625", "uint8[] 0"},
       {"uint8[2,2] 128 255 128 0"}, NULL},
      {"com.microsoft.QLinearSoftmax", 1, "opset=11 axis=1",
       {"uint8[1,2,2] 7 7 7 7", ONE, "-", "float[] 0.00390625", "uint8[] 0"}, {"uint8[1,2,2] 64 64 64 64"},
       NULL},
      {"com.microsoft.QLinearReduceMean", 1, "axes=-1,0 keepdims=0",
       {"uint8[2,3,2] 0 2 10 12 20 22 4 6 14 16 24 26", ONE, "uint8[] 0", ONE, "uint8[] 1"},
       {"uint8[3] 4 14 24"}, NULL},
      {"com.microsoft.QLinearReduceMean", 1, "axes=3 keepdims=1",
       {"uint8[2,3] iota", ONE, "uint8[] 0", ONE}, {NULL}, "axes"},
      {"com.microsoft.QLinearGlobalAveragePool", 1, NULL,
       {"uint8[1,2,2] 1 3 5 9", ONE, "uint8[] 0", ONE, "uint8[] 0"}, {"uint8[1,2,1] 2 7"}, NULL},
      {"com.microsoft.QLinearGlobalAveragePool", 1, "channels_last=1",
       {"uint8[1,2,2] 1 3 5 9", ONE, "uint8[] 0", ONE, "uint8[] 0"}, {"uint8[1,1,2] 3 6"}, NULL},
      {"com.microsoft.QLinearAveragePool", 1, "kernel_shape=2 pads=1,0",
       {"uint8[1,1,3] 2 4 8", ONE, "uint8[] 0", ONE, "uint8[] 0"}, {"uint8[1,1,3] 2 3 6"}, NULL},
      {"com.microsoft.QLinearAveragePool", 1, "kernel_shape=2 pads=1,0 count_include_pad=1",
       {"uint8[1,1,3] 2 4 8", ONE, "uint8[] 0", ONE, "uint8[] 0"}, {"uint8[1,1,3] 1 3 6"}, NULL},
      {"com.microsoft.QLinearAveragePool", 1, "kernel_shape=2 channels_last=1",
       {"uint8[1,3,2] 2 10 4 20 8 40", ONE, "uint8[] 0", ONE, "uint8[] 0"}, {"uint8[1,2,2] 3 15 6 30"}, NULL},
  };
  OP_CASE_RUN(rows);
  // Nine inputs do not fit a row: QLinearWhere is tested against onnxruntime's results only.
}

// Truth: quotients are exact to float64, floats of 16 bits are not rounded, and 'unquantized'
// passes values through.
static void run_truth(const op_case_t* row, bool unquantized, double* out, assay_type_t* out_type) {
  assay_tensor_t* in[OP_CASE_VALUES] = {NULL};
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  size_t n = op_case_count(row->in);
  for (size_t i = 0; i < n; i++) in[i] = op_case_tensor(row->in[i]);
  assay_model_t* m = op_case_model(row, OP_CASE_STATIC, in, values);
  assay_machine_t* machine = NULL;
  op_case_ok(assay_infer_model(m));
  const assay_machine_config_t config = {.unquantized = unquantized, .keep_all = true};
  op_case_ok(assay_machine_create(m, &config, &machine));
  for (size_t i = 0; i < n; i++) assay_machine_set(machine, values[i], in[i]);
  op_case_ok(assay_machine_run(machine));
  const assay_tensor_t* t = assay_machine_get(machine, m->graph->outputs[0]);
  *out = t->store == ASSAY_STORE_F64 ? assay_f64(t)[0] : (double)assay_i64(t)[0];
  *out_type = t->type;
  assay_machine_destroy(machine);
  assay_model_release(m);
  for (size_t i = 0; i < n; i++) assay_tensor_release(in[i]);
}

static void test_truth(void** state) {
  (void)state;
  static const struct {
    op_case_t row;
    bool unquantized;
    double value;
    assay_type_t type;
  } rows[] = {
      {{"Cast", 13, "to=10", {"double[1] 0.1"}, {NULL}, NULL}, false, 0.1, ASSAY_TYPE_FLOAT16},
      {{"Cast", 19, "to=17", {"double[1] 0.1"}, {NULL}, NULL}, false, 0.1015625, ASSAY_TYPE_FLOAT8E4M3FN},
      {{"Cast", 19, "to=17", {"double[1] 0.1"}, {NULL}, NULL}, true, 0.1, ASSAY_TYPE_FLOAT8E4M3FN},
      // A hair above the tie: in fp32 the quotient is 2.5.
      {{"QuantizeLinear", 13, NULL, {"float[1] 2.5000000001", "float[] 1"}, {NULL}, NULL}, false, 3,
       ASSAY_TYPE_UINT8},
      {{"QuantizeLinear", 13, NULL, {"float[1] 2.7", "float[] 1"}, {NULL}, NULL}, true, 2.7,
       ASSAY_TYPE_FLOAT},
      {{"DequantizeLinear", 13, NULL, {"uint8[1] 3", "float[] 0.1"}, {NULL}, NULL}, true,
       3 * 0.1, ASSAY_TYPE_FLOAT},
      {{"DynamicQuantizeLinear", 11, NULL, {"float[1] 2.7"}, {"float[0]", "float[0]", "float[0]"}, NULL}, true, 2.7,
       ASSAY_TYPE_FLOAT},
      {{"com.microsoft.QLinearLeakyRelu", 1, "alpha=0.5", {"int8[1] -3", "float[] 0.25", "int8[] 0", ONE},
        {NULL}, NULL},
       true, -0.375, ASSAY_TYPE_FLOAT},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double value;
    assay_type_t type;
    run_truth(&rows[i].row, rows[i].unquantized, &value, &type);
    if (value != rows[i].value || type != rows[i].type)
      fail_msg("row %zu: %.17g (%s)", i, value, assay_type_name(type));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cast), cmocka_unit_test(test_cast_strings),
      cmocka_unit_test(test_quantize), cmocka_unit_test(test_trt), cmocka_unit_test(test_ms),
      cmocka_unit_test(test_truth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
