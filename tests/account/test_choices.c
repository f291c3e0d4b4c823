// Choices inside a layer, behind values that its arithmetic rounds: where the limits leave a choice
// open it may come out otherwise, and what follows is 'flipped'; elsewhere it must be truth's.
#include "account/local.h"
#include "passes/graph_case.h"
#include "plan/plan.h"

// x * k is off by rounding: 1 + 2^-30 and 1 - 2^-30 may both be 1, or beyond it.
#define OPEN "1.00000000093 0.99999999907 1.5 0.5"
#define ONE "one double[] 1"

typedef struct row {
  graph_case_t graph;
  const char* engine;
  int64_t exact, flipped, beyond;  // elements; the others lie within limits
} row_t;

static const row_t rows[] = {
    // As truth has them.
    {{"greater",
      0,
      {"x double[4] " OPEN},
      {ONE},
      {"Mul m x one -> p", "Greater g p one -> y"},
      "y"},
     "bool[4] 1 0 1 0",
     4,
     0,
     0},
    {{"greater",
      0,
      {"x double[4] " OPEN},
      {ONE},
      {"Mul m x one -> p", "Greater g p one -> y"},
      "y"},
     "bool[4] 0 1 1 0",
     2,
     2,
     0},
    {{"greater",
      0,
      {"x double[4] " OPEN},
      {ONE},
      {"Mul m x one -> p", "Greater g p one -> y"},
      "y"},
     "bool[4] 0 0 0 1",
     1,
     1,
     2},
    {{"equal", 0, {"x double[4] " OPEN}, {ONE}, {"Mul m x one -> p", "Equal e p one -> y"}, "y"},
     "bool[4] 1 1 1 0",
     1,
     2,
     1},
    // Limits are as far as the other outcome lies: one step.
    {{"floor", 0, {"x double[4] " OPEN}, {ONE}, {"Mul m x one -> p", "Floor f p -> y"}, "y"},
     "double[4] 0 1 2 0",
     1,
     2,
     1},
    {{"floor", 0, {"x double[4] " OPEN}, {ONE}, {"Mul m x one -> p", "Floor f p -> y"}, "y"},
     "double[4] 3 -2 1 0",
     2,
     0,
     2},
    {{"cast", 0, {"x double[4] " OPEN}, {ONE}, {"Mul m x one -> p", "Cast c p -> y | to=7"}, "y"},
     "int64[4] 0 1 1 1",
     1,
     2,
     1},
    // What follows a choice: either branch, and nothing between or beyond.
    {{"where",
      0,
      {"x double[4] " OPEN},
      {ONE, "a double[] 5", "b double[] 7"},
      {"Mul m x one -> p", "Greater g p one -> q", "Where w q a b -> y"},
      "y"},
     "double[4] 7 5 5 7",
     2,
     2,
     0},
    {{"where",
      0,
      {"x double[4] " OPEN},
      {ONE, "a double[] 5", "b double[] 7"},
      {"Mul m x one -> p", "Greater g p one -> q", "Where w q a b -> y"},
      "y"},
     "double[4] 8 7 7 5",
     1,
     0,
     3},
    {{"mask",
      0,
      {"x double[4] " OPEN},
      {ONE, "k double[] 3"},
      {"Mul m x one -> p", "Less l p one -> q", "Not n q -> r", "Cast c r -> s | to=11",
       "Mul last s k -> y"},
      "y"},
     "double[4] 0 3 0 0",
     1,
     2,
     1},
    {{"moved",
      0,
      {"x double[4] " OPEN},
      {ONE, "shape int64[2] 2 2", "k double[] 3"},
      {"Mul m x one -> p", "Greater g p one -> q", "Reshape r q shape -> s",
       "Cast c s -> t | to=11", "Mul last t k -> y"},
      "y"},
     "double[2,2] 0 3 3 3",
     1,
     2,
     1},
    // Choices among elements: any may come out; so may what is gathered by them.
    {{"argmax",
      0,
      {"x double[1,3] 1.00000000093 0.99999999907 0.5"},
      {ONE},
      {"Mul m x one -> p", "ArgMax a p -> y | axis=1"},
      "y"},
     "int64[1,1] 1",
     0,
     1,
     0},
    // Arithmetic on whole numbers that may be others.
    {{"counted",
      0,
      {"x double[4] " OPEN},
      {ONE, "k int64[] 10"},
      {"Mul m x one -> p", "Cast c p -> q | to=7", "Mul t q k -> r", "Cast d r -> y | to=11"},
      "y"},
     "double[4] 0 10 0 0",
     1,
     2,
     1},
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

// fail_at: the allocation that fails while the layer is run; 0: none. Gives how many there were.
static uint64_t judge_row(const row_t* row, assay_format_t format, uint64_t fail_at,
                          assay_judgement_t* j) {
  const assay_rounding_t rounding = assay_rounding_unknown(format, format);
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32,
                                       .accumulator = ASSAY_FORMAT_FP32};
  assay_tensor_t *x[GRAPH_CASE_ROWS] = {NULL}, *in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&row->graph, x);
  assay_plan_t* plan = NULL;
  assay_locals_t* locals = NULL;
  assay_local_t local;
  op_case_ok(assay_plan_create(m, &precision, NULL, 0, &plan));
  op_case_ok(assay_locals_create(assay_plan_layers(plan), false, &locals));
  assay_layer_t layer = assay_plan_layers(plan)->layers[0];
  layer.nodes = (const assay_node_t**)m->graph->nodes;
  layer.n_nodes = m->graph->n_nodes;
  const size_t n = layer_inputs(&layer, x[0], in);
  assay_alloc_fail_after(fail_at, false);
  assay_status_t st =
      assay_locals_run(locals, &layer, layer.nodes[0], n, in, &rounding, NULL, &local);
  const uint64_t count = assay_alloc_fail_after(0, false);
  assert_int_equal(assay_status_code(st), fail_at ? ASSAY_NO_MEMORY : ASSAY_OK);
  assay_status_free(st);
  if (!st) {
    assert_true(local.bounded);
    assay_tensor_t* engine = op_case_tensor(row->engine);
    op_case_ok(assay_local_judge(&local, local.converted, &engine, &layer, &rounding, NULL, j));
    assay_tensor_release(engine);
    assay_local_deinit(&local);
  }
  assay_locals_destroy(locals);
  assay_plan_destroy(plan);
  assay_model_release(m);
  graph_case_release(x);
  return count;
}

static void open_choices_may_flip(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    assay_judgement_t j = {0};
    judge_row(&rows[r], ASSAY_FORMAT_FP32, 0, &j);
    if (j.exact != rows[r].exact || j.flipped != rows[r].flipped || j.beyond != rows[r].beyond)
      fail_msg("row %zu, '%s': %lld exact, %lld flipped, %lld beyond of %lld", r,
               rows[r].graph.name, (long long)j.exact, (long long)j.flipped, (long long)j.beyond,
               (long long)j.elements);
  }
}

// In float64 truth is made finer, too.
static void allocations_fail(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP64};
  for (size_t f = 0; f < 2; f++)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
      assay_judgement_t j = {0};
      const int64_t before = assay_alloc_live();
      const uint64_t n = judge_row(&rows[r], formats[f], 0, &j);
      assert_true(n > 20);
      for (uint64_t k = 1; k <= n; k++) judge_row(&rows[r], formats[f], k, &j);
      assert_int_equal(assay_alloc_live(), before);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(open_choices_may_flip),
                                     cmocka_unit_test(allocations_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
