// The products of squeeze-excite blocks on 8-bit integers in one launch, with and without what they
// scale, on a GPU that is not there (fake/): the bits of the layers one by one and of the emulated
// engine, and the layers that stay alone.
#include <stdlib.h>

#include "cuda/int8_case.h"
#include "cuda/pair_case.h"

typedef struct excite_case {
  graph_case_t graph;
  int joined;  // layers in the launch of another one
} excite_case_t;

static const pair_case_way_t emu = {.backend = "emu"}, apart = {.sources = "-int8_excite"},
                             any = {0};

// The squeezed channels, q; the hidden ones; and channels. Scales at which several bytes, and both
// ends of functions, are met.
#define NUMBERS(c, h, q_zero, h_zero, y_zero)                                                  \
  "qs float[] 0.02", "qz " q_zero, "w int8[" h "," c ",1,1]", "ws float[" h "] positive",      \
      "b float[" h "]", "hs float[] 0.9", "hz " h_zero, "v int8[" c "," h ",1,1]",             \
      "vs float[] 0.01", "d float[" c "]", "ys float[] 0.02", "yz " y_zero, "xs float[] 0.03", \
      "xz uint8[] 77"
#define HIDDEN(function)                                                                 \
  "DequantizeLinear dq q qs qz -> qf", "DequantizeLinear dw w ws -> wf | axis=0",        \
      "Conv c qf wf b -> h0", function " f h0 -> h1", "QuantizeLinear qh h1 hs hz -> h", \
      "DequantizeLinear dh h hs hz -> hf", "DequantizeLinear dv v vs -> vf",             \
      "Conv e hf vf d -> g0"
#define GATE(function) HIDDEN("Relu"), function " s g0 -> g"
// Channels last, as the next convolution reads them.
#define SCALED(x, g) "Mul m " x " " g " -> p", "QuantizeLinear r p ys yz -> y"
#define NEXT \
  "DequantizeLinear dy y ys yz -> yf", "DequantizeLinear du u vs -> uf", "Conv n yf uf -> k"
// The convolution before it, whose result is scaled, and its mean.
#define CONV \
  "DequantizeLinear dx x0 xs xz -> xf", "DequantizeLinear dt t vs -> tf", "Conv i xf tf -> x"
#define BEFORE CONV, "GlobalAveragePool a x -> a0", "QuantizeLinear qa a0 qs qz -> q"

#define BLOCK(name, rows, c, h, places, q_zero, h_zero, y_zero, hidden, gate, x, g, joined)  \
  {                                                                                          \
    {name,                                                                                   \
     21,                                                                                     \
     {"x0 uint8[" rows "," c "," places "]"},                                                \
     {NUMBERS(c, h, #q_zero "[] 3", #h_zero "[] 9", #y_zero "[] 12"), "u int8[4," c ",1,1]", \
      "t int8[" c "," c ",1,1]"},                                                            \
     {BEFORE, HIDDEN(hidden), gate " s g0 -> g", SCALED(x, g), NEXT},                        \
     "k"},                                                                                   \
        joined                                                                               \
  }

#define PRODUCTS_ALONE                                                                           \
  {                                                                                              \
    "products alone", 21, {"q uint8[5,50,1,1]"},                                                 \
        {NUMBERS("50", "18", "uint8[] 3", "uint8[] 9", "int8[] 12")}, {GATE("HardSigmoid")}, "g" \
  }

static const graph_case_t products_alone = PRODUCTS_ALONE;

static const excite_case_t rows[] = {
    BLOCK("a block", "2", "72", "24", "6,5", uint8, uint8, uint8, "Relu", "HardSigmoid", "x", "g",
          2),
    BLOCK("an odd one", "3", "37", "11", "5,3", int8, uint8, int8, "Relu", "Sigmoid", "g", "x", 2),
    BLOCK("functions between", "1", "100", "70", "9,4", uint8, int8, int8, "HardSwish",
          "HardSigmoid", "x", "g", 2),
    BLOCK("more hidden channels than tiles of a block", "2", "40", "150", "3,3", int8, int8, uint8,
          "Relu", "Sigmoid", "x", "g", 2),
    {{"bytes are scaled",
      21,
      {"q uint8[2,52,1,1]", "x0 uint8[2,52,7,6]"},
      {NUMBERS("52", "20", "uint8[] 3", "uint8[] 9", "int8[] 12"), "u int8[4,52,1,1]",
       "t int8[52,52,1,1]"},
      {CONV, "QuantizeLinear qx x hs hz -> xb", "DequantizeLinear db xb hs hz -> z",
       GATE("HardSigmoid"), SCALED("z", "g"), NEXT},
      "k"},
     2},
    {PRODUCTS_ALONE, 1},
    {{"products of matrices",
      21,
      {"q int8[3,130]"},
      {"qs float[] 0.01", "qz int8[] 3", "w int8[130,40]", "ws float[] 0.02", "hs float[] 0.9",
       "hz uint8[] 9", "v int8[40,33]", "vs float[] 0.01", "ys float[] 0.3", "yz uint8[] 12"},
      {"DequantizeLinear dq q qs qz -> qf", "DequantizeLinear dw w ws -> wf",
       "MatMul c qf wf -> h0", "Tanh f h0 -> h1", "QuantizeLinear qh h1 hs hz -> h",
       "DequantizeLinear dh h hs hz -> hf", "DequantizeLinear dv v vs -> vf",
       "MatMul e hf vf -> g0", "QuantizeLinear r g0 ys yz -> y"},
      "y"},
     1},
    {{"hidden channels are an output",
      21,
      {"q uint8[2,50,1,1]"},
      {NUMBERS("50", "18", "uint8[] 3", "uint8[] 9", "int8[] 12")},
      {GATE("HardSigmoid")},
      "g h"},
     0},
    {{"gates are an output",
      21,
      {"q uint8[2,52,1,1]", "x0 uint8[2,52,7,6]"},
      {NUMBERS("52", "20", "uint8[] 3", "uint8[] 9", "int8[] 12"), "u int8[4,52,1,1]",
       "t int8[52,52,1,1]"},
      {CONV, "Neg a x -> o", GATE("HardSigmoid"), SCALED("x", "g"), NEXT},
      "k g o"},
     1},
    {{"weights that take too long to read",
      21,
      {"q uint8[1,1030,1,1]"},
      {NUMBERS("1030", "400", "uint8[] 3", "uint8[] 9", "int8[] 12")},
      {GATE("HardSigmoid")},
      "g"},
     0},
    {{"a window",
      21,
      {"q uint8[2,20,3,3]"},
      {"qs float[] 0.01", "qz uint8[] 3", "w int8[18,20,3,3]", "ws float[18] positive",
       "b float[18]", "hs float[] 0.9", "hz uint8[] 9", "v int8[20,18,1,1]", "vs float[] 0.01",
       "d float[20]"},
      {GATE("HardSigmoid")},
      "g"},
     0},
    {{"places",
      21,
      {"q uint8[2,50,2,1]"},
      {NUMBERS("50", "18", "uint8[] 3", "uint8[] 9", "int8[] 12")},
      {GATE("HardSigmoid")},
      "g"},
     0},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void one_launch_has_the_bits_of_all(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    const excite_case_t* c = &rows[i];
    pair_case_sample_t s;
    pair_case_run_t truth, want, got;
    uint64_t random = i;
    pair_case_init(&c->graph, &s);
    for (size_t k = 0; s.in[k]; k++) int8_case_fill(s.in[k], &random);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &emu, s.in, &truth);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &any, s.in, &got);
    assert_int_equal(want.joined, 0);
    if (got.joined != c->joined)
      fail_msg("%s: %d layers joined, not %d", c->graph.name, got.joined, c->joined);
    pair_case_same(c->graph.name, &truth, &want);
    pair_case_same(c->graph.name, &want, &got);
    pair_case_release(&truth);
    pair_case_release(&want);
    pair_case_release(&got);
    pair_case_deinit(&s);
  }
}

// ---- times --------------------------------------------------------------------------------------

// A timing cache in which the joint takes another time.
static char* with_time(const char* times, const char* microseconds) {
  const char* name = strstr(times, " int8_excite ");
  assert_non_null(name);
  const char* line = name;
  while (line > times && line[-1] != '\n') line--;
  char* out = assay_malloc(strlen(times) + strlen(microseconds) + 1);
  assert_non_null(out);
  sprintf(out, "%.*s%s%s", (int)(line - times), times, microseconds, name);
  return out;
}

// On the platform's clock each kernel takes 5 us.
static void joints_compete_by_time(void** state) {
  (void)state;
  if (getenv("ASSAY_TEST_GPU")) skip();  // its times are its own
  static const struct {
    const char* microseconds;
    int joined;
  } times[] = {{"4.00", 1}, {"9.99", 1}, {"10.00", 0}, {"80.00", 0}};
  assay_str_t measured = {0};
  pair_case_sample_t s;
  pair_case_run_t want, got;
  uint64_t random = 1;
  pair_case_init(&products_alone, &s);
  for (size_t k = 0; s.in[k]; k++) int8_case_fill(s.in[k], &random);
  pair_case_run(s.m, ASSAY_FORMAT_FP32, &(pair_case_way_t){.measured = &measured}, s.in, &want);
  assert_int_equal(want.joined, 1);
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    char* text = with_time(assay_str_get(&measured), times[i].microseconds);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &(pair_case_way_t){.times = text}, s.in, &got);
    if (got.joined != times[i].joined)
      fail_msg("%s us: %d layers joined", times[i].microseconds, got.joined);
    pair_case_same("by time", &want, &got);
    pair_case_release(&got);
    assay_free(text);
  }
  pair_case_release(&want);
  pair_case_deinit(&s);
  assay_str_deinit(&measured);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_all),
                                     cmocka_unit_test(joints_compete_by_time)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
