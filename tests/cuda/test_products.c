// Products and convolutions on a GPU that is not there (fake/): beside the emulated
// engine and within their bounds; the same bits alone and in a batch.
#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, inputs, constants, node, tolerance) \
  { {name, 17, inputs, constants, {node}, "y"}, NULL, tolerance, false }

// Sizes at which tiles and steps of the sums have something left over.
#define MATMUL(m, k, n)                                                              \
  ROW(m " x " k " x " n, LIST("x float[" m "," k "]"), LIST("w float[" k "," n "]"), \
      "MatMul p x w -> y", 1e-5)
static const tactic_case_t products[] = {
    MATMUL("1", "1", "1"),
    MATMUL("1", "7", "5"),
    MATMUL("17", "65", "129"),
    MATMUL("64", "64", "64"),
    MATMUL("65", "16", "8"),
    MATMUL("3", "130", "72"),
    ROW("of activations", LIST("x float[2,3,20,16]", "z float[3,16,40]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("one side for all", LIST("x float[3,5,24]", "z float[24,9]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("another batch", LIST("x float[1,4,8]", "z float[5,8,16]"), {0}, "MatMul p x z -> y", 1e-5),
    ROW("Gemm", {"x float[20,24]"}, LIST("w float[24,16]", "b float[16]"), "Gemm p x w b -> y",
        1e-5),
    ROW("Gemm, turned right side", {"x float[20,24]"}, LIST("w float[40,24]", "b float[1]"),
        "Gemm p x w b -> y | transB=1", 1e-5),
    ROW("Gemm, turned left side", {"x float[24,20]"}, {"w float[24,16]"},
        "Gemm p x w -> y | transA=1", 1e-5),
    ROW("Gemm, factors", {"x float[20,24]"}, LIST("w float[24,16]", "b float[16]"),
        "Gemm p x w b -> y | alpha=0.5 beta=-2.0", 1e-5),
    ROW("Gemm, a matrix is added", LIST("x float[20,24]", "z float[20,16]"), {"w float[24,16]"},
        "Gemm p x w z -> y | beta=0.25", 1e-5),
    ROW("Gemm, a column is added", LIST("x float[20,24]", "z float[20,1]"), {"w float[24,16]"},
        "Gemm p x w z -> y", 1e-5),
    ROW("Gemm, a factor alone", {"x float[20,24]"}, {"w float[24,16]"},
        "Gemm p x w -> y | alpha=3.0", 1e-5),
    ROW("a vector on the left", LIST("x float[24]", "z float[3,24,9]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("a vector on the right", LIST("x float[3,5,24]", "z float[24]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("two vectors", LIST("x float[24]", "z float[24]"), {0}, "MatMul p x z -> y", 1e-5),
    ROW("Gemm, both turned", {"x float[9,20]"}, {"w float[7,9]"},
        "Gemm p x w -> y | transA=1 transB=1", 1e-5),
    {{"a program behind it",
      20,
      {"x float[2,9,24]"},
      {"w float[24,40]", "b float[40]", "c float[9,40]"},
      {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k c -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"its own input behind it",
      17,
      {"x float[9,24]"},
      {"w float[24,24]"},
      {"MatMul p x w -> h", "Add a h x -> g", "Relu r g -> y"},
      "y"},
     NULL,
     1e-5,
     false},
};

#define CONV(name, x, w, attributes) \
  ROW(name, {x}, LIST(w, "b float[8]"), "Conv c x w b -> y" attributes, 1e-5)
static const tactic_case_t convs[] = {
    CONV("1x1", "x float[2,16,5,6]", "w float[8,16,1,1]", ""),
    CONV("3x3", "x float[1,8,7,9]", "w float[8,8,3,3]", " | pads=1,0,1,2"),
    CONV("strides", "x float[1,3,11,13]", "w float[8,3,5,5]", " | pads=2,2,2,2 strides=2,3"),
    CONV("dilations", "x float[1,5,9,11]", "w float[8,5,3,3]", " | dilations=2,1"),
    CONV("groups", "x float[1,32,6,5]", "w float[8,16,3,3]", " | group=2"),
    CONV("small groups", "x float[2,8,6,5]", "w float[8,2,3,3]", " | group=4 pads=1,1,1,1"),
    CONV("depthwise", "x float[2,8,6,5]", "w float[8,1,3,3]", " | group=8 pads=1,1,1,1"),
    CONV("depthwise, two a channel", "x float[1,4,6,5]", "w float[8,1,3,3]", " | group=4"),
    CONV("one axis", "x float[2,16,20]", "w float[8,16,5]", " | strides=3 pads=2,1"),
    CONV("three axes", "x float[1,4,3,4,5]", "w float[8,4,2,3,3]", " | pads=0,1,1,1,1,0"),
    CONV("SAME", "x float[1,8,7,7]", "w float[8,8,4,4]", " | auto_pad=SAME_LOWER strides=2,2"),
    ROW("no bias", {"x float[1,8,5,6]"}, {"w float[12,8,3,3]"}, "Conv c x w -> y", 1e-5),
    {{"a residual behind it",
      17,
      {"x float[2,8,6,5]"},
      {"w float[8,8,3,3]", "b float[8]"},
      {"Conv c x w b -> h | pads=1,1,1,1", "Add a h x -> g", "Relu r g -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"a depthwise one with a program",
      17,
      {"x float[1,8,6,5]"},
      {"w float[8,1,3,3]", "b float[8]"},
      {"Conv c x w b -> h | group=8", "HardSwish s h -> y"},
      "y"},
     NULL,
     1e-5,
     false},
};

#define TRANSPOSED(name, x, w, attributes) \
  ROW(name, {x}, {w}, "ConvTranspose c x w -> y" attributes, 1e-5)
static const tactic_case_t transposed[] = {
    TRANSPOSED("4x4", "x float[2,8,5,4]", "w float[8,6,4,4]", " | strides=2,2 pads=1,1,1,1"),
    TRANSPOSED("gaps", "x float[1,3,4,5]", "w float[3,2,2,2]", " | strides=3,4"),
    TRANSPOSED("groups", "x float[1,6,4,5]", "w float[6,4,3,3]",
               " | group=3 strides=3,2 output_padding=1,1"),
    TRANSPOSED("dilations", "x float[1,8,6,5]", "w float[8,16,3,2]", " | dilations=2,3"),
    TRANSPOSED("one axis", "x float[2,4,9]", "w float[4,8,3]", " | strides=2"),
    TRANSPOSED("depthwise", "x float[1,8,5,4]", "w float[8,1,4,4]",
               " | group=8 strides=2,2 pads=1,1,1,1"),
};

#define TEST(rows)                                     \
  static void rows##_agree(void** state) {             \
    (void)state;                                       \
    tactic_case_all(rows, sizeof rows / sizeof *rows); \
  }
TEST(products)
TEST(convs)
TEST(transposed)

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_agree),
                                     cmocka_unit_test(convs_agree),
                                     cmocka_unit_test(transposed_agree)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
