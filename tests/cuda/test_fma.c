// Products by multiply-adds on a GPU that is not there (fake/): all tiles give the same bits, which
// are those of a chain of fused multiply-adds.
#include <math.h>

#include "cuda/product_case.h"

static const char* const kernels[] = {
    "product_fma/64x64", "product_fma/128x128", "product_fma/128x64", "product_fma/32x64",
    "product_fma/32x32", "product_fma/16x64",   "product_fma/16x32",  NULL};

static void tiles_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < PRODUCT_CASE_ALL; i++)
    product_case_same(&product_case_all[i], ASSAY_FORMAT_FP32, kernels);
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
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
