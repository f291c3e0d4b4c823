// Layers in float64, which are as fine as truth: truth in double-double where the operator knows
// how, else a limit on truth's own rounding, and what the judge makes of it.
#include <float.h>

#include "account/local.h"
#include "passes/graph_case.h"
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

// Layers of several nodes, whose hidden values float64 would round: the true results.
static const struct {
  graph_case_t graph;
  const char* expected;
} fused[] = {
    {{"square",
      0,
      {"x double[2] 134217729 -134217729"},
      {"k double[] 18014398777917440"},
      {"Mul m x x -> p", "Sub s p k -> y"},
      "y"},
     "double[2] 1 1"},
    {{"product",
      0,
      {"x double[1,2] 134217729 1"},
      {"w double[2,2] 134217729 1 0 -1", "b double[2] -18014398777917440 0.5"},
      {"MatMul mm x w -> p", "Add add p b -> q", "Relu r q -> y"},
      "y"},
     "double[1,2] 1 134217728.5"},
    // 1 + 2^-60 is hidden; its logarithm is 2^-60, to 2^-121.
    {{"logarithm",
      0,
      {"x double[1] 8.673617379884035e-19"},
      {"one double[] 1"},
      {"Add a x one -> p", "Log l p -> y"},
      "y"},
     "double[1] 8.673617379884035e-19"},
    // The comparison is decided by what float64 would lose.
    {{"chosen",
      0,
      {"x double[3] 8.673617379884035e-19 0 -8.673617379884035e-19"},
      {"one double[] 1", "a double[] 5", "b double[] 7"},
      {"Add n x one -> p", "Greater g p one -> q", "Where w q a b -> y"},
      "y"},
     "double[3] 5 7 7"},
};

// Inputs of all nodes of a layer, one after the other; hidden ones are NULL.
static size_t layer_inputs(const assay_layer_t* layer, assay_tensor_t* x, assay_tensor_t** in) {
  size_t n = 0;
  for (size_t k = 0; k < layer->n_nodes; k++)
    for (size_t i = 0; i < layer->nodes[k]->n_inputs; i++) {
      const assay_value_t* v = layer->nodes[k]->inputs[i];
      in[n++] = v->constant ? v->constant : v->is_input ? x : NULL;
    }
  return n;
}

static void layers_of_several_nodes(void** state) {
  (void)state;
  const assay_rounding_t rounding = assay_rounding_unknown(ASSAY_FORMAT_FP64, ASSAY_FORMAT_FP64);
  for (size_t r = 0; r < sizeof fused / sizeof *fused; r++) {
    const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32,
                                         .accumulator = ASSAY_FORMAT_FP32};
    assay_tensor_t *x[GRAPH_CASE_ROWS] = {NULL}, *in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&fused[r].graph, x);
    assay_plan_t* plan = NULL;
    assay_locals_t* locals = NULL;
    assay_local_t local;
    op_case_ok(assay_plan_create(m, &precision, NULL, 0, &plan));
    op_case_ok(assay_locals_create(assay_plan_layers(plan), false, &locals));
    assay_layer_t layer = assay_plan_layers(plan)->layers[0];
    layer.nodes = (const assay_node_t**)m->graph->nodes;
    layer.n_nodes = m->graph->n_nodes;
    const size_t n = layer_inputs(&layer, x[0], in);
    op_case_ok(assay_locals_run(locals, &layer, layer.nodes[0], n, in, &rounding, NULL, &local));
    assay_tensor_t* expected = op_case_tensor(fused[r].expected);
    if (!op_case_same(local.converted[0], expected)) {
      op_case_print(local.converted[0]);
      fail_msg("'%s'", fused[r].graph.name);
    }
    assert_null(local.doubt[0].guaranteed);
    assay_tensor_release(expected);
    assay_local_deinit(&local);
    assay_locals_destroy(locals);
    assay_plan_destroy(plan);
    assay_model_release(m);
    graph_case_release(x);
  }
}

// An operator without double-double, where sums are rounded and where whole numbers add up exactly;
// some that are known, one that rounds once, one that moves.
#define TEN "0.1 0.7 0.3 0.9 0.11 0.13 0.17 0.19 0.23 0.29 "
static const struct {
  op_case_t row;
  bool doubtful;
} others[] = {
    {{"CumSum",
      14,
      NULL,
      {"double[100] " TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN, "int64[] 0"},
      {"?"},
      NULL},
     true},
    {{"CumSum", 14, NULL, {"double[100] iota", "int64[] 0"}, {"?"}, NULL}, false},
    {{"LayerNormalization", 17, NULL, {"double[2,5] iota", "double[5] iota"}, {"?"}, NULL}, false},
    {{"Softmax", 13, NULL, {"double[2,5] iota"}, {"?"}, NULL}, false},
    {{"Gemm",
      13,
      "alpha=0.3",
      {"double[2,3] iota", "double[3,2] iota", "double[2] iota"},
      {"?"},
      NULL},
     false},
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
  const int64_t k = 90;
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
    op_case_ok(assay_local_judge(&local, local.converted, &engine, layer, &rounding, NULL, &j));
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
      cmocka_unit_test(layers_of_several_nodes),
      cmocka_unit_test(truth_says_how_far_it_may_be_off),
      cmocka_unit_test(what_truth_leaves_open_is_no_defect),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
