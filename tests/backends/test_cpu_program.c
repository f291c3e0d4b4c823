// Pointwise programs: every broadcast, every type that streams may have, functions at their special
// values, sizes beside tiles and threads.
#include "backends/tactic_case.h"

#define UNARY(name, opset, node) \
  { {name, opset, {"x float[7,53]"}, {0}, {node}, "y"}, "pointwise", 2e-6, true }

static const tactic_case_t functions[] = {
    UNARY("Abs", 17, "Abs n x -> y"),
    UNARY("Sign", 17, "Sign n x -> y"),
    UNARY("Ceil", 17, "Ceil n x -> y"),
    UNARY("Floor", 17, "Floor n x -> y"),
    UNARY("Round", 17, "Round n x -> y"),
    UNARY("Reciprocal", 17, "Reciprocal n x -> y"),
    UNARY("Sqrt", 17, "Sqrt n x -> y"),
    UNARY("Log", 17, "Log n x -> y"),
    UNARY("LeakyRelu", 17, "LeakyRelu n x -> y | alpha=0.1"),
    UNARY("ThresholdedRelu", 17, "ThresholdedRelu n x -> y | alpha=0.5"),
    UNARY("Softplus", 17, "Softplus n x -> y"),
    UNARY("Softsign", 17, "Softsign n x -> y"),
    UNARY("Elu", 17, "Elu n x -> y"),
    UNARY("Celu", 17, "Celu n x -> y | alpha=0.7"),
    UNARY("Selu", 17, "Selu n x -> y"),
    UNARY("Mish", 18, "Mish n x -> y"),
    UNARY("Swish", 24, "Swish n x -> y | alpha=1.3"),
    UNARY("Swish backwards", 24, "Swish n x -> y | alpha=-1.3"),
    UNARY("Gelu", 20, "Gelu n x -> y"),
    UNARY("Gelu by tanh", 20, "Gelu n x -> y | approximate=tanh"),
    UNARY("IsNaN", 17, "IsNaN n x -> y"),
    {{"PRelu", 17, {"x float[3,5]", "s float[5]"}, {0}, {"PRelu n x s -> y"}, "y"},
     "pointwise",
     1e-7,
     true},
    {{"Max", 17, {"x float[3,5]", "s float[5]", "t float[3,1]"}, {0}, {"Max n x s t -> y"}, "y"},
     "pointwise",
     0,
     true},
    {{"Min of one", 17, {"x float[3,5]"}, {0}, {"Min n x -> y"}, "y"}, "pointwise", 0, true},
    {{"Sum", 17, {"x float[3,5]", "s float[5]", "t float[3,1]"}, {0}, {"Sum n x s t -> y"}, "y"},
     "pointwise",
     1e-6,
     false},
    {{"Mean", 17, {"x float[3,5]", "s float[5]", "t float[3,1]"}, {0}, {"Mean n x s t -> y"}, "y"},
     "pointwise",
     1e-6,
     false},
    {{"x^3", 17, {"x float[40]"}, {"e float[] 3"}, {"Pow n x e -> y"}, "y"},
     "pointwise",
     1e-6,
     true},
    {{"x^-1", 17, {"x float[40]"}, {"e float[] -1"}, {"Pow n x e -> y"}, "y"},
     "pointwise",
     1e-6,
     true},
    {{"x^0.3", 17, {"x float[40]"}, {"e float[1] 0.3"}, {"Pow n x e -> y"}, "y"},
     "pointwise",
     1e-6,
     true},
    {{"a^b", 17, {"x float[4,7]", "b float[4,1]"}, {0}, {"Pow n x b -> y"}, "y"},
     "pointwise",
     1e-6,
     true},
};

static const tactic_case_t types[] = {
    {{"Equal", 17, {"a float[6,7]", "b float[7]"}, {0}, {"Equal n a b -> y"}, "y"},
     "pointwise",
     0,
     true},
    {{"Less", 17, {"a float[6,7]", "b float[7]"}, {0}, {"Less n a b -> y"}, "y"},
     "pointwise",
     0,
     true},
    {{"GreaterOrEqual",
      17,
      {"a float[6,7]", "b float[7]"},
      {0},
      {"GreaterOrEqual n a b -> y"},
      "y"},
     "pointwise",
     0,
     true},
    {{"And", 17, {"a bool[2,2] 0 0 1 1", "b bool[2] 0 1"}, {0}, {"And n a b -> y"}, "y"},
     "pointwise",
     0,
     false},
    {{"Not", 17, {"a bool[5] 0 0 1 1 0"}, {0}, {"Not n a -> y"}, "y"}, "pointwise", 0, false},
    {{"Where",
      17,
      {"c bool[4,1] 0 1 1 0", "a float[4,3]", "b float[3]"},
      {0},
      {"Where n c a b -> y"},
      "y"},
     "pointwise",
     0,
     true},
    {{"Cast of int64", 17, {"a int64[4] -1 0 3 16777217"}, {0}, {"Cast n a -> y | to=1"}, "y"},
     "pointwise",
     0,
     false},
    {{"Cast of bool", 17, {"a bool[4] 1 0 0 1"}, {0}, {"Cast n a -> y | to=1"}, "y"},
     "pointwise",
     0,
     false},
    {{"Cast to bool", 17, {"a float[24]"}, {0}, {"Cast n a -> y | to=9"}, "y"},
     "pointwise",
     0,
     true},
    {{"Cast to fp16", 17, {"a float[24]"}, {0}, {"Cast n a -> y | to=10"}, "y"},
     "pointwise",
     0,
     true},
    {{"Sum of fp16", 17, {"a float16[24]", "b float16[]"}, {0}, {"Add n a b -> y"}, "y"},
     "pointwise",
     1e-3,
     false},
    {{"nothing", 17, {"x float[1,0]"}, {0}, {"Log n x -> y"}, "y"}, NULL, 0, false},
    {{"Where of int64",
      17,
      {"c bool[3] 0 1 1", "a int64[3]", "b int64[3]"},
      {0},
      {"Where n c a b -> y"},
      "y"},
     "emu",
     0,
     false},
};

#define SUM(name, a, b) \
  { {name, 17, {a, b}, {0}, {"Add n a b -> s", "Sigmoid g s -> y"}, "y"}, "pointwise", 2e-6, false }
static const tactic_case_t broadcasts[] = {
    SUM("rank 0", "a float[]", "b float[]"),
    SUM("a scalar", "a float[3,4]", "b float[]"),
    SUM("nothing", "a float[3,0,4]", "b float[3,1,4]"),
    SUM("rows", "a float[5,6,7]", "b float[6,1]"),
    SUM("two runs", "a float[3,4,5,6]", "b float[3,1,5,1]"),
    SUM("each the other", "a float[3,1,5,1]", "b float[1,4,1,6]"),
    SUM("inside", "a float[2,3,4,5]", "b float[3,1,5]"),
    SUM("long rows", "a float[3,2500]", "b float[3,1]"),
    SUM("long period", "a float[3,2500]", "b float[2500]"),
    SUM("long, both", "a float[2,3,1500]", "b float[2,1,1500]"),
    SUM("many", "a float[70,31,17]", "b float[31,1]"),
    SUM("many, alike", "a float[70,1000]", "b float[70,1000]"),
};

// Behind a convolution values lie with channels last; as an output it is a layer of its own.
#define LAST(name, b)                          \
  {                                            \
    {                                          \
        name,                                  \
        17,                                    \
        {"x float[2,3,5,5]", b},               \
        {"w float[4,3,1,1]"},                  \
        {"Conv c x w -> h", "Add n h b -> y"}, \
        "y h"},                                \
        "pointwise", 2e-6, false               \
  }
static const tactic_case_t layouts[] = {
    LAST("channels", "b float[4,1,1]"),
    LAST("places", "b float[5,5]"),
    LAST("columns", "b float[5]"),
    LAST("channels and rows", "b float[4,5,1]"),
    LAST("one an image", "b float[2,1,1,1]"),
    LAST("all", "b float[2,4,5,5]"),
    {{"batch norm",
      17,
      {"x float[2,3,5,5]"},
      {"w float[4,3,1,1]", "s float[4]", "b float[4]", "m float[4]", "v float[4] positive"},
      {"Conv c x w -> h", "Relu r h -> q", "BatchNormalization n q s b m v -> z", "Relu u z -> y"},
      "y"},
     NULL,
     2e-6,
     false},
};

static void functions_agree(void** state) {
  (void)state;
  tactic_case_all(functions, sizeof functions / sizeof *functions);
}
static void types_agree(void** state) {
  (void)state;
  tactic_case_all(types, sizeof types / sizeof *types);
}
static void broadcasts_agree(void** state) {
  (void)state;
  tactic_case_all(broadcasts, sizeof broadcasts / sizeof *broadcasts);
}
static void layouts_agree(void** state) {
  (void)state;
  tactic_case_all(layouts, sizeof layouts / sizeof *layouts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_agree), cmocka_unit_test(types_agree),
      cmocka_unit_test(broadcasts_agree), cmocka_unit_test(layouts_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
