// Products of few rows on a GPU that is not there (fake/): the bits of mma.sync.
#include "cuda/product_case.h"

static const char* const kernels[] = {"product_mma/64x64", "product_few/8x16", NULL};

// Terms by 8, by 2 and one by one; fewer rows and columns than a tile has, and more columns; many
// steps; weights of the run; places of a convolution, and groups.
static const graph_case_t rows[] = {
    ROW("one row", {"x float[1,64]"}, LIST("w float[16,64]", "b float[16]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("leftovers", {"x float[3,40]"}, {"w float[70,40]"}, "Gemm p x w -> y | transB=1"),
    ROW("pairs of terms", {"x float[8,28]"}, LIST("w float[35,28]", "b float[35]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("terms one by one", {"x float[5,21]"}, {"w float[9,21]"}, "Gemm p x w -> y | transB=1"),
    ROW("many steps", {"x float[2,1500]"}, {"w float[33,1500]"}, "Gemm p x w -> y | transB=1"),
    ROW("one term", {"x float[7,1]"}, {"w float[5,1]"}, "Gemm p x w -> y | transB=1"),
    ROW("weights of the run", LIST("x float[4,72]", "z float[40,72]"), {0},
        "Gemm p x z -> y | transB=1"),
    ROW("squeezed", {"x float[2,24,1,1]"}, LIST("w float[72,24,1,1]", "b float[72]"),
        "Conv c x w b -> y"),
    ROW("a few places", {"x float[1,20,2,3]"}, {"w float[48,20,1,1]"}, "Conv c x w -> y"),
    ROW("groups", {"x float[1,64,1,2]"}, {"w float[48,32,1,1]"}, "Conv c x w -> y | group=2"),
    {"a program behind it",
     20,
     {"x float[2,24,1,1]"},
     {"w float[40,24,1,1]", "b float[40]"},
     {"Conv c x w b -> h", "Sigmoid f h -> y"},
     "y"},
};

static void few_rows_have_the_bits_of_mma(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    product_case_same(&rows[i], i % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16, kernels);
}

static void others_are_left_to_others(void** state) {
  (void)state;
  static const graph_case_t others[] = {
      ROW("more rows", {"x float[9,64]"}, {"w float[16,64]"}, "Gemm p x w -> y | transB=1"),
      ROW("columns side by side", {"x float[2,64]"}, {"w float[64,16]"}, "MatMul p x w -> y"),
      ROW("3x3", {"x float[1,16,3,3]"}, {"w float[16,16,3,3]"}, "Conv c x w -> y"),
      ROW("too many terms", {"x float[1,9000]"}, {"w float[16,9000]"},
          "Gemm p x w -> y | transB=1"),
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    product_case_left(&others[i], ASSAY_FORMAT_FP16, "product_few");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_rows_have_the_bits_of_mma),
                                     cmocka_unit_test(others_are_left_to_others)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
