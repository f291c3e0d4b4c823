// Where inference and evaluation did not agree, or an operator refused what its text allows: found
// by test_agree.c, kept as rows. (Types that are not known, Identity of sequences: every run of
// test_agree.c has them.)
#include "ops/op_case.h"

#define MS(name) "com.microsoft." name

static void types_do_not_depend_on_inference(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {MS("MatMulInteger16"),
       1,
       NULL,
       {"uint16[1,1] 60000", "uint16[1,1] 60000"},
       {"uint32[1,1] 3600000000"},
       NULL},
      {MS("MatMulInteger16"), 1, NULL, {"int16[1,1] -2", "uint16[1,1] 3"}, {"int32[1,1] -6"}, NULL},
      {"LayerNormalization",
       1,
       NULL,
       {"float16[1,2] 1 -1", "float[2] 2 2"},
       {"float[1,2] 1.99999 -1.99999"},
       NULL},
      {MS("GroupQueryAttention"),
       1,
       "num_heads=1 kv_num_heads=1",
       {"float[1,1,8] iota", "float[1,1,8] iota", "float[1,1,8] iota", "float16[1,1,0,8]",
        "float16[1,1,0,8]", "int32[1] 0", "int32[] 1"},
       {"float[1,1,8] iota", "float16[1,1,1,8] iota", "float16[1,1,1,8] iota"},
       NULL},
      {"trt.TRT_FP8DequantizeLinear",
       1,
       NULL,
       {"float8e4m3fn[1] 2", "float16[] 0.5"},
       {"float16[1] 1"},
       NULL},
      {"trt.TRT_MXFP8QuantizeLinear",
       1,
       NULL,
       {"float[1] 3", "float8e8m0[1] 1"},
       {"float8e4m3fn[1] 3", "float8e8m0[1] 1"},
       NULL},
  };
  OP_CASE_RUN(rows);
}

static void what_the_texts_allow(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Erf", 9, NULL, {"int32[3] 0 -7 1"}, {"int32[3] 0 -1 0"}, NULL},
      {"Erf", 9, NULL, {"uint64[1] 18446744073709551615"}, {"uint64[1] 1"}, NULL},
      // The default of `direction` is 'foward' there.
      {"RNN",
       1,
       "hidden_size=1",
       {"float[1,1,1] 1", "float[1,1,1] 1", "float[1,1,1] 0"},
       {"float[1,1,1,1] 0.76159416"},
       NULL},
      {"GRU",
       1,
       "hidden_size=1",
       {"float[1,1,1] 0", "float[1,3,1] 1 1 1", "float[1,3,1] 0 0 0"},
       {"float[1,1,1,1] 0", "float[1,1,1] 0"},
       NULL},
      // B may turn out to be of one element, which fits anywhere.
      {"Sub", 6, "broadcast=1 axis=1", {"float[1] 2", "float[1] 3"}, {"float[1] -1"}, NULL},
      {"Tile",
       1,
       NULL,
       {"float[2,2] 1 2 3 4", "float[] 2", "float[] -2"},
       {"float[4,2] 1 2 3 4 1 2 3 4"},
       NULL},
      {"Tile", 1, NULL, {"float[2,2] 1 2 3 4", "float[] 2", "float[] -9"}, {NULL}, "axis"},
      {"Tile", 1, NULL, {"float[2,2] 1 2 3 4", "float[] 2.5", "float[] 0"}, {NULL}, ""},
      {MS("FusedGemm"), 1, NULL, {"int32[1,1] 1", "int32[1,1] 1"}, {NULL}, "takes float"},
  };
  OP_CASE_RUN(rows);
}

// Ranks that inference refuses, evaluation refuses.
static void ranks(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"Compress", 11, NULL, {"float[2] 1 2", "bool[1,2] 1 0"}, {NULL}, "rank 1 is expected"},
      {"ConstantOfShape", 9, NULL, {"int64[] 2"}, {NULL}, "rank 1 is expected"},
      {"Expand", 13, NULL, {"float[1] 1", "int64[] 2"}, {NULL}, "rank 1 is expected"},
      {"OneHot", 11, NULL, {"int64[1] 1", "int64[] 3", "float[2,1] 0 1"}, {NULL}, ""},
      {"OneHot",
       11,
       NULL,
       {"int64[1] 1", "int64[1,1] 3", "float[2] 0 1"},
       {NULL},
       "rank 0 to 1 is expected"},
      {"Slice", 13, NULL, {"float[2] 1 2", "int64[] 0", "int64[] 1"}, {NULL}, "rank 1 is expected"},
      {"SoftmaxCrossEntropyLoss",
       13,
       NULL,
       {"float[1,2] 1 2", "int64[1] 0", "float[2,1] 1 1"},
       {NULL},
       "rank 1 is expected"},
      {"TensorScatter",
       24,
       NULL,
       {"float[1,1,2,1] 1 2", "float[1,1,1,1] 5", "int64[1,1] 0"},
       {NULL},
       "rank 1 is expected"},
      {"Tile", 13, NULL, {"float[2] 1 2", "int64[] 2"}, {NULL}, "rank 1 is expected"},
  };
  OP_CASE_RUN(rows);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    op_case_run_way(&rows[i], OP_CASE_UNRANKED);
}

// Slice with nothing known but one step: axes are not 0 for that.
static void axes_of_unknown_number(void** state) {
  (void)state;
  static const op_case_t row = {
      "Slice",
      13,
      NULL,
      {"float[2,3] iota", "int64[1] 1", "int64[1] 3", "int64[1] 1", "int64[1] 1"},
      {"float[2,2] 1 2 4 5"},
      NULL};
  assay_tensor_t* in[OP_CASE_VALUES] = {NULL};
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  for (size_t i = 0; i < 5; i++) in[i] = op_case_tensor(row.in[i]);
  assay_model_t* m = op_case_model(&row, OP_CASE_STATIC, in, values);
  for (size_t i = 1; i < 4; i++) values[i]->declared = op_case_unranked(m, in[i]);
  op_case_ok(assay_infer_model(m));
  const assay_valtype_t* t = m->graph->outputs[0]->type;
  assert_int_equal(t->rank, 2);
  assert_null(t->dims[0]);
  assert_null(t->dims[1]);
  assay_model_release(m);
  for (size_t i = 0; i < 5; i++) assay_tensor_release(in[i]);
}

// Reshape to [N - 1, 2]: for N = 0 or 1 the entry is not a size, but says something else.
static void entries_that_may_be_no_sizes(void** state) {
  (void)state;
  static const op_case_t row = {"Reshape",           14,  NULL, {"float[2,2] iota", "int64[2] 2 2"},
                                {"float[2,2] iota"}, NULL};
  static const int64_t add[] = {0, 1, -1};
  for (size_t k = 0; k < 3; k++) {
    assay_tensor_t* in[OP_CASE_VALUES] = {op_case_tensor(row.in[0]), op_case_tensor(row.in[1])};
    assay_value_t* values[OP_CASE_VALUES] = {NULL};
    assay_model_t* m = op_case_model(&row, OP_CASE_SYMBOLIC, in, values);
    const assay_dim_t* elems[2] = {assay_dim_add_i(m->dims, assay_dim_symbol(m->dims, "N"), add[k]),
                                   assay_dim_symbol(m->dims, "M")};
    assay_content_t content = {.rank = 1, .n = 2, .elems = elems};
    values[1]->content = &content;
    op_case_ok(assay_infer_model(m));
    const assay_valtype_t* t = m->graph->outputs[0]->type;
    assert_int_equal(t->rank, 2);
    assert_int_equal(assay_dim_same(t->dims[0], elems[0]), add[k] >= 0);
    assay_model_release(m);
    for (size_t i = 0; i < 2; i++) assay_tensor_release(in[i]);
  }
}

// What a row's outputs are compared by: small numbers, steps of the type, signs of zeros.
static void what_is_near(void** state) {
  (void)state;
  static const struct {
    const char *a, *b;
    int64_t ulps;  // from which on they are near; -1: never
  } rows[] = {
      {"float[1] 1e-8", "float[1] 1e-8", 0},      {"float[1] 1e-8", "float[1] 2e-8", 8388608},
      {"float[1] 1e9", "float[1] 1000000064", 1}, {"float16[1] 1", "float16[1] 1.002", 2},
      {"float[1] 0", "float[1] -0", -1},          {"float[1] nan", "float[1] nan", 0},
      {"float[1] nan", "float[1] 0", -1},         {"complex64[1] 1+0i", "complex64[1] 1-0i", -1},
      {"double[1] 0.1", "float[1] 0.1", -1},      {"int64[1] 1", "int64[1] 2", -1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_tensor_t *a = op_case_tensor(rows[i].a), *b = op_case_tensor(rows[i].b);
    op_case_round(a), op_case_round(b);
    const int64_t ulps = rows[i].ulps < 0 ? 1 << 30 : rows[i].ulps;
    const bool near = op_case_near(a, b, ulps), nearer = ulps && op_case_near(a, b, ulps - 1);
    if (near != (rows[i].ulps >= 0) || nearer)
      fail_msg("'%s' and '%s', %lld steps", rows[i].a, rows[i].b, (long long)rows[i].ulps);
    assay_tensor_release(a);
    assay_tensor_release(b);
  }
  assert_int_equal(op_case_ulps("float[1] 1 ~3"), 3);
  assert_int_equal(op_case_ulps("float[1] 1"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_near),           cmocka_unit_test(types_do_not_depend_on_inference),
      cmocka_unit_test(what_the_texts_allow),   cmocka_unit_test(ranks),
      cmocka_unit_test(axes_of_unknown_number), cmocka_unit_test(entries_that_may_be_no_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
