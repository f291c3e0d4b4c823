// Rows and reductions: axes, layouts, normalizations, special values, sizes beside lanes and tiles.
#include "backends/tactic_case.h"

#define SOFTMAX(name, opset, x, node, specials) \
  { {name, opset, {x}, {0}, {node}, "y"}, "rows", 3e-6, specials }
#define CONV "Conv c x w -> h"

static const tactic_case_t softmaxes[] = {
    SOFTMAX("last axis", 17, "x float[5,131]", "Softmax n x -> y", false),
    SOFTMAX("last axis, special values", 17, "x float[36,3]", "Softmax n x -> y", true),
    SOFTMAX("logarithm", 17, "x float[5,531]", "LogSoftmax n x -> y", false),
    SOFTMAX("logarithm, special values", 17, "x float[36,3]", "LogSoftmax n x -> y", true),
    SOFTMAX("inner axis", 17, "x float[3,7,300]", "Softmax n x -> y | axis=1", false),
    SOFTMAX("inner axis, special values", 17, "x float[3,36]", "Softmax n x -> y | axis=0", true),
    SOFTMAX("inner axis, logarithm", 17, "x float[3,7,30]", "LogSoftmax n x -> y | axis=-2", false),
    SOFTMAX("flat", 11, "x float[3,7,30]", "Softmax n x -> y | axis=1", false),
    SOFTMAX("of one", 17, "x float[3,1]", "Softmax n x -> y", false),
    SOFTMAX("many rows", 17, "x float[700,197]", "Softmax n x -> y", false),
    {{"channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {CONV, "Softmax n h -> y | axis=1"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"columns, channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {CONV, "Softmax n h -> y | axis=3"},
      "y"},
     "rows",
     3e-6,
     false},
};

static const tactic_case_t norms[] = {
    {{"LayerNormalization",
      17,
      {"x float[4,5,67]"},
      {"s float[67]", "b float[67]"},
      {"LayerNormalization n x s b -> y"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"LayerNormalization, special values",
      17,
      {"x float[36,3]"},
      {"s float[3]", "b float[3]"},
      {"LayerNormalization n x s b -> y"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"LayerNormalization, no bias",
      17,
      {"x float[4,5,6]"},
      {"s float[5,6]"},
      {"LayerNormalization n x s -> y | axis=1"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"RMSNormalization",
      23,
      {"x float[4,5,67]"},
      {"s float[67]"},
      {"RMSNormalization n x s -> y"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"InstanceNormalization",
      17,
      {"x float[3,4,5,7]"},
      {"s float[4]", "b float[4]"},
      {"InstanceNormalization n x s b -> y"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"GroupNormalization",
      21,
      {"x float[3,6,5,7]"},
      {"s float[6]", "b float[6]"},
      {"GroupNormalization n x s b -> y | num_groups=2"},
      "y"},
     "rows",
     3e-6,
     false},
    {{"LayerNormalization of work for threads",
      17,
      {"x float[300,768]"},
      {"s float[768]", "b float[768]"},
      {"LayerNormalization n x s b -> y"},
      "y"},
     "rows",
     3e-6,
     false},
};

#define REDUCE(op, node) \
  { {op, 17, {"x float[3,4,5,6]"}, {0}, {op " n x -> y" node}, "y"}, "reduce", 2e-6, false }
#define SPECIAL(op)                                                                              \
  {{op, 17, {"x float[36,3]"}, {0}, {op " n x -> y | axes=1"}, "y"}, "reduce", 2e-6, true}, {    \
    {op, 17, {"x float[3,36]"}, {0}, {op " n x -> y | axes=0 keepdims=0"}, "y"}, "reduce", 2e-6, \
        true                                                                                     \
  }

static const tactic_case_t reductions[] = {
    REDUCE("ReduceMean", " | axes=3"),
    REDUCE("ReduceMean", " | axes=1 keepdims=0"),
    REDUCE("ReduceMean", " | axes=0,2"),
    REDUCE("ReduceMean", " | axes=0,1,3 keepdims=0"),
    REDUCE("ReduceMean", ""),
    REDUCE("ReduceProd", " | axes=-1,-2"),
    REDUCE("ReduceL1", " | axes=-1,0"),
    REDUCE("ReduceL2", " | axes=1,2,3"),
    REDUCE("ReduceSumSquare", " | axes=2"),
    REDUCE("ReduceLogSumExp", " | axes=2"),
    REDUCE("ReduceLogSumExp", " | axes=3"),
    SPECIAL("ReduceMax"),
    SPECIAL("ReduceMin"),
    SPECIAL("ReduceMean"),
    SPECIAL("ReduceL1"),
    SPECIAL("ReduceLogSumExp"),
    {{"a long row", 17, {"x float[2,5000]"}, {0}, {"ReduceMean n x -> y | axes=1"}, "y"},
     "reduce",
     2e-6,
     false},
    {{"long columns", 17, {"x float[300,1300]"}, {0}, {"ReduceMean n x -> y | axes=0"}, "y"},
     "reduce",
     2e-6,
     false},
    {{"axes as input", 18, {"x float[3,4,5]"}, {"a int64[2] 0 -1"}, {"ReduceMax n x a -> y"}, "y"},
     "reduce",
     0,
     false},
    {{"a scalar", 17, {"x float[]"}, {0}, {"ReduceMax n x -> y"}, "y"}, "reduce", 0, false},
    {{"over channels, channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {CONV, "ReduceMean n h -> y | axes=1"},
      "y"},
     "reduce",
     2e-6,
     false},
    {{"over columns, channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {CONV, "ReduceMean n h -> y | axes=3 keepdims=0"},
      "y"},
     "reduce",
     2e-6,
     false},
    {{"over samples, channels last",
      17,
      {"x float[2,3,5,6]"},
      {"w float[4,3,1,1]"},
      {CONV, "ReduceMean n h -> y | axes=0,2"},
      "y"},
     "reduce",
     2e-6,
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(softmaxes_agree),
                                     cmocka_unit_test(norms_agree),
                                     cmocka_unit_test(reductions_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
