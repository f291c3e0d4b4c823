// Sums of integers and the quantizer of what they become, in one launch on a GPU that is not there
// (fake/): the bits of two launches and of the emulated engine.
#include "cuda/int8_case.h"
#include "cuda/pair_case.h"

#define X_NUMBERS "xs float[] 0.0002", "xz uint8[] 131"
#define Y_NUMBERS "ys float[] 0.13", "yz int8[] -9"
#define CONV(attributes)                                                          \
  "DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dw w ws -> wf | axis=0", \
      "Conv c xf wf b -> h | " attributes
#define QUANTIZE "QuantizeLinear q f ys yz -> y"
// What reads the integers, channels last as the sum's kernel writes them.
#define NEXT \
  "DequantizeLinear dy y ys yz -> yf", "DequantizeLinear dv v ys -> vf", "Conv d yf vf -> k"
#define SUM(name, x, r, w, n, attributes, ...)                          \
  {                                                                     \
    name, 21, {"x uint8[" x "]", "r float[" r "]"},                     \
        {X_NUMBERS,        "w int8[" w "]", "ws float[" n "] positive", \
         "b float[" n "]", Y_NUMBERS,       "v int8[3," n ",1,1]"},     \
        {CONV(attributes), __VA_ARGS__, NEXT}, "k f"                    \
  }

// Channels that are stored at once and others, tiles with something left over; pairs: by how many
// launches, of the layers besides.
static const struct {
  graph_case_t graph;
  int pairs;
} sums[] = {
    {SUM("1x1, a residual", "2,64,5,6", "2,24,5,6", "24,64,1,1", "24", "", "Add a h r -> s",
         "Relu t s -> f", QUANTIZE),
     1},
    {SUM("odd channels, a residual first", "1,128,7,5", "1,37,7,5", "37,128,1,1", "37", "",
         "Add a r h -> s", "Clip t s -> f", QUANTIZE),
     1},
    {SUM("3x3, pads, less a residual", "2,16,7,9", "2,40,4,9", "40,16,3,3", "40",
         "pads=1,1,1,1 strides=2,1", "Sub a h r -> f", QUANTIZE),
     1},
    {SUM("few channels", "1,3,11,13", "1,12,11,13", "12,3,3,3", "12", "pads=1,1,1,1",
         "Sub a r h -> s", "Relu t s -> f", QUANTIZE),
     1},
    {SUM("depthwise", "2,8,6,5", "2,8,6,5", "8,1,3,3", "8", "group=8 pads=1,1,1,1",
         "Add a h r -> f", QUANTIZE),
     1},
    {SUM("a gate", "2,32,6,5", "2,20,1,1", "20,32,1,1", "20", "", "Mul a h r -> f", QUANTIZE), 1},
    {SUM("a gate of odd channels", "2,32,6,5", "2,7,1,1", "7,32,1,1", "7", "", "Mul a r h -> f",
         QUANTIZE),
     1},
    {SUM("a function", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "", "HardSwish a h -> f",
         QUANTIZE, "Add e f r -> z", "Relu g z -> o"),
     1},
    {SUM("two quantizers", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "", "Add a h r -> f",
         QUANTIZE, "QuantizeLinear p f ws -> z | axis=1"),
     1},
    {SUM("scales by channel", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "", "Add a h r -> f",
         "QuantizeLinear q f ws -> o | axis=1", "QuantizeLinear p r ys yz -> y"),
     0},
    {SUM("the residual is quantized", "2,32,6,5", "2,20,6,5", "20,32,1,1", "20", "",
         "Add a h r -> f", "QuantizeLinear q r ys yz -> y"),
     0},
    {{"a product of matrices",
      21,
      {"x uint8[19,48]", "r float[19,36]"},
      {X_NUMBERS, "w int8[48,36]", "ws float[] 0.9", "b float[36]", Y_NUMBERS},
      {"DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dw w ws -> wf", "MatMul p xf wf -> g",
       "Add e g b -> h", "Add a h r -> f", QUANTIZE},
      "y f"},
     1},
};

static void sums_are_stored_with_their_integers(void** state) {
  static const pair_case_way_t ways[] = {{.tactic = "int8_pair"},
                                         {.tactic = "int8_pair", .sources = "-int8_bulk"},
                                         {.tactic = "int8_pair",
                                          .sources = "-int8_bulk,-int8_mma"}},
                               emu = {.tactic = "int8_pair", .backend = "emu"},
                               apart = {.tactic = "int8_pair", .sources = "-int8_pair"};
  (void)state;
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    const graph_case_t* c = &sums[i].graph;
    pair_case_sample_t s;
    pair_case_run_t truth, want, got;
    uint64_t random = i;
    pair_case_init(c, &s);
    for (size_t k = 0; s.in[k]; k++) int8_case_fill(s.in[k], &random);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &emu, s.in, &truth);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
    assert_int_equal(want.pairs, 0);
    pair_case_same(c->name, &truth, &want);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
      pair_case_run(s.m, ASSAY_FORMAT_FP32, &ways[k], s.in, &got);
      if (k < 2 && got.pairs != sums[i].pairs)
        fail_msg("%s: %d pairs of layers, not %d", c->name, got.pairs, sums[i].pairs);
      pair_case_same(c->name, &want, &got);
      pair_case_release(&got);
    }
    pair_case_release(&truth);
    pair_case_release(&want);
    pair_case_deinit(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_stored_with_their_integers)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
