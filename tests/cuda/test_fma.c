// Products by multiply-adds on a GPU that is not there (fake/): all tiles give the same bits, which
// are those of a chain of fused multiply-adds.
#include <math.h>
#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, inputs, constants, node) \
  { name, 20, inputs, constants, {node}, "y" }

static const char* const tiles[] = {"128x128", "128x64", "32x64", "32x32", "16x64", "16x32"};
enum { N_TILES = sizeof tiles / sizeof *tiles };

// Both orders of the weights, and what is brought element by element; leftovers of rows, columns
// and steps; steps beyond what shared memory has; several matrices; convolutions.
static const graph_case_t rows[] = {
    ROW("columns side by side", {"x float[70,136]"}, {"w float[136,200]"}, "MatMul p x w -> y"),
    ROW("terms side by side", {"x float[130,72]"}, LIST("w float[264,72]", "b float[264]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("element by element", {"x float[9,21]"}, {"w float[21,35]"}, "MatMul p x w -> y"),
    ROW("turned left side", {"x float[72,40]"}, {"w float[72,48]"}, "Gemm p x w -> y | transA=1"),
    ROW("many steps", {"x float[8,1400]"}, {"w float[1400,40]"}, "MatMul p x w -> y"),
    ROW("one term", {"x float[3,1]"}, {"w float[1,5]"}, "MatMul p x w -> y"),
    ROW("activations", LIST("x float[2,3,66,16]", "z float[3,16,40]"), {0}, "MatMul p x z -> y"),
    ROW("1x1", {"x float[2,16,5,6]"}, LIST("w float[72,16,1,1]", "b float[72]"),
        "Conv c x w b -> y"),
    ROW("3x3", {"x float[1,24,9,11]"}, LIST("w float[40,24,3,3]", "b float[40]"),
        "Conv c x w b -> y | pads=1,0,1,2 strides=2,1"),
    ROW("patches", {"x float[2,3,32,48]"}, LIST("w float[24,3,16,16]", "b float[24]"),
        "Conv c x w b -> y | strides=16,16"),
    ROW("groups", {"x float[1,32,6,5]"}, {"w float[16,16,3,3]"}, "Conv c x w -> y | group=2"),
    ROW("transposed", {"x float[2,8,5,4]"}, {"w float[8,16,4,4]"},
        "ConvTranspose c x w -> y | strides=2,2 pads=1,1,1,1"),
    {"a program behind it",
     20,
     {"x float[2,9,24]"},
     {"w float[24,40]", "b float[40]", "c float[9,40]"},
     {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k c -> y"},
     "y"},
};

static void compare(const graph_case_t* c) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(c, in);
  tactic_run_t want, got;
  forced_case_run(m, "cuda", "product_fma/64x64", in, &want);
  assert_string_equal(want.tactic, "product_fma/64x64");
  for (int i = 0; i < N_TILES; i++) {
    char kernel[64];
    snprintf(kernel, sizeof kernel, "product_fma/%s", tiles[i]);
    forced_case_run(m, "cuda", kernel, in, &got);
    assert_string_equal(got.tactic, kernel);
    if (!tactic_case_identical(want.out[0], got.out[0]))
      fail_msg("%s by %s has other bits", c->name, got.tactic);
    tactic_case_release(&got);
  }
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

static void tiles_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    print_message("%s\n", rows[i].name);
    compare(&rows[i]);
  }
}

// By the sum's own definition, for a product without anything else.
static void sums_are_chains(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  static const graph_case_t c =
      ROW("chains", LIST("x float[9,77]", "z float[77,20]"), {0}, "MatMul p x z -> y");
  assay_model_t* m = graph_case_model(&c, in);
  tactic_run_t got;
  forced_case_run(m, "cuda", "product_fma/16x32", in, &got);
  const double *x = (const double*)in[0]->data, *z = (const double*)in[1]->data;
  const double* y = (const double*)got.out[0]->data;  // floats are kept so
  assert_int_equal(assay_type_store(got.out[0]->type), ASSAY_STORE_F64);
  for (int i = 0; i < 9; i++)
    for (int j = 0; j < 20; j++) {
      float sum = 0;
      for (int k = 0; k < 77; k++) sum = fmaf((float)x[i * 77 + k], (float)z[k * 20 + j], sum);
      assert_true((double)sum == y[i * 20 + j]);
    }
  tactic_case_release(&got);
  graph_case_release(in);
  assay_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_give_the_same_bits),
                                     cmocka_unit_test(sums_are_chains)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
