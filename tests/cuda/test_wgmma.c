// Products by wgmma on a GPU that is not there (fake/): all tiles give the bits of mma.sync.
#include "cuda/product_case.h"

static const char* const kernels[] = {"product_mma/64x64",     "product_wgmma/64x64",
                                      "product_wgmma/64x32",   "product_wgmma/64x96",
                                      "product_wgmma/64x128",  "product_wgmma/128x64",
                                      "product_wgmma/128x128", "product_wgmma/128x192",
                                      "product_wgmma/128x256", NULL};

static void tiles_give_the_bits_of_mma(void** state) {
  (void)state;
  for (size_t i = 0; i < PRODUCT_CASE_ALL; i++)
    product_case_same(&product_case_all[i], i % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16, kernels);
}

// It is for 16 bits.
static void float32_is_left_to_others(void** state) {
  (void)state;
  product_case_left(&product_case_all[0], ASSAY_FORMAT_FP32, "product_wgmma");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_give_the_bits_of_mma),
                                     cmocka_unit_test(float32_is_left_to_others)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
