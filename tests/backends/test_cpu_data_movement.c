// Layers that move elements: bit for bit what the emulated engine gives, in every element size,
// from and to channels-last, at the edges of blocks and tiles.
#include "backends/tactic_case.h"

#define MOVE(name, opset, x, constants, node) \
  { {name, opset, {x}, constants, {node}, "y"}, "data_movement", 0, true }
#define NONE \
  { 0 }
#define LIST(...) \
  { __VA_ARGS__ }

static const tactic_case_t transposes[] = {
    MOVE("a matrix", 17, "x float[37,53]", NONE, "Transpose n x -> y"),
    MOVE("a large matrix", 17, "x float[600,700]", NONE, "Transpose n x -> y"),
    MOVE("heads", 17, "x float[2,17,3,40]", NONE, "Transpose n x -> y | perm=0,2,1,3"),
    MOVE("heads, transposed", 17, "x float[2,17,3,40]", NONE, "Transpose n x -> y | perm=0,2,3,1"),
    MOVE("backwards", 17, "x float[2,9,8,11]", NONE, "Transpose n x -> y"),
    MOVE("bytes", 17, "x uint8[15,17]", NONE, "Transpose n x -> y"),
    MOVE("bools", 17, "x bool[2,3] 1 0 0 1 1 0", NONE, "Transpose n x -> y"),
    MOVE("int64", 17, "x int64[19,21]", NONE, "Transpose n x -> y"),
    MOVE("int32", 17, "x int32[9,10,11]", NONE, "Transpose n x -> y | perm=1,2,0"),
    MOVE("double", 17, "x double[19,21]", NONE, "Transpose n x -> y"),
    MOVE("fp16", 17, "x float16[19,21]", NONE, "Transpose n x -> y"),
    MOVE("rank 0", 17, "x float[]", NONE, "Transpose n x -> y"),
    MOVE("empty", 17, "x float[3,0,2]", NONE, "Transpose n x -> y"),
    MOVE("to channels last", 17, "x float[2,5,6,7]", NONE, "Transpose n x -> y | perm=0,2,3,1"),
    MOVE("from channels last", 17, "x float[2,5,6,7]", NONE, "Transpose n x -> y | perm=0,3,1,2"),
    {{"there and back",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "Transpose t h -> p | perm=0,2,3,1", "Transpose u p -> y | perm=0,3,1,2"},
      "y"},
     "data_movement",
     1e-6,
     false},
    {{"of channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "Transpose t h -> y | perm=2,0,1,3"},
      "y"},
     "data_movement",
     1e-6,
     false},
};

static const tactic_case_t joins[] = {
    {{"Concat", 17, {"a float[3,2]", "b float[3,5]"}, {0}, {"Concat n a b a -> y | axis=1"}, "y"},
     "data_movement",
     0,
     true},
    {{"Concat, empty",
      17,
      {"a float[3,2]", "b float[0,2]"},
      {0},
      {"Concat n a b -> y | axis=-2"},
      "y"},
     "data_movement",
     0,
     true},
    {{"Split",
      17,
      {"x float[3,7,2]"},
      {"s int64[3] 2 0 5"},
      {"Split n x s -> a b c | axis=1"},
      "a b c"},
     "data_movement",
     0,
     true},
    {{"Concat of channels last",
      17,
      {"x float[2,3,5,6]", "z float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "Concat n h z h -> y | axis=1"},
      "y"},
     "data_movement",
     1e-6,
     false},
    {{"Concat of rows, channels last",
      17,
      {"x float[2,3,5,6]", "z float[2,4,2,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "Concat n h z -> y | axis=2"},
      "y"},
     "data_movement",
     1e-6,
     false},
    {{"Split of channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {"Conv c x w -> h", "Split n h -> a b | axis=1"},
      "a b"},
     "data_movement",
     1e-6,
     false},
};

#define SLICE(name, x, starts, ends, axes, steps)                         \
  {                                                                       \
    {name,                                                                \
     17,                                                                  \
     {x},                                                                 \
     {"s int64" starts, "e int64" ends, "a int64" axes, "t int64" steps}, \
     {"Slice n x s e a t -> y"},                                          \
     "y"},                                                                \
        "data_movement", 0, true                                          \
  }
static const tactic_case_t slices[] = {
    SLICE("inner", "x float[4,9]", "[1] 2", "[1] 7", "[1] 1", "[1] 1"),
    SLICE("step", "x float[4,19]", "[1] 2", "[1] -1", "[1] -1", "[1] 3"),
    SLICE("backwards", "x float[4,9]", "[2] -1 7", "[2] -100 1", "[2] 0 1", "[2] -1 -2"),
    SLICE("past the ends", "x float[4,9]", "[1] -100", "[1] 9223372036854775807", "[1] 1", "[1] 1"),
    SLICE("nothing", "x float[4,9]", "[1] 5", "[1] 5", "[1] 1", "[1] 1"),
    SLICE("a step past the end", "x int64[4,9]", "[1] 0", "[1] 9", "[1] 1", "[1] 2000000000"),
    {{"by attributes",
      9,
      {"x float[4,9]"},
      {0},
      {"Slice n x -> y | starts=1,-5 ends=3,-1 axes=0,1"},
      "y"},
     "data_movement",
     0,
     true},
    {{"of channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]", "s int64[1] 1", "e int64[1] 3", "a int64[1] 1"},
      {"Conv c x w -> h", "Slice n h s e a -> y"},
      "y"},
     "data_movement",
     1e-6,
     false},
};

#define PAD(name, opset, x, pads, mode)                                                          \
  {                                                                                              \
    {name, opset, {x}, {"p int64" pads}, {"Pad n x p -> y | mode=" mode}, "y"}, "data_movement", \
        0, true                                                                                  \
  }
static const tactic_case_t pads[] = {
    PAD("constant", 17, "x float[3,4]", "[4] 1 2 0 3", "constant"),
    PAD("bytes", 17, "x uint8[3,4]", "[4] 1 2 0 3", "constant"),
    PAD("crop", 17, "x float[5,6]", "[4] -1 2 0 -3", "constant"),
    PAD("empty", 17, "x float[0,2]", "[4] 1 0 1 1", "constant"),
    PAD("reflect", 17, "x float[2,5,6]", "[6] 0 4 2 0 1 5", "reflect"),
    PAD("edge", 17, "x float[2,5,6]", "[6] 1 4 2 0 1 9", "edge"),
    PAD("wrap", 19, "x float[2,5,6]", "[6] 1 4 2 0 1 6", "wrap"),
    {{"a value",
      17,
      {"x float[3,4]"},
      {"p int64[4] 1 2 0 3", "v float[] 0.3"},
      {"Pad n x p v -> y"},
      "y"},
     "data_movement",
     0,
     true},
    {{"an int64 value",
      17,
      {"x int64[3,4]"},
      {"p int64[4] 1 2 0 3", "v int64[] -5"},
      {"Pad n x p v -> y"},
      "y"},
     "data_movement",
     0,
     true},
    {{"axes",
      18,
      {"x float[3,4]"},
      {"p int64[2] 1 2", "a int64[1] -1"},
      {"Pad n x p _ a -> y"},
      "y"},
     "data_movement",
     0,
     true},
    {{"by attributes", 10, {"x float[3,4]"}, {0}, {"Pad n x -> y | pads=1,0,2,1 value=0.7"}, "y"},
     "data_movement",
     0,
     true},
    {{"of channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]", "p int64[8] 0 1 1 1 0 0 2 2"},
      {"Conv c x w -> h", "Pad n h p -> y"},
      "y"},
     "data_movement",
     1e-6,
     false},
};

static const tactic_case_t others[] = {
    {{"Expand", 17, {"x float[3,1,2]"}, {"s int64[4] 2 1 4 1"}, {"Expand n x s -> y"}, "y"},
     "data_movement",
     0,
     true},
    {{"Expand of a scalar", 17, {"x float[]"}, {"s int64[2] 3 4"}, {"Expand n x s -> y"}, "y"},
     "data_movement",
     0,
     true},
    {{"Tile", 17, {"x float[3,2,5]"}, {"r int64[3] 2 1 3"}, {"Tile n x r -> y"}, "y"},
     "data_movement",
     0,
     true},
    {{"Tile by nothing", 17, {"x float[3,2]"}, {"r int64[2] 2 0"}, {"Tile n x r -> y"}, "y"},
     "data_movement",
     0,
     true},
    MOVE("DepthToSpace", 17, "x float[2,12,3,5]", NONE, "DepthToSpace n x -> y | blocksize=2"),
    MOVE("DepthToSpace, CRD", 17, "x float[2,12,3,5]", NONE,
         "DepthToSpace n x -> y | blocksize=2 mode=CRD"),
    MOVE("SpaceToDepth", 17, "x float[2,3,6,9]", NONE, "SpaceToDepth n x -> y | blocksize=3"),
    {{"DepthToSpace of channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[8,3,1,1]"},
      {"Conv c x w -> h", "DepthToSpace n h -> y | blocksize=2 mode=CRD"},
      "y"},
     "data_movement",
     1e-6,
     false},
    {{"Gather", 17, {"i int64[2,3] 0 -1 2 4 4 -5"}, {"t float[5,7]"}, {"Gather n t i -> y"}, "y"},
     "gather",
     0,
     false},
    {{"Gather inside",
      17,
      {"x float[3,5,2]", "i int32[2] 4 -5"},
      {0},
      {"Gather n x i -> y | axis=-2"},
      "y"},
     "gather",
     0,
     true},
    {{"Gather of one",
      17,
      {"x int64[3,5,2]", "i int64[] 1"},
      {0},
      {"Gather n x i -> y | axis=1"},
      "y"},
     "gather",
     0,
     true},
    {{"Gather of nothing", 17, {"x float[3,5]", "i int64[0]"}, {0}, {"Gather n x i -> y"}, "y"},
     "gather",
     0,
     true},
};

#define TEST(rows)                                     \
  static void rows##_agree(void** state) {             \
    (void)state;                                       \
    tactic_case_all(rows, sizeof rows / sizeof *rows); \
  }
TEST(transposes)
TEST(joins)
TEST(slices)
TEST(pads)
TEST(others)

static void indices_out_of_range_are_errors(void** state) {
  (void)state;
  static const char* const indices[] = {"i int64[2] 0 5", "i int64[2] -6 0"};
  for (int i = 0; i < 2; i++) {
    const graph_case_t row = {
        "Gather", 17, {"x float[5,7]", indices[i]}, {0}, {"Gather n x i -> y"}, "y"};
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&row, in);
    tactic_run_t r;
    assay_status_t st = tactic_case_try(m, "cpu", ASSAY_FORMAT_FP32, in, &r);
    assert_non_null(st);
    assert_non_null(strstr(assay_status_message(st), "expected -5 to 4"));
    assay_status_free(st);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transposes_agree), cmocka_unit_test(joins_agree),
      cmocka_unit_test(slices_agree),     cmocka_unit_test(pads_agree),
      cmocka_unit_test(others_agree),     cmocka_unit_test(indices_out_of_range_are_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
