// Truth against golden: a model with one row changed is held against truth of the right one, and
// the search must find the node, name the cause, and restore golden.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/chain.h"
#include "eval/evaluator.h"
#include "fail_case.h"
#include "onnx/load.h"
#include "passes/graph_case.h"

static const graph_case_t network = {
    "network",
    17,
    {"x float[1,4,8,8]"},
    {"w1 float[4,4,3,3]", "b1 float[4]", "s float[4] positive", "o float[4]", "m float[4]",
     "v float[4] positive", "w2 float[4,4,3,3]", "b2 float[4]", "half float[] 0.5",
     "w3 float[48,6]", "b3 float[6]", "starts int64[1] 2", "ends int64[1] 6", "axes int64[1] 2",
     "low float[] -0.4", "high float[] 0.6", "one int64[1] 1", "five int64[1] 5"},
    {"Conv conv1 x w1 b1 -> c1 | pads=2,1,0,1",
     "BatchNormalization bn c1 s o m v -> n1 | epsilon=0.01", "Elu elu n1 -> e1 | alpha=0.3",
     "Conv conv2 e1 w2 b2 -> c2 | pads=2,2,2,2 dilations=2,2", "Mul mul c2 half -> k2",
     "Tanh tanh k2 -> t2", "Sub sub t2 e1 -> d2", "Slice slice d2 starts ends axes -> p2",
     "AveragePool pool p2 -> q2 | kernel_shape=2,2 strides=1,2", "Clip clip q2 low high -> l2",
     "Transpose turn l2 -> r2 | perm=0,2,3,1", "Flatten flat r2 -> f2 | axis=1",
     "Gemm fc f2 w3 b3 -> y0", "Softmax soft y0 -> y | axis=1"},
    "y"};

typedef struct fault_row {
  const char* text;  // the row of nodes or constants that the model has instead
  bool constant;
  size_t at;
  const char* node;    // label
  const char* causes;  // names, with '|' between
  bool inner;          // golden holds inner values
} fault_row_t;

static const fault_row_t faults[] = {
    {"BatchNormalization bn c1 s o m v -> n1 | epsilon=1e-5", false, 1, "bn", "epsilon", false},
    {"BatchNormalization bn c1 s o m v -> n1 | epsilon=1e-5", false, 1, "bn", "epsilon", true},
    {"Elu elu n1 -> e1", false, 2, "elu", "attribute|fitted attribute", false},
    {"Elu elu n1 -> e1 | alpha=0.7", false, 2, "elu", "attribute|fitted attribute", true},
    {"Conv conv1 x w1 b1 -> c1 | pads=1,1,1,1", false, 0, "conv1", "numbers", false},
    {"Conv conv1 x w1 b1 -> c1 | pads=0,1,2,1", false, 0, "conv1", "numbers", true},
    {"Conv conv2 e1 w2 b2 -> c2 | pads=1,1,1,1", false, 3, "conv2", "dilation", false},
    {"Conv conv2 e1 w2 b2 -> c2 | pads=1,1,1,1", false, 3, "conv2", "dilation", true},
    {"half float[] 0.6", true, 8, "mul", "usual number|scaled constant", false},
    {"half float[] 0.6", true, 8, "mul", "usual number|scaled constant", true},
    {"Sub sub e1 t2 -> d2", false, 6, "sub", "swapped inputs", false},
    {"Add sub t2 e1 -> d2", false, 6, "sub", "operator", false},
    {"Add sub t2 e1 -> d2", false, 6, "sub", "operator", true},
    {"Sigmoid tanh k2 -> t2", false, 5, "tanh", "operator", false},
    {"Identity tanh k2 -> t2", false, 5, "tanh", "operator", false},
    {"Identity tanh k2 -> t2", false, 5, "tanh", "operator", true},
    {"Slice slice d2 one five axes -> p2", false, 7, "slice", "slice", false},
    {"Slice slice d2 one five axes -> p2", false, 7, "slice", "slice", true},
    {"Transpose turn l2 -> r2 | perm=0,3,2,1", false, 10, "turn", "permutation", true},
    {"Conv conv2 e1 w1 b2 -> c2 | pads=2,2,2,2 dilations=2,2", false, 3, "conv2",
     "another constant", false},
    {"Conv conv2 e1 w1 b2 -> c2 | pads=2,2,2,2 dilations=2,2", false, 3, "conv2",
     "another constant", true},
};

static graph_case_t changed_by(const fault_row_t* f) {
  graph_case_t g = network;
  if (f->constant)
    g.constants[f->at] = f->text;
  else
    g.nodes[f->at] = f->text;
  return g;
}

// Truth of a model: of every value, or of its outputs.
static assay_set_t truth_of(const assay_model_t* m, assay_tensor_t* const* in, bool inner) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  assay_evaluator_t* evaluator = NULL;
  assay_set_t set = {0};
  op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_value_t* v = m->graph->nodes[i]->outputs[0];
    assay_tensor_t* t = NULL;
    if (!inner && !v->is_output) continue;
    op_case_ok(assay_tensor_retype(assay_evaluator_get(evaluator, v), ASSAY_TYPE_DOUBLE, &t));
    op_case_ok(assay_set_add(&set, v->name, t));
  }
  assay_evaluator_destroy(evaluator);
  return set;
}

static void hold_against(const assay_model_t* m, assay_tensor_t** in, const assay_set_t* set,
                         assay_export_t* out) {
  const assay_export_options_t options = {.seconds = 30};
  const assay_samples_t samples = {.n = 1, .n_values = m->graph->n_inputs, .at = in};
  assay_golden_t golden = {0};
  op_case_ok(assay_golden_match(set, m, NULL, &golden));
  op_case_ok(assay_chain_run(m, &samples, &golden, &options, out));
  assay_golden_deinit(&golden);
}

static bool is_one_of(const char* cause, const char* causes) {
  const char* at = cause ? strstr(causes, cause) : NULL;
  return at && (at == causes || at[-1] == '|') && (at[strlen(cause)] == '|' || !at[strlen(cause)]);
}

// As it would be in a file: not checked, nothing inferred.
static assay_model_t* unprepared(const graph_case_t* row, assay_tensor_t** in) {
  assay_model_t* m = graph_case_begin(row, in);
  for (size_t i = 0; i < GRAPH_CASE_ROWS && row->nodes[i]; i++)
    graph_case_node(m->graph, row->nodes[i], (int)m->opsets[0].version);
  graph_case_outputs(m->graph, row->outputs);
  return m;
}

// The repaired model must give golden.
static void is_mended(const graph_case_t* wrong, const assay_export_t* found,
                      const assay_set_t* golden, size_t repairs) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t *m = unprepared(wrong, in), *mended = NULL;
  assay_export_t left = {0};
  size_t n = 0;
  op_case_ok(assay_chain_repair(found, m, &n));
  assert_int_equal(n, repairs);
  op_case_ok(assay_onnx_prepare(m, 0, NULL, &mended));
  hold_against(mended, in, golden, &left);
  assert_int_equal(left.n, 0);
  assay_export_deinit(&left);
  assay_model_release(mended);
  assay_model_release(m);
  graph_case_release(in);
}

static void check_fault(const fault_row_t* f) {
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
  const graph_case_t wrong = changed_by(f);
  assay_model_t* right = graph_case_model(&network, in);
  assay_model_t* m = graph_case_model(&wrong, again);
  assay_set_t golden = truth_of(right, in, f->inner);
  assay_export_t e = {0};
  hold_against(m, again, &golden, &e);
  if (e.n == 0) fail_msg("'%s': nothing found", f->text);
  const assay_fault_t* first = &e.faults[0];
  if (strcmp(first->node->label, f->node) != 0 || !first->has_repair || !first->restored ||
      !is_one_of(first->repair.cause, f->causes))
    fail_msg("'%s': %s, %s: %s", f->text, first->node->label,
             first->has_repair ? first->repair.cause : "no repair", first->repair.text);
  if (f->inner) assert_int_equal(e.n, 1);
  is_mended(&wrong, &e, &golden, 1);
  assay_export_deinit(&e);
  assay_set_deinit(&golden);
  assay_model_release(right);
  assay_model_release(m);
  graph_case_release(in);
  graph_case_release(again);
}

static void each_fault_is_found_and_mended(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) check_fault(&faults[i]);
}

// Golden may have been rounded to float32, or have been computed in it.
static void rounding_is_no_fault(void** state) {
  (void)state;
  for (int inner = 0; inner < 2; inner++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&network, in);
    assay_set_t golden = truth_of(m, in, inner);
    uint64_t draws = 3;
    for (size_t i = 0; i < golden.n; i++)
      for (int64_t k = 0; k < golden.tensors[i]->size; k++)
        assay_f64(golden.tensors[i])[k] *= 1 + 0x1p-24 * graph_case_random(&draws);
    assay_export_t e = {0};
    hold_against(m, in, &golden, &e);
    assert_int_equal(e.n, 0);
    assert_int_equal(e.values_compared, inner ? golden.n : 1);
    assay_export_deinit(&e);
    assay_set_deinit(&golden);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// Two faults at once: golden inner values keep them apart.
static void inner_values_part_faults(void** state) {
  (void)state;
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
  graph_case_t wrong = network;
  wrong.nodes[2] = "Elu elu n1 -> e1";
  wrong.nodes[6] = "Sub sub e1 t2 -> d2";
  assay_model_t* right = graph_case_model(&network, in);
  assay_model_t* m = graph_case_model(&wrong, again);
  assay_set_t golden = truth_of(right, in, true);
  assay_export_t e = {0};
  hold_against(m, again, &golden, &e);
  assert_int_equal(e.n, 2);
  assert_string_equal(e.faults[0].node->label, "elu");
  assert_string_equal(e.faults[1].node->label, "sub");
  assert_true(e.faults[0].restored && e.faults[1].restored);
  assay_export_deinit(&e);
  assay_set_deinit(&golden);
  assay_model_release(right);
  assay_model_release(m);
  graph_case_release(in);
  graph_case_release(again);
}

// Two or three faults at once, with golden outputs only: none of the repairs restores golden by
// itself.
typedef struct faults_row {
  const char* nodes[3];
  size_t at[3];
} faults_row_t;

static const faults_row_t several[] = {
    {{"Elu elu n1 -> e1", "Sub sub e1 t2 -> d2"}, {2, 6}},
    {{"BatchNormalization bn c1 s o m v -> n1 | epsilon=0.1", "Sigmoid tanh k2 -> t2"}, {1, 5}},
    {{"Conv conv2 e1 w2 b2 -> c2 | pads=1,1,1,1", "Sub sub e1 t2 -> d2"}, {3, 6}},
    {{"Elu elu n1 -> e1", "Sigmoid tanh k2 -> t2",
      "MaxPool pool p2 -> q2 | kernel_shape=2,2 strides=1,2"},
     {2, 5, 8}},
};

// Without the last layers: six probabilities say too little of three faults.
static graph_case_t headless(void) {
  graph_case_t g = network;
  for (size_t i = 11; i < GRAPH_CASE_ROWS; i++) g.nodes[i] = NULL;
  g.outputs = "r2";
  return g;
}

static void outputs_alone_part_faults(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
    const graph_case_t whole = headless();
    graph_case_t wrong = whole;
    size_t n = 0;
    for (; n < 3 && several[i].nodes[n]; n++) wrong.nodes[several[i].at[n]] = several[i].nodes[n];
    assay_model_t* right = graph_case_model(&whole, in);
    assay_model_t* m = graph_case_model(&wrong, again);
    assay_set_t golden = truth_of(right, in, false);
    assay_export_t e = {0};
    hold_against(m, again, &golden, &e);
    if (e.n != n) fail_msg("row %zu: %zu faults: %s", i, e.n, e.n ? e.faults[0].repair.text : "");
    for (size_t k = 0; k < n; k++) {
      bool known = false;
      for (size_t f = 0; f < n; f++)
        known |= strcmp(e.faults[f].node->label, m->graph->nodes[several[i].at[k]]->label) == 0;
      if (!known || !e.faults[k].restored)
        fail_msg("row %zu: %s: %s", i, e.faults[k].node->label, e.faults[k].repair.text);
    }
    is_mended(&wrong, &e, &golden, n);
    assay_export_deinit(&e);
    assay_set_deinit(&golden);
    assay_model_release(right);
    assay_model_release(m);
    graph_case_release(in);
    graph_case_release(again);
  }
}

// Two constants exchanged show in both of their nodes, and are exchanged back once.
static void exchanged_constants(void** state) {
  (void)state;
  for (int inner = 0; inner < 2; inner++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
    graph_case_t wrong = network;
    wrong.nodes[0] = "Conv conv1 x w2 b1 -> c1 | pads=2,1,0,1";
    wrong.nodes[3] = "Conv conv2 e1 w1 b2 -> c2 | pads=2,2,2,2 dilations=2,2";
    assay_model_t* right = graph_case_model(&network, in);
    assay_model_t* m = graph_case_model(&wrong, again);
    assay_set_t golden = truth_of(right, in, inner);
    assay_export_t e = {0};
    hold_against(m, again, &golden, &e);
    assert_int_equal(e.n, inner ? 2 : 1);
    assert_string_equal(e.faults[0].repair.cause, "exchanged constants");
    is_mended(&wrong, &e, &golden, 1);
    assay_export_deinit(&e);
    assay_set_deinit(&golden);
    assay_model_release(right);
    assay_model_release(m);
    graph_case_release(in);
    graph_case_release(again);
  }
}

// Constants with few bits mean what they say. An exponent of 2 moved by a rounding makes NaN of
// squares of negative numbers: comparisons behind it would all be false in the noisy run, and no
// difference of theirs would count.
static void constants_with_few_bits_stay(void** state) {
  (void)state;
  static const graph_case_t right = {
      "squares",
      17,
      {"x float[40] positive"},
      {"two float[] 2", "limit float[] 3"},
      {"Neg neg x -> n", "Pow square n two -> s", "Greater greater s limit -> y"},
      "y"};
  graph_case_t wrong = right;
  wrong.nodes[2] = "Less greater s limit -> y";
  for (int k = 0; k < 2; k++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&right, in);
    assay_model_t* held = graph_case_model(k ? &wrong : &right, again);
    assay_evaluator_t* evaluator = NULL;
    assay_set_t golden = {0};
    assay_export_t e = {0};
    const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
    op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
    const assay_value_t* y = m->graph->outputs[0];
    op_case_ok(assay_set_add(&golden, "y", assay_tensor_retain(assay_evaluator_get(evaluator, y))));
    hold_against(held, again, &golden, &e);
    assert_int_equal(e.n, k);
    if (k) assert_true(e.faults[0].restored);
    assay_export_deinit(&e);
    assay_set_deinit(&golden);
    assay_evaluator_destroy(evaluator);
    assay_model_release(m);
    assay_model_release(held);
    graph_case_release(in);
    graph_case_release(again);
  }
}

// Any allocation may fail: the search ends with a status or goes on without, and nothing is left
// behind.
static void allocations_may_fail(void** state) {
  (void)state;
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
  const graph_case_t whole = headless();
  graph_case_t wrong = whole;
  wrong.nodes[2] = "Elu elu n1 -> e1";
  assay_model_t* right = graph_case_model(&whole, in);
  assay_model_t* m = graph_case_model(&wrong, again);
  assay_set_t set = truth_of(right, in, false);
  const assay_export_options_t options = {.seconds = 5};
  const assay_samples_t samples = {.n = 1, .n_values = m->graph->n_inputs, .at = again};
  assay_golden_t golden = {0};
  op_case_ok(assay_golden_match(&set, m, NULL, &golden));
  bool reached = true;
  for (uint64_t n = 1; reached; n = fail_next(n, 20)) {
    assay_export_t e = {0};
    const int64_t live = assay_alloc_live();
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_chain_run(m, &samples, &golden, &options, &e);
    reached = assay_alloc_fail_after(0, false) >= n;
    if (!reached) op_case_ok(st), st = NULL;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    assay_export_deinit(&e);
    if (assay_alloc_live() != live) fail_msg("allocation %d: something is left", (int)n);
  }
  assay_golden_deinit(&golden);
  assay_set_deinit(&set);
  assay_model_release(right);
  assay_model_release(m);
  graph_case_release(in);
  graph_case_release(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_fault_is_found_and_mended),
      cmocka_unit_test(rounding_is_no_fault),
      cmocka_unit_test(inner_values_part_faults),
      cmocka_unit_test(exchanged_constants),
      cmocka_unit_test(outputs_alone_part_faults),
      cmocka_unit_test(constants_with_few_bits_stay),
      cmocka_unit_test(allocations_may_fail),
  };
  return cmocka_run_group_tests_name("repairs", tests, NULL, NULL);
}
