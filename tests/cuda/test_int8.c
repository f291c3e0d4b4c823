// Layers on 8-bit integers on a GPU that is not there (fake/): by each of their kernels, with the
// bits of the emulated engine and of the CPU. Random quantized models: backends/test_int8_layers.
#include "cuda/int8_case.h"

typedef struct int8_case {
  graph_case_t graph;
  int tiles;  // of those of kernels[], which are the first ones; NONE: int8_direct, and PIECES, its
              // pieces
} int8_case_t;

#define NODES(name, inputs, constants, nodes, tiles) \
  { {name, 21, inputs, constants, nodes, "y"}, tiles }

// Sizes at which tiles, pieces of 16 and 4 bytes and steps of 128 terms have something left over.
#define QMATMUL(xt, xz, wt, wz, m, k, n, tiles)                                                \
  NODES("QLinearMatMul " xt " " wt " " m " x " k " x " n, LIST("x " xt "[" m "," k "]"),       \
        LIST("xs float[] 0.02", "xz " xt "[] " xz, "w " wt "[" k "," n "]", "ws float[] 0.01", \
             "wz " wt "[] " wz, "ys float[] 3", "yz uint8[] 100"),                             \
        LIST("QLinearMatMul p x xs xz w ws wz ys yz -> y"), tiles)
#define QCONV(name, x, xz, w, attributes, tiles)                                                   \
  NODES(name, LIST("x uint8[" x "]"),                                                              \
        LIST("xs float[] 0.02", "xz uint8[] " xz, "w int8[" w "]",                                 \
             "ws float[8] 0.01 0.02 0.03 0.01 0.005 0.02 0.01 0.07", "wz int8[8] 0 0 0 0 0 0 0 0", \
             "ys float[] 0.5", "yz uint8[] 3", "b int32[8] 100 -200 300 0 5000 -6000 7 8"),        \
        LIST("QLinearConv c x xs xz w ws wz ys yz b -> y" attributes), tiles)

static const char* const kernels[] = {"int8_mma/64x64",  "int8_mma/128x64",  "int8_mma/32x64",
                                      "int8_mma/16x64",  "int8_mma/128x128", "int8_direct/element",
                                      "int8_direct/4x1", "int8_direct/4x2",  "int8_direct/4x4",
                                      "int8_direct/4x8", "int8_narrow/4x1",  "int8_narrow/4x2",
                                      "int8_narrow/4x4", "int8_narrow/4x8"};
// SOME: where sums of x are due, too.
enum {
  N_KERNELS = sizeof kernels / sizeof *kernels,
  ALL = 5,
  SOME = ALL - 1,
  NONE = 0,
  PIECES = -1,
  NARROW = -2,  // and tiles
  N_PIECES = 4  // of either
};

static bool is_for(int tiles, int kernel) {
  const int narrow = N_KERNELS - N_PIECES;
  if (tiles == NARROW) return kernel < ALL || kernel >= narrow;
  if (tiles > 0) return kernel < tiles;
  return kernel == ALL || (tiles == PIECES && kernel > ALL && kernel < narrow);
}

static const int8_case_t rows[] = {
    QMATMUL("uint8", "0", "int8", "0", "1", "1", "1", ALL),
    QMATMUL("uint8", "128", "int8", "0", "17", "65", "129", ALL),
    QMATMUL("int8", "-5", "int8", "7", "65", "48", "40", SOME),
    QMATMUL("int8", "3", "uint8", "130", "9", "300", "65", SOME),
    QMATMUL("uint8", "255", "uint8", "0", "130", "36", "66", SOME),
    NODES("zero points by column", {"x int8[20,33]"},
          LIST("xs float[] 0.02", "xz int8[] 9", "w uint8[33,4]", "ws float[4] 0.01 0.02 0.03 0.04",
               "wz uint8[4] 0 255 128 3", "ys float[] 3", "yz int8[] -100"),
          LIST("QLinearMatMul p x xs xz w ws wz ys yz -> y"), SOME),
    NODES("two activations", LIST("x uint8[2,3,20,36]", "w int8[2,3,36,70]"),
          LIST("xs float[] 0.02", "xz uint8[] 77", "ws float[] 0.01", "wz int8[] -9",
               "ys float[] 3", "yz uint8[] 100"),
          LIST("QLinearMatMul p x xs xz w ws wz ys yz -> y"), SOME),
    NODES("one right side that is read", LIST("x int8[3,7,32]", "w uint8[32,16]"),
          LIST("xs float[] 0.02", "xz int8[] 0", "ws float[] 0.01", "wz uint8[] 9", "ys float[] 3",
               "yz int8[] 0"),
          LIST("QLinearMatMul p x xs xz w ws wz ys yz -> y"), SOME),
    NODES("a matrix of weights for each sample", {"x uint8[3,5,32]"},
          LIST("xs float[] 0.02", "xz uint8[] 0", "w int8[3,32,10]", "ws float[] 0.01",
               "wz int8[] 0", "ys float[] 3", "yz uint8[] 100"),
          LIST("QLinearMatMul p x xs xz w ws wz ys yz -> y"), ALL),
    NODES("weights for each sample, zero points", {"x uint8[3,5,33]"},
          LIST("xs float[] 0.02", "xz uint8[] 50", "w uint8[3,33,10]", "ws float[] 0.01",
               "wz uint8[] 99", "ys float[] 3", "yz uint8[] 100"),
          LIST("QLinearMatMul p x xs xz w ws wz ys yz -> y"), SOME),
    NODES("MatMulInteger", {"x uint8[4,9,40]"},
          LIST("xz uint8[] 3", "w int8[40,24]", "wz int8[] -4"),
          LIST("MatMulInteger p x w xz wz -> y"), SOME),
    NODES("MatMulInteger, zero points by column", {"x uint8[4,9,40]"},
          LIST("xz uint8[] 3", "w int8[40,6]", "wz int8[6] -4 0 127 -128 7 1"),
          LIST("MatMulInteger p x w xz wz -> y"), SOME),
    NODES("MatMulInteger, zero points by column in two dimensions", {"x uint8[9,40]"},
          LIST("xz uint8[] 255", "w uint8[40,6]", "wz uint8[1,6] 255 0 127 128 7 1"),
          LIST("MatMulInteger p x w xz wz -> y"), SOME),
    NODES("ConvInteger, zero points by channel", {"x uint8[2,5,9,7]"},
          LIST("w uint8[4,5,3,3]", "xz uint8[] 200", "wz uint8[4] 255 0 128 3"),
          LIST("ConvInteger c x w xz wz -> y | pads=1,2,0,1 strides=2,1"), SOME),
    NODES("MatMulInteger, a zero point that is read", LIST("x uint8[9,40]", "xz uint8[]"),
          LIST("w uint8[40,24]", "wz uint8[] 140"), LIST("MatMulInteger p x w xz wz -> y"), SOME),
    NODES("MatMulInteger, signed bytes and a zero point that is read",
          LIST("x int8[9,33]", "xz int8[]"), {"w int8[33,24]"}, LIST("MatMulInteger p x w xz -> y"),
          SOME),
    NODES("MatMulInteger, both sides and a zero point read",
          LIST("x int8[9,33]", "w int8[33,9]", "xz int8[]"), LIST("wz int8[] 3"),
          LIST("MatMulInteger p x w xz wz -> y"), SOME),
    NODES("ConvInteger", {"x uint8[2,5,9,7]"}, LIST("w int8[9,5,3,3]", "xz uint8[] 200"),
          LIST("ConvInteger c x w xz -> y | pads=1,2,0,1 strides=2,1"), ALL),
    NODES("ConvInteger, a zero point that is read", LIST("x uint8[1,32,6,5]", "xz uint8[]"),
          LIST("w uint8[12,32,3,3]", "wz uint8[] 120"),
          LIST("ConvInteger c x w xz wz -> y | pads=1,1,1,1"), SOME),
    QCONV("1x1", "2,16,5,6", "0", "8,16,1,1", "", ALL),
    QCONV("3x3, pads", "1,16,7,9", "131", "8,16,3,3", " | pads=1,0,1,2", ALL),
    QCONV("few channels", "1,3,11,13", "7", "8,3,5,5", " | pads=2,2,2,2 strides=2,3", ALL),
    QCONV("channels by 4", "1,12,9,11", "255", "8,12,3,3", " | pads=2,1,2,1 dilations=2,1", ALL),
    QCONV("two groups", "1,32,6,5", "9", "8,16,3,3", " | group=2 pads=1,1,1,1", ALL),
    QCONV("small groups", "2,8,6,5", "9", "8,2,3,3", " | group=4 pads=1,1,1,1", NONE),
    QCONV("depthwise", "2,8,6,5", "200", "8,1,3,3", " | group=8 pads=1,1,1,1", PIECES),
    QCONV("depthwise, 5x5, steps of two", "1,8,11,13", "0", "8,1,5,5",
          " | group=8 pads=2,2,1,2 strides=2,2", PIECES),
    QCONV("depthwise, far taps of a large kernel", "1,8,13,19", "77", "8,1,3,7",
          " | group=8 pads=3,0,2,5 strides=1,3 dilations=3,2", PIECES),
    QCONV("depthwise, more taps than a thread keeps", "1,8,9,10", "255", "8,1,6,6",
          " | group=8 pads=3,3,3,3", PIECES),
    QCONV("depthwise, more taps than pieces have", "1,8,20,17", "3", "8,1,17,17",
          " | group=8 pads=8,8,8,8", NONE),
    QCONV("two columns for each channel", "2,4,6,5", "9", "8,1,3,3", " | group=4 pads=1,1,1,1",
          NONE),
    QCONV("depthwise, one axis", "2,8,20", "1", "8,1,5", " | group=8 strides=3 pads=2,1", PIECES),
    QCONV("depthwise, three axes", "1,8,3,4,5", "3", "8,1,2,3,3", " | group=8 pads=0,1,1,1,1,0",
          NONE),
    NODES("depthwise ConvInteger, signed", {"x int8[2,12,9,7]"},
          LIST("w uint8[12,1,3,3]", "xz int8[] -50", "wz uint8[] 128"),
          LIST("ConvInteger c x w xz wz -> y | group=12 pads=1,1,1,1"), PIECES),
    NODES("depthwise ConvInteger, a zero point that is read",
          LIST("x uint8[1,16,6,5]", "xz uint8[]"), LIST("w int8[16,1,3,3]"),
          LIST("ConvInteger c x w xz -> y | group=16 strides=1,2"), PIECES),
    NODES("depthwise ConvInteger, odd channels", {"x uint8[1,7,6,5]"},
          LIST("w int8[7,1,3,3]", "xz uint8[] 9"),
          LIST("ConvInteger c x w xz -> y | group=7 pads=1,1,1,1"), NONE),
    QCONV("an image", "2,3,11,13", "7", "8,3,3,3", " | pads=1,1,1,1 strides=2,2", NARROW),
    QCONV("an image, from 0", "1,3,9,10", "0", "8,3,5,3", " | pads=2,0,2,1 strides=1,3", NARROW),
    QCONV("one channel, far taps", "1,1,9,17", "200", "8,1,3,5", " | pads=2,2,2,2 dilations=1,2",
          NARROW),
    QCONV("four channels, one axis", "2,4,20", "1", "8,4,5", " | strides=3 pads=2,1", NARROW),
    NODES("few channels, a zero point that is read", LIST("x int8[1,3,6,5]", "xz int8[]"),
          LIST("w int8[12,3,3,3]"), LIST("ConvInteger c x w xz -> y | strides=1,2"), NARROW),
    QCONV("one axis", "2,16,20", "1", "8,16,5", " | strides=3 pads=2,1", ALL),
    QCONV("three axes", "1,4,3,4,5", "3", "8,4,2,3,3", " | pads=0,1,1,1,1,0", ALL),
    QCONV("SAME", "1,8,7,7", "12", "8,8,4,4", " | auto_pad=SAME_LOWER strides=2,2", ALL),
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void kernels_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    const int8_case_t* c = &rows[i];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&c->graph, in);
    uint64_t random = i;
    tactic_run_t want;
    for (size_t k = 0; in[k]; k++) int8_case_fill(in[k], &random);
    forced_case_run(m, "emu", NULL, in, &want);
    forced_case_compare(c->graph.name, &want, m, "cpu", NULL, in);
    for (size_t k = 0; k < N_KERNELS; k++)
      if (is_for(c->tiles, (int)k))
        forced_case_compare(c->graph.name, &want, m, "cuda", kernels[k], in);
    tactic_case_release(&want);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// ---- layers without a product -------------------------------------------------------------------

#define POINTWISE(name, inputs, constants, ...) \
  { name, 21, inputs, constants, {__VA_ARGS__}, "y" }
#define TWO                                                                                  \
  "xs float[] 0.02", "xz int8[] 5", "zs float[] 0.011", "zz uint8[] 200", "ys float[] 0.03", \
      "yz int8[] -9"
#define NORM(c) \
  "g float[" c "] positive", "b float[" c "]", "mean float[" c "]", "var float[" c "] positive"

static const graph_case_t pointwise[] = {
    POINTWISE("quantized", {"x float[3,67]"}, LIST(TWO), "QuantizeLinear q x ys yz -> y"),
    POINTWISE("floats", {"x int8[5,41]"}, LIST(TWO), "DequantizeLinear d x xs xz -> y"),
    POINTWISE("a sum", LIST("x int8[2,8,5,3]", "z uint8[2,8,5,3]"), LIST(TWO),
              "DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dz z zs zz -> zf",
              "Add a xf zf -> h", "QuantizeLinear q h ys yz -> y"),
    POINTWISE("a sum, an odd number", LIST("x int8[3,7,5]", "z uint8[3,7,5]"), LIST(TWO),
              "DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dz z zs zz -> zf",
              "Add a xf zf -> h", "Relu r h -> g", "QuantizeLinear q g ys yz -> y"),
    POINTWISE("a product by channel", LIST("x int8[2,8,5,3]", "z uint8[2,8,1,1]"), LIST(TWO),
              "DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dz z zs zz -> zf",
              "Mul a xf zf -> h", "QuantizeLinear q h ys yz -> y"),
    POINTWISE("a sum of floats", LIST("x float[2,8,5,3]", "z float[2,8,5,3]"), LIST(TWO),
              "Add a x z -> h", "Relu r h -> g", "QuantizeLinear q g ys yz -> y"),
    POINTWISE("floats less bytes, an odd number", LIST("x int8[3,7,5]", "z float[3,7,5]"),
              LIST(TWO), "DequantizeLinear dx x xs xz -> xf", "Sub a z xf -> h",
              "QuantizeLinear q h ys yz -> y"),
    POINTWISE("a gate of floats", LIST("x float[2,8,5,3]", "z float[2,8,1,1]"), LIST(TWO),
              "Mul a z x -> h", "QuantizeLinear q h ys yz -> y"),
    POINTWISE("a gate of floats, an odd number of channels",
              LIST("x float[2,7,5,3]", "z float[2,7,1,1]"), LIST(TWO), "Mul a x z -> h",
              "Clip r h -> g", "QuantizeLinear q g ys yz -> y"),
    POINTWISE("functions", LIST("x int8[33]", "z uint8[33]"), LIST(TWO),
              "DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dz z zs zz -> zf",
              "Sigmoid f xf -> h", "Mul a h zf -> g", "QuantizeLinear q g ys yz -> y"),
    POINTWISE("by channels side by side", {"x int8[2,8,5,3]"}, LIST(TWO, NORM("8")),
              "DequantizeLinear dx x xs xz -> xf", "BatchNormalization n xf g b mean var -> h",
              "QuantizeLinear q h ys yz -> y"),
    POINTWISE("by six channels", {"x int8[2,6,5,3]"}, LIST(TWO, NORM("6")),
              "DequantizeLinear dx x xs xz -> xf", "BatchNormalization n xf g b mean var -> h",
              "QuantizeLinear q h ys yz -> y"),
};

static void compare_pointwise(const graph_case_t* c, void (*fill)(assay_tensor_t* t, double scale),
                              double scale) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(c, in);
  uint64_t random = 3;
  tactic_run_t want;
  for (size_t k = 0; in[k]; k++)
    if (fill)
      fill(in[k], scale);
    else
      int8_case_fill(in[k], &random);
  forced_case_run(m, "emu", NULL, in, &want);
  forced_case_compare(c->name, &want, m, "cuda", "int8_pointwise", in);
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

static void layers_without_a_product(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof pointwise / sizeof *pointwise; i++)
    compare_pointwise(&pointwise[i], NULL, 0);
}

// ---- functions that are found roughly first -----------------------------------------------------

// Behind products: the whole of what comes to them.
static void functions_have_the_bits_of_float64(void** state) {
  static const struct {
    const char *name, *node;
  } functions[] = {{"gelu", "Gelu f h -> g"},
                   {"gelu, tanh", "Gelu f h -> g | approximate=tanh"},
                   {"sigmoid", "Sigmoid f h -> g"},
                   {"hard swish", "HardSwish f h -> g"},
                   {"swish", "Swish f h -> g | alpha=1.7"},
                   {"swish that no form is for", "Swish f h -> g | alpha=40.0"}};
  static const char* const scales[] = {"0.05", "0.0078431373", "1e-4", "3.0", "1e-6"};
  (void)state;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
      char scale[64], name[96];
      snprintf(scale, sizeof scale, "ys float[] %s", scales[k]);
      snprintf(name, sizeof name, "%s, %s", functions[i].name, scales[k]);
      const graph_case_t c = {
          name,
          24,
          {"x uint8[64,4]"},
          {"xs float[] 0.01", "xz uint8[] 128", "w int8[4,520]", "ws float[] 0.011", "wz int8[] 0",
           "b float[520]", scale, k % 2 ? "yz int8[] -20" : "yz uint8[] 30"},
          {"DequantizeLinear d x xs xz -> xf", "DequantizeLinear e w ws wz -> wf",
           "MatMul p xf wf -> m", "Add a m b -> h", functions[i].node,
           "QuantizeLinear q g ys yz -> y"},
          "y"};
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&c, in);
      uint64_t random = 5;
      tactic_run_t want;
      int8_case_fill(in[0], &random);
      forced_case_run(m, "emu", NULL, in, &want);
      forced_case_compare(c.name, &want, m, "cuda", "int8_mma/64x64", in);
      tactic_case_release(&want);
      graph_case_release(in);
      assay_model_release(m);
    }
}

// At and beside what lies halfway between two integers, and whatever no integer is near.
enum { BESIDE = 3, HALVES = 800 };
static void fill_halves(assay_tensor_t* t, double scale) {
  static const float specials[] = {0.0F,      -0.0F,      INFINITY,   -INFINITY,  NAN,
                                   0x1p-149F, -0x1p-130F, 0x1.fp127F, -0x1.fp127F};
  for (int64_t i = 0; i < t->size; i++) {
    const int64_t each = 2 * BESIDE + 1, half = i / each - HALVES / 2;
    float x = (float)(((double)half + 0.5) * scale);
    for (int64_t k = i % each; k > BESIDE; k--) x = nextafterf(x, INFINITY);
    for (int64_t k = i % each; k < BESIDE; k++) x = nextafterf(x, -INFINITY);
    if (i < (int64_t)(sizeof specials / sizeof *specials)) x = specials[i];
    assay_f64(t)[i] = (double)x;
  }
}

// Quotients by scales of all kinds, those whose inverse kernels multiply by, and others.
static void quotients_have_the_bits_of_divisions(void** state) {
  static const char* const scales[] = {"0.02",    "0.0117", "1",     "0.33333334",  "1.9999999",
                                       "1.00001", "3e-18",  "7e17",  "2.5e-30",     "6e-39",
                                       "3e30",    "0.5",    "1e-10", "0.0078431373"};
  (void)state;
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    char scale[64];
    snprintf(scale, sizeof scale, "s float[] %s", scales[i]);
    const graph_case_t c = {scale,
                            21,
                            {"x float[5600]"},
                            {scale, i % 2 ? "z uint8[] 130" : "z int8[] -7"},
                            {"QuantizeLinear q x s z -> y"},
                            "y"};
    compare_pointwise(&c, fill_halves, (double)strtof(scales[i], NULL));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_give_the_same_bits),
                                     cmocka_unit_test(functions_have_the_bits_of_float64),
                                     cmocka_unit_test(layers_without_a_product),
                                     cmocka_unit_test(quotients_have_the_bits_of_divisions)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
