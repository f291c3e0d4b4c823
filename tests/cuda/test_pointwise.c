// Programs of pointwise nodes on the CUDA platform without a GPU: the CPU's bits for each function
// over all numbers of 16 bits and samples of float32, every broadcast, integers of every type.
#include "layer_case.h"

// ---- functions ----------------------------------------------------------------------------------

static const struct {
  const char* op;
  int opset;
} functions[] = {
    {"Abs n x -> y", 17},
    {"Neg n x -> y", 17},
    {"Sign n x -> y", 17},
    {"Ceil n x -> y", 17},
    {"Floor n x -> y", 17},
    {"Round n x -> y", 17},
    {"Reciprocal n x -> y", 17},
    {"Sqrt n x -> y", 17},
    {"Relu n x -> y", 17},
    {"LeakyRelu n x -> y | alpha=0.1", 17},
    {"Exp n x -> y", 17},
    {"Log n x -> y", 17},
    {"Sin n x -> y", 17},
    {"Cos n x -> y", 17},
    {"Tan n x -> y", 17},
    {"Asin n x -> y", 17},
    {"Acos n x -> y", 17},
    {"Atan n x -> y", 17},
    {"Sinh n x -> y", 17},
    {"Cosh n x -> y", 17},
    {"Asinh n x -> y", 17},
    {"Acosh n x -> y", 17},
    {"Atanh n x -> y", 17},
    {"Erf n x -> y", 17},
    {"Tanh n x -> y", 17},
    {"Sigmoid n x -> y", 17},
    {"Softplus n x -> y", 17},
    {"Softsign n x -> y", 17},
    {"Elu n x -> y", 17},
    {"Celu n x -> y | alpha=0.7", 17},
    {"Selu n x -> y", 17},
    {"Mish n x -> y", 18},
    {"HardSigmoid n x -> y", 17},
    {"HardSwish n x -> y", 17},
    {"Swish n x -> y | alpha=1.3", 24},
    {"Gelu n x -> y", 20},
    {"Gelu n x -> y | approximate=tanh", 20},
    {"IsNaN n x -> y", 17},
    {"ThresholdedRelu n x -> y | alpha=0.5", 17},
};

enum { NUMBERS = 65536 };

// All numbers of the format; of float32 bits that a generator draws, and what lies beside 0.
static void fill_numbers(assay_tensor_t* t, int format) {
  uint32_t state = 12345;
  for (int64_t i = 0; i < t->size; i++) {
    state = state * 1664525 + 1013904223;
    const uint32_t bits = format ? (uint32_t)i << 16 : state ^ state >> 15;
    const uint16_t half = (uint16_t)i;
    float x;
    memcpy(&x, &bits, sizeof x);
    if (layer_formats[format].format == ASSAY_FORMAT_FP16)
      assay_unpack(ASSAY_TYPE_FLOAT16, &half, 0, 1, &assay_f64(t)[i]);
    else
      assay_f64(t)[i] = (double)x;
  }
}

static void functions_have_the_cpus_bits(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
    for (int f = 0; f < LAYER_FORMATS; f++) {
      const layer_case_t c = {
          {functions[k].op, functions[k].opset, {"x float[65536]"}, {0}, {functions[k].op}, "y"},
          "chain",
          false};
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&c.graph, in);
      assert_int_equal(in[0]->size, NUMBERS);
      fill_numbers(in[0], f);
      layer_case_compare(&c, m, f, in, "cpu");
      graph_case_release(in);
      assay_model_release(m);
    }
}

// ---- programs -----------------------------------------------------------------------------------

#define SUM(name, a, b) \
  { {name, 17, {a, b}, {0}, {"Add n a b -> s", "Sigmoid g s -> y"}, "y"}, "chain", false }
#define ONE(name, opset, inputs, constants, node) \
  { {name, opset, inputs, constants, {node}, "y"}, "chain", true }
#define LIST(...) \
  { __VA_ARGS__ }
static const layer_case_t programs[] = {
    SUM("rank 0", "a float[]", "b float[]"),
    SUM("a scalar", "a float[3,4]", "b float[]"),
    SUM("nothing", "a float[3,0,4]", "b float[3,1,4]"),
    SUM("rows", "a float[5,6,7]", "b float[6,1]"),
    SUM("rows of vectors", "a float[5,6,16]", "b float[6,1]"),
    SUM("two runs", "a float[3,4,5,6]", "b float[3,1,5,1]"),
    SUM("two runs of vectors", "a float[3,4,5,8]", "b float[3,1,5,8]"),
    SUM("each the other", "a float[3,1,5,1]", "b float[1,4,1,6]"),
    SUM("inside", "a float[2,3,4,5]", "b float[3,1,5]"),
    SUM("a period", "a float[3,264]", "b float[264]"),
    SUM("alike, with a tail", "a float[7,301]", "b float[7,301]"),
    ONE("PRelu", 17, LIST("x float[3,5]", "s float[5]"), {0}, "PRelu n x s -> y"),
    ONE("Max", 17, LIST("x float[3,5]", "s float[5]", "t float[3,1]"), {0}, "Max n x s t -> y"),
    ONE("Mean", 17, LIST("x float[3,5]", "s float[5]", "t float[3,1]"), {0}, "Mean n x s t -> y"),
    ONE("Clip", 17, LIST("x float[40]"), LIST("a float[] -0.5", "b float[] 2"),
        "Clip n x a b -> y"),
    ONE("x^0.3", 17, LIST("x float[40]"), LIST("e float[1] 0.3"), "Pow n x e -> y"),
    ONE("a^b", 17, LIST("x float[4,8]", "b float[4,1]"), {0}, "Pow n x b -> y"),
    ONE("Mod", 17, LIST("x float[40]", "b float[40]"), {0}, "Mod n x b -> y | fmod=1"),
    ONE("Less", 17, LIST("a float[6,8]", "b float[8]"), {0}, "Less n a b -> y"),
    ONE("Where", 17, LIST("c bool[4,1] 0 1 1 0", "a float[4,3]", "b float[3]"), {0},
        "Where n c a b -> y"),
    ONE("And", 17, LIST("a bool[2,2] 0 0 1 1", "b bool[2] 0 1"), {0}, "And n a b -> y"),
    ONE("Cast of int64", 17, LIST("a int64[4] -1 0 3 16777217"), {0}, "Cast n a -> y | to=1"),
    ONE("Cast to bool", 17, LIST("a float[24]"), {0}, "Cast n a -> y | to=9"),
    ONE("Cast to fp16", 17, LIST("a float[24]"), {0}, "Cast n a -> y | to=10"),
    ONE("a constant", 17, LIST("a float[6,16]"), LIST("c float[6,16]"), "Mul n a c -> y"),
    ONE("BatchNormalization", 17, LIST("x float[2,8,3,4]"),
        LIST("s float[8]", "b float[8]", "m float[8]", "v float[8] positive"),
        "BatchNormalization n x s b m v -> y"),
#define HALVES(name, x, axis) \
  { {name, 17, {x}, {0}, {"Split s x -> a b | axis=" axis, "Mul m a b -> y"}, "y"}, "chain", true }
    HALVES("halves of channels", "x float[1,8,3,5]", "1"),
    HALVES("halves of channels, two samples", "x float[2,6,4,4]", "1"),
    HALVES("halves of rows", "x float[5,32]", "-1"),
    HALVES("halves of odd rows", "x float[5,22]", "1"),
    {{"GLU",
      17,
      {"x float[3,32]"},
      {0},
      {"Split s x -> a b | axis=1", "Sigmoid g b -> h", "Mul m h a -> y"},
      "y"},
     "chain",
     false},
    {{"GeGLU",
      20,
      {"x float[2,3,48]"},
      {0},
      {"Split s x -> a b | axis=-1 num_outputs=2", "Gelu g b -> h", "Mul m a h -> y"},
      "y"},
     "chain",
     false},
    {{"three parts",
      17,
      {"x float[4,24]", "z float[4,8]"},
      {"l int64[3] 8 8 8"},
      {"Split s x l -> a b c | axis=1", "Sigmoid g a -> h", "Tanh t b -> u", "Mul m h u -> p",
       "Add e p c -> q", "Add f q z -> y"},
      "y"},
     "chain",
     false},
    {{"parts that are broadcast",
      17,
      {"x float[4,9]"},
      {"l int64[2] 8 1"},
      {"Split s x l -> a b | axis=1", "Mul m a b -> y"},
      "y"},
     "chain",
     false},
    {{"every other element",
      17,
      {"x float[3,33]"},
      {"b int64[1] 1", "e int64[1] 33", "d int64[1] 1", "t int64[1] 2"},
      {"Slice s x b e d t -> a", "Exp g a -> y"},
      "y"},
     "chain",
     false},
    {{"a slice of a slice",
      17,
      {"x float[6,40]"},
      {"b int64[2] 1 2", "e int64[2] 5 40", "f int64[1] 3", "g int64[1] 19", "d int64[1] 1",
       "t int64[1] 2"},
      {"Slice s x b e -> a", "Slice u a f g d t -> c", "Sigmoid g c -> y"},
      "y"},
     "chain",
     false},
    {{"a part and the whole, which are two layers",
      17,
      {"x float[1,16]"},
      {"b int64[1] 3", "e int64[1] 4", "d int64[1] 1"},
      {"Slice s x b e d -> a", "Mul m x a -> y"},
      "y"},
     "chain",
     false},
    {{"a gated sum",
      17,
      {"x float[9,24]", "b float[24]"},
      {"s float[] 0.7"},
      {"Add n x b -> a", "Sigmoid g a -> h", "Mul m a h -> p", "Mul q p s -> r", "Add e r x -> y"},
      "y"},
     "chain",
     false},
};

static void programs_have_the_cpus_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    layer_case_check(&programs[i], "cpu");
}

// ---- integers -----------------------------------------------------------------------------------

// Quotients and remainders of all signs, by 0, and what wraps.
#define TWO(op, type)                                                                         \
  {                                                                                           \
    {op " of " type, 18, {"a " type "[3,8]", "b " type "[8]"}, {0}, {op " n a b -> y"}, "y"}, \
        "chain", false                                                                        \
  }
#define EACH(op) \
  TWO(op, "int8"), TWO(op, "uint8"), TWO(op, "int32"), TWO(op, "int64"), TWO(op, "uint64")
static const layer_case_t integers[] = {
    EACH("Add"),
    EACH("Sub"),
    EACH("Mul"),
    EACH("Div"),
    EACH("Mod"),
    EACH("Less"),
    EACH("Max"),
    EACH("BitwiseXor"),
    TWO("Equal", "int64"),
    TWO("GreaterOrEqual", "uint64"),
    {{"BitShift",
      17,
      {"a uint8[4] 255 1 128 3", "b uint8[4] 1 7 9 0"},
      {0},
      {"BitShift n a b -> y | direction=LEFT"},
      "y"},
     "chain",
     false},
    {{"Where",
      17,
      {"c bool[3] 0 1 1", "a int64[3]", "b int64[3]"},
      {0},
      {"Where n c a b -> y"},
      "y"},
     "chain",
     false},
    {{"Abs", 17, {"a int8[4] -128 -1 0 127"}, {0}, {"Abs n a -> y"}, "y"}, "chain", false},
    {{"Sign", 17, {"a int64[4] -5 0 1 9"}, {0}, {"Sign n a -> y"}, "y"}, "chain", false},
    {{"Clip",
      17,
      {"a int32[5] -9 -1 0 4 99"},
      {"l int32[] -2", "h int32[] 7"},
      {"Clip n a l h -> y"},
      "y"},
     "chain",
     false},
    {{"Cast to int8", 17, {"a int32[4] 300 -129 5 -1"}, {0}, {"Cast n a -> y | to=3"}, "y"},
     "chain",
     false},
    {{"Cast to int32 of floats", 17, {"a float[24]"}, {0}, {"Cast n a -> y | to=6"}, "y"},
     "chain",
     true},
    {{"Cast to uint8 of floats", 17, {"a float[24]"}, {0}, {"Cast n a -> y | to=2"}, "y"},
     "chain",
     true},
    {{"Cast to uint64 of floats", 17, {"a float[24]"}, {0}, {"Cast n a -> y | to=13"}, "y"},
     "chain",
     true},
};

static void integers_are_the_emulated_engines(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
    layer_case_check(&integers[i], "emu");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs_have_the_cpus_bits),
      cmocka_unit_test(integers_are_the_emulated_engines),
      cmocka_unit_test(functions_have_the_cpus_bits),
  };
  layer_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
