// Products on 8-bit integers whose tiles the copy engine brings, on a GPU that is not there
// (fake/), or with ASSAY_TEST_GPU on a real one: all tiles give the bits of the definition, as the
// emulated engine has it, and of mma.sync.
#include "cuda/int8_case.h"

static const char* const kernels[] = {"int8_mma/64x64",   "int8_bulk/64x32",   "int8_bulk/64x64",
                                      "int8_bulk/64x96",  "int8_bulk/64x128",  "int8_bulk/128x64",
                                      "int8_bulk/128x96", "int8_bulk/128x128", "int8_bulk/128x192",
                                      "int8_bulk/128x256"};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };
// Blocks that share out the terms of a tile.
static const char* const shared[] = {
    "int8_mma/64x64",      "int8_bulk/64x32x2",  "int8_bulk/64x64x4",  "int8_bulk/64x32x8",
    "int8_bulk/128x64x2",  "int8_bulk/64x128x4", "int8_bulk/64x64x8",  "int8_bulk/64x64x2",
    "int8_bulk/128x128x4", "int8_bulk/64x32x4",  "int8_bulk/128x64x4", "int8_bulk/64x128x8",
    "int8_bulk/128x128x2", "int8_bulk/64x128x2", "int8_bulk/128x128x8"};
enum { N_SHARED = sizeof shared / sizeof *shared };

#define NODES(name, inputs, constants, nodes) \
  { name, 21, inputs, constants, nodes, "y" }
// Numbers of a QLinearMatMul or QLinearConv besides its weights.
#define NUMBERS(xt, xz, yt, yz) \
  "xs float[] 0.02", "xz " xt "[] " xz, "ys float[] 3", "yz " yt "[] " yz
#define QMATMUL(xt, xz, wt, wz, yt, m, k, n)                                       \
  NODES(xt "[" m "," k "] x " wt "[" k "," n "]", {"x " xt "[" m "," k "]"},       \
        LIST(NUMBERS(xt, xz, yt, "3"), "w " wt "[" k "," n "]", "ws float[] 0.01", \
             "wz " wt "[] " wz),                                                   \
        {"QLinearMatMul p x xs xz w ws wz ys yz -> y"})
#define QCONV(name, xt, x, xz, w, m, attributes)                                      \
  NODES(name, {"x " xt "[" x "]"},                                                    \
        LIST(NUMBERS(xt, xz, "int8", "0"), "w int8[" m "," w "]", "ws float[] 0.003", \
             "wz int8[] 0", "b int32[" m "]"),                                        \
        {"QLinearConv c x xs xz w ws wz ys yz b -> y" attributes})
// A convolution between quantizers, scales by channel; behind it what `nodes` make of f.
#define BETWEEN(name, inputs, constants, ...)                                            \
  {                                                                                      \
    name, 21, inputs, constants,                                                         \
        {"DequantizeLinear dx x xs xz -> xf", "DequantizeLinear dw w ws -> wf | axis=0", \
         __VA_ARGS__},                                                                   \
        "y"                                                                              \
  }
#define CHANNELS(n)                                                                               \
  "xs float[] 0.02", "xz int8[] 0", "ws float[" n "] positive", "ys float[] 0.7", "yz int8[] -3", \
      "rs float[] 0.05", "rz int8[] 4"

static const graph_case_t rows[] = {
    QMATMUL("uint8", "0", "int8", "0", "uint8", "70", "144", "200"),
    QMATMUL("uint8", "128", "int8", "0", "int8", "130", "80", "264"),
    QMATMUL("int8", "-5", "uint8", "128", "uint8", "130", "64", "40"),
    QMATMUL("int8", "0", "int8", "0", "int8", "9", "1408", "44"),
    QMATMUL("int8", "3", "int8", "0", "int8", "140", "48", "203"),
    QMATMUL("uint8", "255", "int8", "0", "uint8", "1", "16", "1"),
    QMATMUL("int8", "127", "int8", "0", "uint8", "400", "336", "330"),
    NODES("scales and zero points by column", {"x int8[20,128]"},
          LIST(NUMBERS("int8", "9", "int8", "-100"), "w uint8[128,4]",
               "ws float[4] 0.01 0.02 0.03 0.04", "wz uint8[4] 128 128 128 128"),
          {"QLinearMatMul p x xs xz w ws wz ys yz -> y"}),
    NODES(
        "batches joined", {"x uint8[3,50,64]"},
        LIST(NUMBERS("uint8", "7", "int8", "0"), "w int8[64,96]", "ws float[] 0.01", "wz int8[] 0"),
        {"QLinearMatMul p x xs xz w ws wz ys yz -> y"}),
    NODES("sums alone", {"x uint8[4,39,96]"}, LIST("xz uint8[] 3", "w int8[96,72]"),
          {"MatMulInteger p x w xz -> y"}),
    NODES("sums alone, an odd number a row", {"x int8[67,32]"},
          LIST("xz int8[] -3", "w int8[32,71]"), {"MatMulInteger p x w xz -> y"}),
    NODES("a zero point that is read", LIST("x uint8[70,208]", "xz uint8[]"), {"w int8[208,104]"},
          {"MatMulInteger p x w xz -> y"}),
    NODES("windows and a zero point that is read", LIST("x int8[2,64,6,5]", "xz int8[]"),
          {"w int8[36,64,3,3]"}, {"ConvInteger c x w xz -> y"}),
    QCONV("1x1", "uint8", "2,48,5,6", "9", "48,1,1", "72", ""),
    QCONV("1x1 with a stride", "int8", "2,64,7,9", "-7", "64,1,1", "40", " | strides=2,2"),
    QCONV("3x3", "int8", "3,64,7,9", "0", "64,3,3", "40", " | pads=1,1,1,1"),
    QCONV("3x3 of whole lines", "uint8", "2,128,6,5", "0", "128,3,3", "24", " | pads=1,1,1,1"),
    QCONV("3x3 with strides", "uint8", "2,192,10,9", "0", "192,3,3", "24",
          " | pads=1,0,1,2 strides=2,1"),
    QCONV("3x3 without pads, a zero point", "uint8", "2,64,6,7", "77", "64,3,3", "33", ""),
    QCONV("strides that leave some over", "int8", "2,64,10,12", "0", "64,3,3", "24",
          " | pads=0,1,0,1 strides=3,4"),
    QCONV("5x3 with dilations", "int8", "1,256,13,11", "0", "256,5,3", "32",
          " | pads=4,1,4,3 dilations=2,2"),
    QCONV("few channels", "uint8", "2,3,19,17", "0", "3,7,7", "32", " | pads=3,2,1,3 strides=2,2"),
    QCONV("few channels, a zero point around them", "uint8", "2,3,11,9", "77", "3,3,3", "20",
          " | pads=1,1,1,1"),
    QCONV("few channels, a negative one", "int8", "1,5,9,11", "-100", "5,3,3", "16",
          " | pads=2,0,1,1"),
    QCONV("one channel along one axis", "int8", "1,1,37", "-3", "1,5", "16", " | pads=2,2"),
    QCONV("patches", "uint8", "2,3,32,48", "128", "3,16,16", "24", " | strides=16,16"),
    NODES("few channels and a zero point that is read", LIST("x int8[2,3,6,5]", "xz int8[]"),
          {"w int8[36,3,3,3]"}, {"ConvInteger c x w xz -> y"}),
    QCONV("one axis", "uint8", "2,64,30", "0", "64,3", "48", " | pads=1,1"),
    BETWEEN("a residual and ReLU", LIST("x int8[2,64,9,8]", "r int8[2,72,9,8]"),
            LIST("w int8[72,64,3,3]", CHANNELS("72"), "b float[72]"),
            "Conv c xf wf b -> h | pads=1,1,1,1", "DequantizeLinear dr r rs rz -> rf",
            "Add a h rf -> g", "Relu u g -> v", "QuantizeLinear q v ys yz -> y"),
    BETWEEN("a residual of other columns", LIST("x int8[1,128,5,5]", "r int8[1,67,5,5]"),
            LIST("w int8[67,128,1,1]", CHANNELS("67")), "Conv c xf wf -> h",
            "DequantizeLinear dr r rs rz -> rf", "Mul a h rf -> g",
            "QuantizeLinear q g ys yz -> y"),
    BETWEEN("one number a channel", LIST("x int8[2,64,5,7]", "r int8[2,68,1,1]"),
            LIST("w int8[68,64,1,1]", CHANNELS("68")), "Conv c xf wf -> h",
            "DequantizeLinear dr r rs rz -> rf", "Mul a h rf -> g",
            "QuantizeLinear q g ys yz -> y"),
    BETWEEN("functions behind it", LIST("x int8[2,64,5,7]", "r int8[2,36,5,7]"),
            LIST("w int8[36,64,1,1]", CHANNELS("36")), "Conv c xf wf -> h", "HardSwish f h -> k",
            "DequantizeLinear dr r rs rz -> rf", "Add a k rf -> g", "Clip m g -> v",
            "QuantizeLinear q v ys yz -> y"),
    // Bytes out of cells; of ties, one sum in 64 is where a byte changes, or next to it.
    BETWEEN("a function", {"x int8[2,64,9,8]"},
            LIST("w int8[72,64,1,1]", CHANNELS("72"), "b float[72]"), "Conv c xf wf b -> h",
            "Gelu f h -> g", "QuantizeLinear q g ys yz -> y"),
    BETWEEN("a function of odd columns", {"x int8[1,64,9,8]"},
            LIST("w int8[37,64,1,1]", CHANNELS("37"), "b float[37]"), "Conv c xf wf b -> h",
            "HardSwish f h -> g", "QuantizeLinear q g ys yz -> y"),
    BETWEEN("ties", {"x int8[2,16,9,8]"},
            LIST("w int8[72,16,1,1]", "xs float[] 1", "xz int8[] 0", "ws float[] 1",
                 "ys float[] 64", "yz int8[] -100"),
            "Conv c xf wf -> h", "HardSwish f h -> g", "QuantizeLinear q g ys yz -> y"),
    BETWEEN("scales of channels and floats", LIST("x int8[2,64,6,7]", "r float[2,40,6,7]"),
            LIST("w int8[40,64,1,1]", CHANNELS("40"), "b float[40]", "g float[40,1,1]"),
            "Conv c xf wf b -> h", "Mul m h g -> v", "Add a v r -> y"),
    BETWEEN("floats", {"x int8[2,64,6,7]"},
            LIST("w int8[40,64,3,3]", CHANNELS("40"), "b float[40]"),
            "Conv c xf wf b -> h | pads=1,1,1,1", "Relu u h -> y"),
    BETWEEN("floats off 16 bytes", {"x int8[1,64,6,7]"}, LIST("w int8[41,64,1,1]", CHANNELS("41")),
            "Conv c xf wf -> y"),
};
enum { N_ROWS = sizeof rows / sizeof *rows };

// Of eight steps or more: not equally many for each block; rows that end in another block's part,
// a last tile of few rows; steps that begin within a row of windows; columns that are not stored
// together; zero points that are read; what follows sums.
static const graph_case_t long_rows[] = {
    QMATMUL("int8", "-5", "int8", "0", "uint8", "70", "1408", "76"),
    QCONV("3x3 of nine steps", "uint8", "2,128,6,9", "0", "128,3,3", "40", " | pads=1,1,1,1"),
    NODES("sums alone, an odd number a row", {"x int8[67,1104]"},
          LIST("xz int8[] -3", "w int8[1104,71]"), {"MatMulInteger p x w xz -> y"}),
    NODES("a zero point that is read", LIST("x uint8[130,1040]", "xz uint8[]"),
          {"w int8[1040,104]"}, {"MatMulInteger p x w xz -> y"}),
    QCONV("5x3 with dilations", "int8", "1,256,13,11", "0", "256,5,3", "32",
          " | pads=4,1,4,3 dilations=2,2"),
    QCONV("strides and steps of half a line", "uint8", "2,192,10,9", "0", "192,3,3", "24",
          " | pads=1,0,1,2 strides=2,1"),
    BETWEEN("a residual and ReLU", LIST("x int8[2,64,9,8]", "r int8[2,72,9,8]"),
            LIST("w int8[72,64,3,3]", CHANNELS("72"), "b float[72]"),
            "Conv c xf wf b -> h | pads=1,1,1,1", "DequantizeLinear dr r rs rz -> rf",
            "Add a h rf -> g", "Relu u g -> v", "QuantizeLinear q v ys yz -> y"),
    BETWEEN("a function", {"x int8[2,64,6,7]"},
            LIST("w int8[44,64,3,3]", CHANNELS("44"), "b float[44]"),
            "Conv c xf wf b -> h | pads=1,1,1,1", "Gelu f h -> g | approximate=tanh",
            "QuantizeLinear q g ys yz -> y"),
    BETWEEN("functions and odd columns", LIST("x int8[1,128,5,7]", "r int8[1,37,5,7]"),
            LIST("w int8[37,128,3,3]", CHANNELS("37")), "Conv c xf wf -> h | pads=1,1,1,1",
            "HardSwish f h -> k", "DequantizeLinear dr r rs rz -> rf", "Add a k rf -> g",
            "Clip m g -> v", "QuantizeLinear q v ys yz -> y"),
    BETWEEN("floats", {"x int8[2,64,6,7]"},
            LIST("w int8[40,64,3,3]", CHANNELS("40"), "b float[40]"),
            "Conv c xf wf b -> h | pads=1,1,1,1", "Relu u h -> y"),
};
enum { N_LONG_ROWS = sizeof long_rows / sizeof *long_rows };

// A row by the first of the kernels and every step-th of the others, and the next row by those
// after them.
static void compare(const graph_case_t* row, size_t i, const char* const* by, size_t n,
                    size_t step) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(row, in);
  uint64_t random = i;
  tactic_run_t want;
  print_message("%s\n", row->name);
  for (size_t k = 0; in[k]; k++) int8_case_fill(in[k], &random);
  forced_case_run(m, "emu", NULL, in, &want);
  forced_case_compare(row->name, &want, m, "cuda", by[0], in);
  for (size_t k = 1 + i % step; k < n; k += step)
    forced_case_compare(row->name, &want, m, "cuda", by[k], in);
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

// On a GPU all tiles run each row. Here, where each kernel takes seconds to compile and run, a row
// has every fourth tile.
static void tiles_give_the_bits_of_the_definition(void** state) {
  const size_t step = getenv("ASSAY_TEST_GPU") ? 1 : 4;
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) compare(&rows[i], i, kernels, N_KERNELS, step);
}

static void blocks_share_out_terms(void** state) {
  const size_t step = getenv("ASSAY_TEST_GPU") ? 1 : 5;
  (void)state;
  for (size_t i = 0; i < N_LONG_ROWS; i++) compare(&long_rows[i], i, shared, N_SHARED, step);
}

// What the copy engine cannot bring, or not by whole steps; zero points that it does not know.
static void others_are_left_to_others(void** state) {
  (void)state;
  static const graph_case_t others[] = {
      QMATMUL("uint8", "0", "int8", "0", "uint8", "70", "40", "64"),
      QMATMUL("int8", "0", "uint8", "3", "uint8", "70", "64", "64"),
      NODES("weights of the run", LIST("x int8[20,64]", "w int8[64,16]"),
            LIST(NUMBERS("int8", "0", "int8", "0"), "ws float[] 0.01", "wz int8[] 0"),
            {"QLinearMatMul p x xs xz w ws wz ys yz -> y"}),
      NODES("a matrix of weights for each sample", {"x int8[3,5,32]"},
            LIST(NUMBERS("int8", "0", "int8", "0"), "w int8[3,32,16]", "ws float[] 0.01",
                 "wz int8[] 0"),
            {"QLinearMatMul p x xs xz w ws wz ys yz -> y"}),
      NODES("pads and a zero point that is read", LIST("x int8[1,64,6,5]", "xz int8[]"),
            {"w int8[12,64,3,3]"}, {"ConvInteger c x w xz -> y | pads=1,1,1,1"}),
      NODES("few channels, pads and a zero point that is read",
            LIST("x int8[1,3,6,5]", "xz int8[]"), {"w int8[12,3,3,3]"},
            {"ConvInteger c x w xz -> y | pads=1,1,1,1"}),
      QCONV("few channels, with dilations", "uint8", "1,3,9,11", "0", "3,3,3", "8",
            " | dilations=2,2"),
      QCONV("pads and a zero point", "uint8", "1,64,7,9", "3", "64,3,3", "8", " | pads=0,0,0,1"),
      QCONV("channels of half a step", "uint8", "1,32,7,9", "0", "32,3,3", "8", ""),
      QCONV("groups", "uint8", "1,128,6,5", "0", "64,3,3", "16", " | group=2"),
      QCONV("three axes", "uint8", "1,64,3,4,5", "0", "64,2,2,2", "8", ""),
      QCONV("long strides", "uint8", "1,64,3,30", "0", "64,1,3", "8", " | strides=1,9"),
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    product_case_left(&others[i], ASSAY_FORMAT_FP32, "int8_bulk");
}

// Whatever is not asked for by name, and is a product of tiles, is not made an element a thread.
static void direct_is_left_out(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) product_case_left(&rows[i], ASSAY_FORMAT_FP32, "int8_direct");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_give_the_bits_of_the_definition),
                                     cmocka_unit_test(blocks_share_out_terms),
                                     cmocka_unit_test(others_are_left_to_others),
                                     cmocka_unit_test(direct_is_left_out)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
