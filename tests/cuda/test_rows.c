// Softmax, normalizations, reductions, running sums and sorting on a GPU that is not there (fake/):
// beside the emulated engine and within their bounds; the same bits alone and in a batch.
#include <stdlib.h>

#include "backends/tactic_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, opset, inputs, constants, node, tactic, tolerance, specials) \
  { {name, opset, inputs, constants, {node}, "y"}, tactic, tolerance, specials }
#define PLAIN(name, x, node, tactic, tolerance) ROW(name, 17, {x}, {0}, node, tactic, tolerance, 0)
#define SPECIAL(name, x, node, tactic, tolerance) \
  ROW(name, 17, {x}, {0}, node, tactic, tolerance, 1)

#define SOFTMAX(x, node) PLAIN(x " " node, x, node, "rows", 3e-6)
static const tactic_case_t softmaxes[] = {
    SOFTMAX("x float[3,1]", "Softmax n x -> y"),
    SOFTMAX("x float[1]", "Softmax n x -> y"),
    SOFTMAX("x float[5,31]", "Softmax n x -> y"),
    SOFTMAX("x float[5,33]", "Softmax n x -> y"),
    SOFTMAX("x float[3,1000]", "Softmax n x -> y"),
    SOFTMAX("x float[2,1001]", "Softmax n x -> y"),
    SOFTMAX("x float[2,5000]", "Softmax n x -> y"),
    PLAIN("30000", "x float[1,30000]", "Softmax n x -> y", "rows", 1e-4),
    SOFTMAX("x float[600,8]", "Softmax n x -> y"),
    SOFTMAX("x float[5,64]", "Softmax n x -> y"),
    SOFTMAX("x float[3,520]", "Softmax n x -> y"),
    SOFTMAX("x float[5,531]", "LogSoftmax n x -> y"),
    SOFTMAX("x float[3,5,40]", "Softmax n x -> y | axis=1"),
    SOFTMAX("x float[3,20,7]", "Softmax n x -> y | axis=1"),
    SOFTMAX("x float[2,50,40]", "Softmax n x -> y | axis=1"),
    SOFTMAX("x float[700,33]", "Softmax n x -> y | axis=0"),
    SOFTMAX("x float[3,7,30]", "LogSoftmax n x -> y | axis=-2"),
    ROW("flat", 11, {"x float[3,7,30]"}, {0}, "Softmax n x -> y | axis=1", "rows", 3e-6, 0),
    SPECIAL("specials", "x float[36,3]", "Softmax n x -> y", "rows", 3e-6),
    SPECIAL("specials of columns", "x float[3,36]", "Softmax n x -> y | axis=0", "rows", 3e-6),
    SPECIAL("specials, logarithm", "x float[36,3]", "LogSoftmax n x -> y", "rows", 3e-6),
    {{"channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "Softmax n h -> y | axis=1"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"columns, channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "Softmax n h -> y | axis=3"},
      "y"},
     "rows",
     3e-6,
     false},
};

#define BOTH(n) "s float[" n "] positive", "b float[" n "]"
#define LAYER "LayerNormalization n x s b -> y"
static const tactic_case_t norms[] = {
    ROW("of 1", 17, {"x float[3,1]"}, LIST(BOTH("1")), LAYER, "rows", 3e-6, 0),
    ROW("of 33", 17, {"x float[5,33]"}, LIST(BOTH("33")), LAYER, "rows", 3e-6, 0),
    ROW("of 768", 17, {"x float[4,768]"}, LIST(BOTH("768")), LAYER, "rows", 3e-6, 0),
    ROW("of 5000", 17, {"x float[2,5000]"}, LIST(BOTH("5000")), LAYER, "rows", 3e-6, 0),
    ROW("of 40000", 17, {"x float[1,40000]"}, LIST(BOTH("40000")), LAYER, "rows", 3e-6, 0),
    ROW("one scale", 17, {"x float[5,32]"}, {"s float[1] positive"},
        "LayerNormalization n x s -> y", "rows", 3e-6, 0),
    ROW("two axes", 17, {"x float[3,4,6]"}, {"s float[4,6] positive"},
        "LayerNormalization n x s -> y | axis=1", "rows", 3e-6, 0),
    ROW("specials", 17, {"x float[36,8]"}, LIST(BOTH("8")), LAYER, "rows", 3e-6, 1),
    ROW("RMS", 23, {"x float[5,72]"}, {"s float[72] positive"}, "RMSNormalization n x s -> y",
        "rows", 3e-6, 0),
    ROW("instances", 17, {"x float[2,3,5,7]"}, LIST(BOTH("3")),
        "InstanceNormalization n x s b -> y", "rows", 3e-6, 0),
    ROW("large instances", 17, {"x float[1,2,90,100]"}, LIST(BOTH("2")),
        "InstanceNormalization n x s b -> y", "rows", 3e-6, 0),
    ROW("groups", 21, {"x float[2,12,5,4]"}, LIST(BOTH("12")),
        "GroupNormalization n x s b -> y | num_groups=3", "rows", 3e-6, 0),
    ROW("groups with parameters of groups", 18, {"x float[2,12,5,7]"}, LIST(BOTH("3")),
        "GroupNormalization n x s b -> y | num_groups=3", "rows", 3e-6, 0),
    {{"groups, channels last",
      21,
      {"x float[2,3,5,6]"},
      {"w float[16,3,1,1]", BOTH("16")},
      {"Conv c x w -> h", "GroupNormalization n h s b -> y | num_groups=4"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"instances, channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[5,3,1,1]", BOTH("5")},
      {"Conv c x w -> h", "InstanceNormalization n h s b -> y"},
      "y"},
     "rows",
     3e-6,
     false},
    PLAIN("L2 along the last axis", "x float[4,50]", "LpNormalization n x -> y", "rows", 3e-6),
    PLAIN("L1 along another", "x float[4,50,3]", "LpNormalization n x -> y | axis=1 p=1", "rows",
          3e-6),
    PLAIN("mean and variance", "x float[2,3,4,5]", "MeanVarianceNormalization n x -> y", "rows",
          3e-6),
    {{"moments are outputs",
      17,
      {"x float[5,40]"},
      {BOTH("40")},
      {"LayerNormalization n x s b -> y m i"},
      "y m i"},
     "rows",
     3e-6,
     false},
    ROW("skip", 17, LIST("x float[2,5,24]", "z float[2,5,24]"), LIST(BOTH("24"), "c float[24]"),
        "com.microsoft.SkipLayerNormalization n x z s b c -> y", "rows", 3e-6, 0),
    {{"skip of one sample, and the sum",
      17,
      {"x float[2,5,24]", "z float[5,24]"},
      {"s float[24] positive"},
      {"com.microsoft.SkipSimplifiedLayerNormalization n x z s -> y _ _ t"},
      "y t"},
     "rows",
     3e-6,
     false},
};

#define REDUCE(x, node) PLAIN(x " " node, x, node, "reduce", 2e-6)
static const tactic_case_t reductions[] = {
    REDUCE("x float[3,4,1]", "ReduceMean n x -> y | axes=-1"),
    REDUCE("x float[3,4,33]", "ReduceMean n x -> y | axes=-1"),
    REDUCE("x float[3,1000]", "ReduceMax n x -> y | axes=1 keepdims=0"),
    REDUCE("x float[3,9,40]", "ReduceMin n x -> y | axes=1"),
    REDUCE("x float[3,100,40]", "ReduceMean n x -> y | axes=1"),
    REDUCE("x float[4,5,6,7]", "ReduceL2 n x -> y | axes=0,2"),
    REDUCE("x float[4,5,6,7]", "ReduceL1 n x -> y | axes=1,3 keepdims=0"),
    REDUCE("x float[4,5,6,7]", "ReduceSumSquare n x -> y"),
    REDUCE("x float[4,5]", "ReduceProd n x -> y | axes=1"),
    REDUCE("x float[4,500]", "ReduceLogSumExp n x -> y | axes=1"),
    REDUCE("x float[4,50,6]", "ReduceLogSumExp n x -> y | axes=1"),
    REDUCE("x float[2,3,5,7]", "GlobalAveragePool n x -> y"),
    REDUCE("x float[2,3,5,7]", "GlobalMaxPool n x -> y"),
    REDUCE("x float[2,3,5,7]", "GlobalLpPool n x -> y"),
    ROW("axes as an input", 18, {"x float[3,4,5]"}, {"a int64[2] 0 -1"}, "ReduceSum n x a -> y",
        "reduce", 2e-6, 0),
    ROW("no axes", 18, {"x float[3,4]"}, {"a int64[0]"},
        "ReduceSum n x a -> y | noop_with_empty_axes=1", "reduce", 2e-6, 0),
    ROW("logarithm", 17, {"x float[3,20] positive"}, {0}, "ReduceLogSum n x -> y | axes=1",
        "reduce", 2e-6, 0),
    PLAIN("in parts", "x float[70001]", "ReduceSum n x -> y | keepdims=0", "reduce", 1e-4),
    PLAIN("in shorter parts, across", "x float[5003,40]", "ReduceMean n x -> y | axes=0", "reduce",
          1e-5),
    PLAIN("in parts, across", "x float[2,66000,3]", "ReduceMean n x -> y | axes=1", "reduce", 1e-4),
    REDUCE("x float[3,7,16]", "ReduceMean n x -> y | axes=1"),
    REDUCE("x float[3,8,6]", "ReduceMax n x -> y | axes=1 keepdims=0"),
    REDUCE("x float[2,33,1]", "ReduceMean n x -> y | axes=1"),
    REDUCE("x float[5,64,20]", "ReduceL1 n x -> y | axes=1"),
    REDUCE("x float[2,129,24]", "ReduceL2 n x -> y | axes=1"),
    REDUCE("x float[1,256,72]", "ReduceMean n x -> y | axes=1"),
    REDUCE("x float[1,259,68]", "ReduceMin n x -> y | axes=1"),
    REDUCE("x float[300,9,40]", "ReduceMean n x -> y | axes=1"),
    REDUCE("x float[3,40,5,6]", "ReduceSumSquare n x -> y | axes=1"),
    REDUCE("x float[9,4,30,8]", "ReduceMean n x -> y | axes=0,2"),
    REDUCE("x float[9,2,30,1,6]", "ReduceProd n x -> y | axes=0,2,3 keepdims=0"),
    REDUCE("x float[2,3,2,2,3,2,3,4]", "ReduceL1 n x -> y | axes=0,2,4,6"),
    PLAIN("in parts, several dimensions, across", "x float[60,2,30,12]",
          "ReduceMean n x -> y | axes=0,2", "reduce", 1e-5),
    PLAIN("in parts, many rows across", "x float[2,1027,136]", "ReduceMean n x -> y | axes=1",
          "reduce", 1e-5),
    ROW("logarithm, across", 17, {"x float[20,8] positive"}, {0}, "ReduceLogSum n x -> y | axes=0",
        "reduce", 2e-6, 0),
    SPECIAL("special maxima, across", "x float[36,8]", "ReduceMax n x -> y | axes=0", "reduce",
            2e-6),
    SPECIAL("special maxima", "x float[36,5]", "ReduceMax n x -> y | axes=1", "reduce", 2e-6),
    SPECIAL("special minima", "x float[5,36]", "ReduceMin n x -> y | axes=0", "reduce", 2e-6),
    SPECIAL("special sums", "x float[36,5]", "ReduceSum n x -> y", "reduce", 2e-6),
    SPECIAL("special logarithms", "x float[36,3]", "ReduceLogSumExp n x -> y | axes=1", "reduce",
            2e-6),
    {{"a mean, channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "GlobalAveragePool n h -> y"},
      "y"},
     "reduce",
     2e-6,
     false},
    {{"a mean of many channels, channels last",
      17,
      {"x float[3,3,7,6]"},
      {"w float[40,3,1,1]"},
      {"Conv c x w -> h", "ReduceMean n h -> y | axes=2,3"},
      "y"},
     "reduce",
     2e-6,
     false},
};

#define WHOLE(x, node) PLAIN(x " " node, x, node, "reduce_whole", 0)
static const tactic_case_t whole[] = {
    WHOLE("x int32[3,40]", "ReduceSum n x -> y"),
    WHOLE("x int64[3,4,5]", "ReduceMax n x -> y | axes=1"),
    WHOLE("x int64[7]", "ReduceProd n x -> y | keepdims=0"),
    WHOLE("x int64[6,7]", "ReduceMean n x -> y | axes=0"),
    ROW("of bytes", 18, {"x uint8[6,7]"}, {"a int64[1] 1"}, "ReduceMin n x a -> y", "reduce_whole",
        0, 0),
    WHOLE("x float[5,40]", "ArgMax n x -> y | axis=1"),
    WHOLE("x float[5,300,3]", "ArgMin n x -> y | axis=1 keepdims=0"),
    WHOLE("x int32[5,4]", "ArgMax n x -> y | axis=0"),
    ROW("ties", 17, {"x float[2,7] 3 1 3 2 3 0 1  -5 -5 -6 -6 -6 0 -0"}, {0},
        "ArgMax n x -> y | axis=1", "reduce_whole", 0, 0),
    ROW("the last of ties", 17, {"x float[2,7] 3 1 3 2 3 0 1  -5 -5 -6 -6 -6 -0 0"}, {0},
        "ArgMin n x -> y | axis=1 select_last_index=1", "reduce_whole", 0, 0),
    SPECIAL("specials", "x float[36,3]", "ArgMax n x -> y | axis=1", "reduce_whole", 0),
    SPECIAL("special minima", "x float[36,3]", "ArgMin n x -> y | axis=0", "reduce_whole", 0),
};

#define SCAN(x, axis, node) ROW(x " " node, 17, {x}, {"a int64[] " axis}, node, "scan", 0, 0)
static const tactic_case_t scans[] = {
    SCAN("x float[3,100]", "1", "CumSum n x a -> y"),
    SCAN("x float[3,7,9]", "1", "CumSum n x a -> y | exclusive=1"),
    SCAN("x float[40]", "0", "CumSum n x a -> y | reverse=1"),
    SCAN("x float[2,33]", "-1", "CumSum n x a -> y | reverse=1 exclusive=1"),
    SCAN("x int32[2,33]", "-1", "CumSum n x a -> y | exclusive=1"),
    SCAN("x int64[5,3]", "0", "CumSum n x a -> y"),
};

#define TOPK(x, k, node) \
  { {x " " k " " node, 17, {x}, {"k int64[1] " k}, {node}, "y i"}, "sort", 0, false }
static const tactic_case_t sorts[] = {
    TOPK("x float[3,7]", "2", "TopK n x k -> y i"),
    TOPK("x float[3,100]", "100", "TopK n x k -> y i | largest=0"),
    TOPK("x float[3,70,4]", "5", "TopK n x k -> y i | axis=1"),
    TOPK("x float[2,9000]", "11", "TopK n x k -> y i"),
    TOPK("x float[1,9000]", "3000", "TopK n x k -> y i"),
    TOPK("x int32[4,9]", "3", "TopK n x k -> y i"),
    TOPK("x int64[7] 5 -9223372036854775808 9223372036854775807 5 4294967296 4294967295 -1", "7",
         "TopK n x k -> y i"),
    TOPK("x uint64[5] 5 18446744073709551615 9223372036854775808 5 9223372036854775807", "4",
         "TopK n x k -> y i | largest=0"),
    TOPK("x int64[2,9000]", "11", "TopK n x k -> y i"),
    TOPK("x int64[1,9000]", "3000", "TopK n x k -> y i"),
    TOPK("x int64[3,70,4]", "5", "TopK n x k -> y i | axis=1"),
    TOPK("x uint8[4,9]", "3", "TopK n x k -> y i"),
    {{"special", 17, {"x float[3,24]"}, {"k int64[1] 24"}, {"TopK n x k -> y i"}, "y i"},
     "sort",
     0,
     true},
    {{"ties", 17, {"x float[8] 3 1 3 2 0 -0 0 3"}, {"k int64[1] 8"}, {"TopK n x k -> y i"}, "y i"},
     "sort",
     0,
     false},
};

#define TEST(rows)                                     \
  static void rows##_agree(void** state) {             \
    (void)state;                                       \
    tactic_case_all(rows, sizeof rows / sizeof *rows); \
  }
TEST(softmaxes)
TEST(norms)
TEST(reductions)
TEST(whole)
TEST(scans)
TEST(sorts)

// ---- the same bits alone and in a batch ---------------------------------------------------------

// A layer on [%d, ...] for batches of 1 and 8.
typedef struct batch_case {
  const char *input, *others[2], *node;
} batch_case_t;

static const batch_case_t batches[] = {
    {"x float[%d,33]", {NULL}, "Softmax n x -> y"},
    {"x float[%d,5000]", {NULL}, "Softmax n x -> y"},
    {"x float[%d,40,7]", {NULL}, "Softmax n x -> y | axis=1"},
    {"x float[%d,768]", {"s float[768]"}, "LayerNormalization n x s -> y"},
    {"x float[%d,6,5,5]", {"s float[6]", "b float[6]"}, "InstanceNormalization n x s b -> y"},
    {"x float[%d,70000]", {NULL}, "ReduceMean n x -> y | axes=1"},
    {"x float[%d,300,5]", {NULL}, "ReduceMean n x -> y | axes=1"},
    {"x float[%d,90,512]", {NULL}, "ReduceMean n x -> y | axes=1"},
    {"x float[%d,1100,64]", {NULL}, "ReduceMean n x -> y | axes=1"},
    {"x float[%d,3,9,9]", {NULL}, "GlobalAveragePool n x -> y"},
};

// in: what the first run had, which then is begun with; NULL elements: nothing yet.
static void run_batch(const batch_case_t* c, int n, assay_tensor_t** in, tactic_run_t* r) {
  char input[64];
  snprintf(input, sizeof input, c->input, n);
  const graph_case_t graph = {c->node, 17,        {input, c->others[0], c->others[1]},
                              {NULL},  {c->node}, "y"};
  assay_tensor_t* own[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, own);
  for (size_t i = 0; own[i]; i++) {
    if (in[i]) memcpy(own[i]->data, in[i]->data, (size_t)own[i]->size * sizeof(double));
    if (!in[i]) in[i] = assay_tensor_retain(own[i]);
  }
  tactic_case_run(m, "cuda", ASSAY_FORMAT_FP32, own, r);
  graph_case_release(own);
  assay_model_release(m);
}

static void batches_change_nothing(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
    tactic_run_t eight, one;
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    run_batch(&batches[i], 8, in, &eight);
    run_batch(&batches[i], 1, in, &one);
    if (memcmp(eight.out[0]->data, one.out[0]->data, (size_t)one.out[0]->size * sizeof(double)))
      fail_msg("%s: a sample's bits depend on its batch", batches[i].node);
    graph_case_release(in);
    tactic_case_release(&eight);
    tactic_case_release(&one);
  }
}

// ---- the order of sums across rows
// ---------------------------------------------------------------

// Every 32nd term is one thread's; what the threads have is joined in order.
static float sum_of_column(const assay_tensor_t* x, int64_t column) {
  enum { SHARES = 32 };
  float sum = 0;
  for (int share = 0; share < SHARES; share++) {
    float own = 0;
    for (int64_t i = share; i < x->dims[0]; i += SHARES)
      own += (float)assay_f64(x)[i * x->dims[1] + column];
    sum = share ? sum + own : own;
  }
  return sum;
}

static void sums_across_keep_their_order(void** state) {
  static const char* const inputs[] = {"x float[300,3]", "x float[700,16]", "x float[1024,72]",
                                       "x float[257,2100]"};
  (void)state;
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    const graph_case_t graph = {
        "order", 13, {inputs[i]}, {"a int64[1] 0"}, {"ReduceSum n x a -> y"}, "y"};
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&graph, in);
    tactic_run_t run;
    tactic_case_run(m, "cuda", ASSAY_FORMAT_FP32, in, &run);
    for (int64_t c = 0; c < in[0]->dims[1]; c++) {
      const float want = sum_of_column(in[0], c);
      if (assay_f64(run.out[0])[c] != (double)want)
        fail_msg("%s: column %lld is %a, not %a", inputs[i], (long long)c, assay_f64(run.out[0])[c],
                 (double)want);
    }
    tactic_case_release(&run);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// A layer that a fix keeps in fp32 reads what one of fp16 has made, and runs on the device all the
// same: 200 times 1000 is past fp16's end.
static void sums_in_fp32_of_fp16(void** state) {
  (void)state;
  static const graph_case_t c = {
      "sums", 17, {"x float[2,200]"}, {"a int64[] 1"}, {"Relu r x -> h", "CumSum n h a -> y"}, "y"};
  assay_precision_rule_t rule = {"n", ASSAY_FORMAT_FP32};
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP16, .rules = &rule, .n_rules = 1};
  const assay_plan_options_t options = {.fused = true};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&c, in);
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  for (int64_t i = 0; i < in[0]->size; i++) assay_f64(in[0])[i] = 1000;
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find("cuda"), NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  op_case_ok(assay_executor_set(e, g->inputs[0], in[0]));
  op_case_ok(assay_executor_run(e));
  assert_string_equal(assay_executor_tactic(e, assay_executor_n_steps(e) - 1), "scan");
  const assay_tensor_t* y = assay_executor_get(e, g->outputs[0]);
  for (int64_t i = 0; i < y->size; i++)
    assert_true(assay_tensor_element(y, i) == (double)(1000 * (i % 200 + 1)));
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
  graph_case_release(in);
  assay_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(softmaxes_agree),
                                     cmocka_unit_test(norms_agree),
                                     cmocka_unit_test(reductions_agree),
                                     cmocka_unit_test(whole_agree),
                                     cmocka_unit_test(scans_agree),
                                     cmocka_unit_test(sums_in_fp32_of_fp16),
                                     cmocka_unit_test(sorts_agree),
                                     cmocka_unit_test(batches_change_nothing),
                                     cmocka_unit_test(sums_across_keep_their_order)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
