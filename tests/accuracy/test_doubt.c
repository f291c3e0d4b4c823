// Layers in float64, which are as fine as truth: truth in double-double where the operator knows
// how, else a limit on truth's own rounding, and what the judge makes of it.
#include <float.h>

#include "accuracy/local.h"
#include "ops/op_case.h"
#include "plan/plan.h"

// Sums that float64 loses: the true results are in `out`.
static const op_case_t cancelling[] = {
    {"MatMul",
     13,
     NULL,
     {"double[2,4] 1e16 1 -1e16 0.5 1e30 -1e30 3 4", "double[4,1] 1 1 1 1"},
     {"double[2,1] 1.5 7"},
     NULL},
    {"MatMul",
     13,
     NULL,
     {"double[2,1,3] 134217729 -134217729 0 1e16 1 -1e16",
      "double[2,3,1] 134217729 134217727 1 1 1 1"},
     {"double[2,1,1] 268435458 1"},
     NULL},
    {"Gemm",
     13,
     "transB=1",
     {"double[1,2] 1e16 1", "double[3,2] 1 1 1 2 1 -1", "double[3] -1e16 -1e16 -1e16"},
     {"double[1,3] 1 2 -1"},
     NULL},
    {"Conv",
     22,
     NULL,
     {"double[1,1,3] 1e16 1 -1e16", "double[1,1,3] 1 1 1", "double[1] 0.25"},
     {"double[1,1,1] 1.25"},
     NULL},
    {"Conv",
     22,
     "pads=1,1",
     {"double[1,2,2] 1e16 1 -1e16 -1", "double[2,2,3] 1 1 1 1 1 1 1 0 0 1 0 0", "double[2] -1 3"},
     {"double[1,2,2] -1 -1 3 3"},
     NULL},
    {"ReduceSum",
     13,
     "keepdims=0",
     {"double[2,3] 1e16 1 -1e16 -1e16 3 1e16", "int64[1] 1"},
     {"double[2] 1 3"},
     NULL},
    {"ReduceSum",
     13,
     "keepdims=0",
     {"double[3,2] 1e16 -1e16 1 3 -1e16 1e16", "int64[1] 0"},
     {"double[2] 1 3"},
     NULL},
    {"ReduceMean", 18, "keepdims=0", {"double[4] 1e16 1 2 -1e16"}, {"double[] 0.75"}, NULL},
    {"ReduceL1",
     18,
     "keepdims=0",
     {"double[5] 9007199254740992 1 -1 -1 1"},
     {"double[] 9007199254740996"},
     NULL},
};

// One node as a layer of its own, in the precision that the model declares.
typedef struct layer_of {
  assay_model_t* model;
  assay_plan_t* plan;
  assay_locals_t* locals;
  assay_tensor_t* in[OP_CASE_VALUES];
  size_t n;
} layer_of_t;

static void layer_init(const op_case_t* row, layer_of_t* l) {
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  *l = (layer_of_t){.n = op_case_count(row->in)};
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(row->in[i], "-") != 0) l->in[i] = op_case_tensor(row->in[i]);
  l->model = op_case_model(row, OP_CASE_STATIC, l->in, values);
  op_case_ok(assay_infer_model(l->model));
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32,
                                       .accumulator = ASSAY_FORMAT_FP32};
  op_case_ok(assay_plan_create(l->model, &precision, NULL, 0, &l->plan));
  op_case_ok(assay_locals_create(assay_plan_layers(l->plan), false, &l->locals));
}

static void layer_deinit(layer_of_t* l) {
  assay_locals_destroy(l->locals);
  assay_plan_destroy(l->plan);
  assay_model_release(l->model);
  for (size_t i = 0; i < l->n; i++) assay_tensor_release(l->in[i]);
}

static void layer_run(const layer_of_t* l, const assay_rounding_t* rounding, assay_local_t* out) {
  const assay_layer_t* layer = &assay_plan_layers(l->plan)->layers[0];
  op_case_ok(assay_locals_run(l->locals, layer, layer->nodes[0], l->n, l->in, rounding, NULL, out));
  assert_true(out->bounded);
}

static void truth_in_double_double(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof cancelling / sizeof *cancelling; r++) {
    const assay_rounding_t rounding = assay_rounding_unknown(ASSAY_FORMAT_FP64, ASSAY_FORMAT_FP64);
    layer_of_t l;
    assay_local_t local;
    layer_init(&cancelling[r], &l);
    layer_run(&l, &rounding, &local);
    assay_tensor_t* expected = op_case_tensor(cancelling[r].out[0]);
    if (!op_case_same(local.converted[0], expected)) {
      op_case_print(local.converted[0]);
      fail_msg("row %zu (%s)", r, cancelling[r].op);
    }
    assert_ptr_equal(local.truth[0], local.converted[0]);
    assert_null(local.doubt[0].guaranteed);
    assay_tensor_release(expected);
    assay_local_deinit(&local);
    layer_deinit(&l);
  }
}

// Operators without double-double, one that rounds once, and one that adds to a multiple.
static const struct {
  op_case_t row;
  bool doubtful;
} others[] = {
    {{"LayerNormalization", 17, NULL, {"double[2,5] iota", "double[5] iota"}, {"?"}, NULL}, true},
    {{"Softmax", 13, NULL, {"double[2,5] iota"}, {"?"}, NULL}, true},
    {{"Gemm",
      13,
      "alpha=0.3",
      {"double[2,3] iota", "double[3,2] iota", "double[2] iota"},
      {"?"},
      NULL},
     true},
    {{"Mul", 14, NULL, {"double[3] 0.1 0.2 0.3", "double[3] 0.7 0.7 0.7"}, {"?"}, NULL}, false},
    {{"Transpose", 21, NULL, {"double[2,3] iota"}, {"?"}, NULL}, false},
};

static void truth_says_how_far_it_may_be_off(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof others / sizeof *others; r++) {
    const assay_rounding_t fine = assay_rounding_unknown(ASSAY_FORMAT_FP64, ASSAY_FORMAT_FP64);
    const assay_rounding_t coarse = assay_rounding_unknown(ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP32);
    layer_of_t l;
    assay_local_t local;
    layer_init(&others[r].row, &l);
    layer_run(&l, &fine, &local);
    if ((local.doubt[0].guaranteed != NULL) != others[r].doubtful)
      fail_msg("row %zu (%s)", r, others[r].row.op);
    assay_local_deinit(&local);
    layer_run(&l, &coarse, &local);
    assert_null(local.doubt[0].guaranteed);
    assay_local_deinit(&local);
    layer_deinit(&l);
  }
}

// An engine's result at so many times (limit + doubt) from truth: what the judge says.
static void what_truth_leaves_open_is_no_defect(void** state) {
  (void)state;
  static const struct {
    double at_limit, at_doubt;
    bool uncertain, beyond;
  } rows[] = {{0.5, 0, false, false},
              {1, 0.5, true, false},
              {1, 0.99, true, false},
              {1.01, 1.01, false, true},
              {3, 3, false, true}};
  const assay_rounding_t rounding = assay_rounding_unknown(ASSAY_FORMAT_FP64, ASSAY_FORMAT_FP64);
  layer_of_t l;
  assay_local_t local;
  layer_init(&others[0].row, &l);
  layer_run(&l, &rounding, &local);
  const int64_t k = 3;
  const double limit = assay_f64(local.limits[0].guaranteed)[k];
  const double doubt = assay_f64(local.doubt[0].guaranteed)[k];
  assert_true(limit > 0 && doubt > 0);
  // The two limits as one, so that nothing lies between them.
  memcpy(local.limits[0].probable->data, local.limits[0].guaranteed->data,
         (size_t)local.converted[0]->size * sizeof(double));
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const assay_layer_t* layer = &assay_plan_layers(l.plan)->layers[0];
    assay_tensor_t* engine = NULL;
    op_case_ok(assay_tensor_copy(local.converted[0], &engine));
    const double t = assay_f64(engine)[k];
    assay_f64(engine)[k] =
        t + rows[r].at_limit * limit + rows[r].at_doubt * doubt + fabs(t) * DBL_EPSILON;
    assay_judgement_t j = {0};
    op_case_ok(assay_local_judge(&local, local.converted, &engine, layer, &rounding, false, &j));
    if (j.uncertain != rows[r].uncertain || j.beyond != rows[r].beyond)
      fail_msg("row %zu: %lld uncertain, %lld beyond", r, (long long)j.uncertain,
               (long long)j.beyond);
    assay_tensor_release(engine);
  }
  assay_local_deinit(&local);
  layer_deinit(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(truth_in_double_double),
      cmocka_unit_test(truth_says_how_far_it_may_be_off),
      cmocka_unit_test(what_truth_leaves_open_is_no_defect),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
