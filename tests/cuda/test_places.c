// Layers that gather and scatter by indices, on a GPU that is not there (fake/): the emulated
// engine's bits, duplicates in their order; indices that are out of the data.
#include <stdlib.h>

#include "backends/tactic_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, opset, inputs, node, tactic) \
  { {name, opset, inputs, {0}, {node}, "y"}, tactic, 0, false }

#define GATHER(name, inputs, node) ROW(name, 17, LIST(inputs), node, "gather_places")
#define AND ,
static const tactic_case_t gathers[] = {
    GATHER("elements of rows", "x float[3,5]" AND "i int64[3,4] 0 4 -1 2  1 1 1 -5  3 2 1 0",
           "GatherElements n x i -> y | axis=1"),
    GATHER("fewer than the data has", "x float[4,3,5]" AND "i int32[2,3,1] 4 -5 0 1 2 3",
           "GatherElements n x i -> y | axis=2"),
    GATHER("more along the axis", "x float[2,3]" AND "i int64[5,2] 0 1 1 0 -1 -2 0 0 1 1",
           "GatherElements n x i -> y"),
    GATHER("in the middle",
           "x int8[2,3,2] 1 2 3 4 5 6 7 8 9 10 11 12" AND "i int64[2,2,2] 0 1 2 -1  1 1 0 -3",
           "GatherElements n x i -> y | axis=1"),
    GATHER("tuples", "x float[3,4,6]" AND "i int64[2,2] 0 1 -1 -4", "GatherND n x i -> y"),
    GATHER("tuples of all", "x float[3,4]" AND "i int64[2,3,2] 0 0 1 1 2 2 0 3 -3 -4 2 0",
           "GatherND n x i -> y"),
    GATHER("tuples of none", "x float[3,4]" AND "i int64[5,0]", "GatherND n x i -> y"),
    GATHER("batches", "x float[2,3,5]" AND "i int64[2,4,1] 0 1 2 -1  -3 0 0 1",
           "GatherND n x i -> y | batch_dims=1"),
    GATHER("two batches", "x int32[2,2,3] 1 2 3 4 5 6 7 8 9 10 11 12" AND "i int64[2,2,1] 0 2 1 -1",
           "GatherND n x i -> y | batch_dims=2"),
    {{"of constants", 17, {"x float[3,8]"}, {"i int64[2,1] 2 0"}, {"GatherND n x i -> y"}, "y"},
     "gather_places",
     0,
     true},
};

#define SCATTER(name, inputs, node) ROW(name, 18, LIST(inputs), node, "scatter")
#define TWELVE "1 2 3 4 5 6 7 8 9 10 11 12"
#define ALL(reduction)                                                                            \
  SCATTER("elements, " reduction,                                                                 \
          "x float[3,5]" AND "i int64[4,3] 0 1 2 0 1 -1 0 -2 1 2 2 2" AND "u float[4,3]",         \
          "ScatterElements n x i u -> y | reduction=" reduction),                                 \
      SCATTER("slices, " reduction,                                                               \
              "x float[4,7]" AND "i int64[6,1] 1 3 1 -1 1 0" AND "u float[6,7]",                  \
              "ScatterND n x i u -> y | reduction=" reduction),                                   \
      SCATTER("bytes, " reduction,                                                                \
              "x int8[5] 100 -100 3 0 7" AND "i int64[6,1] 0 1 0 1 2 2" AND                       \
              "u int8[6] 100 -100 9 3 -4 5",                                                      \
              "ScatterND n x i u -> y | reduction=" reduction),                                   \
      SCATTER("wide numbers, " reduction,                                                         \
              "x int64[2,3] 1 2 3 4 5 6" AND "i int64[2,2] 0 1 1 1" AND "u int64[2,2] 7 -8 9 -1", \
              "ScatterElements n x i u -> y | axis=1 reduction=" reduction),                      \
  {                                                                                               \
    {"special, " reduction,                                                                       \
     18,                                                                                          \
     LIST("x float[36]",                                                                          \
          "i int64[36,1] 0 1 2 3 4 5 0 1 2 3 4 5 0 1 2 3 4 5 0 1 2 3 4 5 "                        \
          "0 1 2 3 4 5 0 1 2 3 4 5",                                                              \
          "u float[36]"),                                                                         \
     {0},                                                                                         \
     {"ScatterND n x i u -> y | reduction=" reduction},                                           \
     "y"},                                                                                        \
        "scatter", 0, true                                                                        \
  }
static const tactic_case_t scatters[] = {
    ALL("none"),
    ALL("add"),
    ALL("mul"),
    ALL("max"),
    ALL("min"),
    ROW("an older one", 13, LIST("x float[3,4]", "i int32[2,2] 1 1 1 0", "u float[2,2]"),
        "ScatterElements n x i u -> y | axis=1", "scatter"),
    ROW("Scatter", 9, LIST("x float[3,4]", "i int64[1,4] 2 0 1 2", "u float[1,4]"),
        "Scatter n x i u -> y", "scatter"),
    SCATTER("truths", "x bool[4] 0 1 0 1" AND "i int64[3,1] 0 0 3" AND "u bool[3] 0 1 0",
            "ScatterND n x i u -> y"),
    SCATTER("tuples of all", "x float[3,4]" AND "i int64[3,2] 0 0 -1 -1 0 0" AND "u float[3]",
            "ScatterND n x i u -> y | reduction=add"),
    SCATTER("wide slices", "x float[3,2,8]" AND "i int64[2,1] 2 2" AND "u float[2,2,8]",
            "ScatterND n x i u -> y"),
    {{"of constants",
      18,
      LIST("x float[3,8]", "u float[2,8]"),
      {"i int64[2,1] 2 0"},
      {"ScatterND n x i u -> y"},
      "y"},
     "scatter",
     0,
     false},
};

#define PATTERN(name, opset, inputs, constants, node) \
  { {name, opset, LIST(inputs), {constants}, {node}, "y"}, "patterns", 0, false }
static const tactic_case_t patterns[] = {
    PATTERN("one hot", 17, "i int64[2,3] 0 1 4 -1 5 -6" AND "v float[2]", "d int64[] 5",
            "OneHot n i d v -> y"),
    PATTERN("one hot, first axis", 17, "i int32[2,3] 0 1 4 -1 5 -6" AND "v float[2]", "d int64[] 5",
            "OneHot n i d v -> y | axis=0"),
    PATTERN("one hot, in the middle", 17, "i int8[2,3] 0 1 2 -1 3 -4" AND "v int64[2] 7 -9",
            "d int64[] 3", "OneHot n i d v -> y | axis=1"),
    PATTERN("one hot, an older one", 9, "i int64[4] 0 -1 2 3" AND "v float[2]", "d int64[] 3",
            "OneHot n i d v -> y"),
    PATTERN("one hot of floats", 17, "i float[4] 0.5 -1.5 2.75 3" AND "v bool[2] 0 1",
            "d float[] 3", "OneHot n i d v -> y"),
    PATTERN("upper triangle", 17, "x float[2,4,5]", NULL, "Trilu n x -> y"),
    PATTERN("lower triangle", 17, "x float[3,4]" AND "k int64[] 1", NULL,
            "Trilu n x k -> y | upper=0"),
    PATTERN("below the diagonal", 17, "x int64[3,3] 1 2 3 4 5 6 7 8 9" AND "k int64[] -1", NULL,
            "Trilu n x k -> y"),
    PATTERN("beyond the corners", 17, "x int8[2,2] 1 2 3 4" AND "k int64[] 9223372036854775807",
            NULL, "Trilu n x k -> y"),
    PATTERN("all of it", 17, "x bool[2,3] 1 1 1 1 1 1" AND "k int64[] -9223372036854775808", NULL,
            "Trilu n x k -> y"),
    PATTERN("diagonal", 17, "x float[3,5]", NULL, "EyeLike n x -> y | k=1"),
    PATTERN("diagonal below", 17, "x int32[3,2] 0 0 0 0 0 0", NULL,
            "EyeLike n x -> y | k=-2 dtype=7"),
    {{"special triangle", 17, {"x float[6,6]"}, {0}, {"Trilu n x -> y | upper=0"}, "y"},
     "patterns",
     0,
     true},
};

static void patterns_agree(void** state) {
  (void)state;
  tactic_case_all(patterns, sizeof patterns / sizeof *patterns);
}

static void gathers_agree(void** state) {
  (void)state;
  tactic_case_all(gathers, sizeof gathers / sizeof *gathers);
}
static void scatters_agree(void** state) {
  (void)state;
  tactic_case_all(scatters, sizeof scatters / sizeof *scatters);
}

// Many updates of few slices: more than one block sorts; their sums are those of the emulated
// engine, which adds one after the other.
static void many_updates_have_an_order(void** state) {
  (void)state;
  enum { N = 9000, SLICES = 7 };
  static const char* const reductions[] = {"add", "none"};
  for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++) {
    char node[96];
    snprintf(node, sizeof node, "ScatterElements n x i u -> y | reduction=%s", reductions[r]);
    const graph_case_t graph = {"many", 18,     {"x float[7]", "i int64[9000]", "u float[9000]"},
                                {NULL}, {node}, "y"};
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&graph, in);
    tactic_run_t want, got;
    for (int64_t i = 0; i < N; i++) assay_i64(in[1])[i] = i * i % 31 % SLICES;
    tactic_case_run(m, "emu", ASSAY_FORMAT_FP32, in, &want);
    tactic_case_run(m, "cuda", ASSAY_FORMAT_FP32, in, &got);
    assert_true(tactic_case_is_by(got.tactic, "scatter"));
    tactic_case_compare(reductions[r], "fp32", want.out[0], got.out[0], 0);
    tactic_case_release(&want);
    tactic_case_release(&got);
    graph_case_release(in);
    assay_model_release(m);
  }
}

static const struct {
  const char *indices, *others, *node, *message;
} out_of_range[] = {
    {"i int64[2,2] 0 1 -4 0", NULL, "GatherElements n x i -> y",
     "index -4 at element 2, dim 0 of the data has size 3"},
    {"i int64[2,2] 0 1 2 4", NULL, "GatherND n x i -> y",
     "index 4 at element 3, dim 1 of the data has size 4"},
    {"i int64[1,1] 3", "u float[1,4]", "ScatterND n x i u -> y",
     "index 3 at element 0, dim 0 of the data has size 3"},
    {"i int64[1,2] 0 -5", "u float[1,2]", "ScatterElements n x i u -> y | axis=1 reduction=add",
     "index -5 at element 1, dim 1 of the data has size 4"},
};

static void indices_out_of_range_are_errors(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof out_of_range / sizeof *out_of_range; i++)
    for (int constant = 0; constant < 2; constant++) {
      const char *u = out_of_range[i].others, *ix = out_of_range[i].indices;
      const graph_case_t graph = {"out of range",
                                  18,
                                  {"x float[3,4]", constant ? u : ix, constant ? NULL : u},
                                  {constant ? ix : NULL},
                                  {out_of_range[i].node},
                                  "y"};
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&graph, in);
      tactic_run_t r;
      assay_status_t st = tactic_case_try(m, "cuda", ASSAY_FORMAT_FP32, in, &r);
      if (!st || !strstr(assay_status_message(st), out_of_range[i].message))
        fail_msg("%s: %s", out_of_range[i].message, st ? assay_status_message(st) : "no error");
      assay_status_free(st);
      graph_case_release(in);
      assay_model_release(m);
    }
}

// Runs that are captured, too: the error is that of the run with the index, and of no other.
static void each_run_is_looked_at(void** state) {
  static const graph_case_t graph = {
      "runs", 18, {"x float[3,4]", "i int64[2] 0 2"}, {NULL}, {"Gather n x i -> y"}, "y"};
  static const int64_t indices[] = {2, 1, 0, 3, 1, 2, -4, 0, -3};
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t options = {.fused = true};
  const assay_backend_options_t choice = {0};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, in);
  assay_plan_t* plan = NULL;
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  (void)state;
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(assay_engine_create(plan, assay_backend_find("cuda"), &choice, &engine));
  op_case_ok(assay_executor_run_engine(engine, NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  for (size_t k = 0; k < sizeof indices / sizeof *indices; k++) {
    const bool there = indices[k] >= -3 && indices[k] < 3;
    assay_i64(in[1])[1] = indices[k];
    for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
    assay_status_t st = assay_executor_run(e);
    if (there != !st || (st && !strstr(assay_status_message(st), "at element 1, dim 0")))
      fail_msg("run %zu: %s", k, st ? assay_status_message(st) : "no error");
    assay_status_free(st);
  }
  assay_executor_destroy(e);
  assay_engine_release(engine);
  graph_case_release(in);
  assay_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gathers_agree),
                                     cmocka_unit_test(scatters_agree),
                                     cmocka_unit_test(patterns_agree),
                                     cmocka_unit_test(many_updates_have_an_order),
                                     cmocka_unit_test(indices_out_of_range_are_errors),
                                     cmocka_unit_test(each_run_is_looked_at)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
