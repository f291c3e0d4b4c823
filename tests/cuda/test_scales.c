// Channels that are multiplied by numbers of a sample, and the product behind that, in one launch
// on a GPU that is not there (fake/): the bits of two launches, and the layers that stay alone.
#include "cuda/pair_case.h"

static const char scale[] = "scale";

#define LAYERS(name, inputs, constants, ...) \
  { name, 20, inputs, constants, {__VA_ARGS__}, "y" }
#define IMAGE "Conv a z q -> x", "GlobalAveragePool g x -> s"
#define OF(from, to) "q float[" #from "," #to ",1,1]"

// Rows of a tile that are all of one sample, and of several; steps that are whole, and not; groups
// of rows that are cut off; the numbers on either side; what follows the product.
static const graph_case_t rows[] = {
    LAYERS("one sample", {"z float[1,8,5,7]"}, LIST(OF(24, 8), "w float[40,24,1,1]", "b float[40]"),
           IMAGE, "Mul m x s -> h", "Conv c h w b -> y"),
    LAYERS("samples of nine rows", {"z float[9,8,3,3]"}, LIST(OF(32, 8), "w float[16,32,1,1]"),
           IMAGE, "Mul m s x -> h", "Conv c h w -> y"),
    LAYERS("a step and a part", {"z float[3,8,7,7]"},
           LIST(OF(136, 8), "w float[72,136,1,1]", "b float[72]"), IMAGE, "Mul m x s -> h",
           "Conv c h w b -> k", "Tanh f k -> y"),
    LAYERS("samples of two rows", {"z float[40,8,1,2]"}, LIST(OF(40, 8), "w float[48,40,1,1]"),
           IMAGE, "Mul m x s -> h", "Conv c h w -> y"),
    LAYERS("columns of a matrix", LIST("x float[3,35,72]", "s float[3,1,72]"), {"w float[72,144]"},
           "Mul m x s -> h", "MatMul p h w -> y"),
    LAYERS("one row for all", LIST("x float[130,72]", "s float[72]"), {"w float[72,144]"},
           "Mul m x s -> h", "MatMul p h w -> y"),
};

static const graph_case_t others[] = {
    LAYERS("all elements", LIST("x float[70,72]", "s float[70,72]"), {"w float[72,144]"},
           "Mul m x s -> h", "MatMul p h w -> y"),
    LAYERS("a number for a row", LIST("x float[70,72]", "s float[70,1]"), {"w float[72,144]"},
           "Mul m x s -> h", "MatMul p h w -> y"),
    LAYERS("another function", LIST("x float[70,72]", "s float[72]"), {"w float[72,144]"},
           "Sub m x s -> h", "MatMul p h w -> y"),
    LAYERS("windows", {"z float[1,8,5,7]"}, LIST(OF(64, 8), "w float[40,64,3,3]"), IMAGE,
           "Mul m x s -> h", "Conv c h w -> y"),
    {"what lies between is read again",
     20,
     {"x float[70,72]", "s float[72]"},
     {"w float[72,144]"},
     {"Mul m x s -> h", "MatMul p h w -> y", "Neg n h -> k"},
     "y k"},
};

static void one_launch_has_the_bits_of_two(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    pair_case_check(scale, NULL, &rows[i], i % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16, 1);
}

static void others_stay_alone(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    pair_case_check(scale, NULL, &others[i], ASSAY_FORMAT_FP16, 0);
  pair_case_check(scale, NULL, &rows[5], ASSAY_FORMAT_TF32, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_two),
                                     cmocka_unit_test(others_stay_alone)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
