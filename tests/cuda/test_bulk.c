// Products whose tiles the copy engine brings, on a GPU that is not there (fake/): all tiles give
// the bits of mma.sync.
#include "cuda/product_case.h"

static const char* const kernels[] = {"product_mma/64x64",        "product_bulk/64x32",
                                      "product_bulk/64x64",       "product_bulk/64x96",
                                      "product_bulk/64x128",      "product_bulk/128x64",
                                      "product_bulk/128x96",      "product_bulk/128x128",
                                      "product_bulk/128x160",     "product_bulk/128x192",
                                      "product_bulk/128x256",     "product_turns/128x64",
                                      "product_turns/128x96",     "product_turns/128x128",
                                      "product_turns/256x64",     "product_turns/256x96",
                                      "product_turns/256x128",    "product_clusters/128x128",
                                      "product_clusters/128x160", "product_clusters/128x192",
                                      "product_clusters/128x256", NULL};

// Both orders of the weights; leftovers of rows, columns and steps; more steps than shared memory
// has; weights of the run; convolutions that are matrices, and windows with pads, strides,
// dilations and several samples in a tile. Rows of an odd number of tiles leave one block of a pair
// with none.
static const graph_case_t rows[] = {
    ROW("columns side by side", {"x float[70,136]"}, {"w float[136,200]"}, "MatMul p x w -> y"),
    ROW("terms side by side", {"x float[130,72]"}, LIST("w float[264,72]", "b float[264]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("many steps", {"x float[8,1400]"}, {"w float[1400,40]"}, "MatMul p x w -> y"),
    ROW("one row", {"x float[1,64]"}, {"w float[64,8]"}, "MatMul p x w -> y"),
    ROW("several tiles a block, and groups in turn", {"x float[400,328]"}, {"w float[328,330]"},
        "MatMul p x w -> y"),
    ROW("weights off 16 bytes", {"x float[70,64]"}, {"w float[64,20]"}, "MatMul p x w -> y"),
    ROW("odd rows of weights and results", {"x float[140,72]"}, {"w float[72,203]"},
        "MatMul p x w -> y"),
    ROW("odd rows of results", {"x float[9,72]"}, LIST("w float[35,72]", "b float[35]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("weights of the run", LIST("x float[20,72]", "z float[72,40]"), {0}, "MatMul p x z -> y"),
    ROW("batches joined", {"x float[3,50,64]"}, {"w float[64,96]"}, "MatMul p x w -> y"),
    ROW("a batch of one before others", {"x float[1,3,22,64]"}, {"w float[64,96]"},
        "MatMul p x w -> y"),
    ROW("1x1", {"x float[2,24,5,6]"}, LIST("w float[72,24,1,1]", "b float[72]"),
        "Conv c x w b -> y"),
    ROW("1x1 with a stride", {"x float[2,64,7,9]"}, {"w float[40,64,1,1]"},
        "Conv c x w -> y | strides=2,2"),
    ROW("3x3", {"x float[3,64,7,9]"}, LIST("w float[40,64,3,3]", "b float[40]"),
        "Conv c x w b -> y | pads=1,1,1,1"),
    ROW("3x3 with strides", {"x float[2,128,10,9]"}, {"w float[24,128,3,3]"},
        "Conv c x w -> y | pads=1,0,1,2 strides=2,1"),
    ROW("strides that leave some over", {"x float[2,64,10,12]"}, {"w float[24,64,3,3]"},
        "Conv c x w -> y | pads=0,1,0,1 strides=3,4"),
    ROW("5x3 with dilations", {"x float[1,64,13,11]"}, {"w float[32,64,5,3]"},
        "Conv c x w -> y | pads=4,1,4,3 dilations=2,2"),
    ROW("one axis", {"x float[2,64,30]"}, {"w float[48,64,3]"}, "Conv c x w -> y | pads=1,1"),
    ROW("patches of few channels", {"x float[2,3,32,48]"},
        LIST("w float[24,3,16,16]", "b float[24]"), "Conv c x w b -> y | strides=16,16"),
    ROW("patches of steps", {"x float[2,32,8,12]"}, {"w float[40,32,2,2]"},
        "Conv c x w -> y | strides=2,2"),
    ROW("few channels", {"x float[2,3,19,17]"}, LIST("w float[32,3,7,7]", "b float[32]"),
        "Conv c x w b -> y | pads=3,2,1,3 strides=2,2"),
    ROW("one channel along one axis", {"x float[1,1,37]"}, {"w float[16,1,5]"},
        "Conv c x w -> y | pads=2,2"),
    {"a program behind it",
     20,
     {"x float[2,9,24]"},
     {"w float[24,40]", "b float[40]", "c float[9,40]"},
     {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k c -> y"},
     "y"},
    {"a rough form behind it",
     20,
     {"x float[300,72]"},
     {"w float[72,264]", "b float[264]"},
     {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> y"},
     "y"},
};

static void tiles_give_the_bits_of_mma(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    product_case_share(rows, i, i / 3 % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16, kernels);
}

// GELU of sums that lie apart, of which few are open; and of 16 + 31 / 128, what fp16 cannot tell
// from the numbers beside it: all are open, more than a list has room for.
static void open_sums_find_room(void** state) {
  (void)state;
  static const graph_case_t c = {"open sums",
                                 20,
                                 {"x float[264,72]", "z float[72,136]"},
                                 {0},
                                 {"MatMul p x z -> h", "Gelu f h -> y"},
                                 "y"};
  static const char* const some[] = {"product_mma/64x64",        "product_bulk/128x96",
                                     "product_turns/128x128",    "product_turns/256x96",
                                     "product_clusters/128x128", NULL};
  for (int all = 0; all < 2; all++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&c, in);
    tactic_run_t want, got;
    for (int64_t i = 0; all && i < in[0]->size; i++) assay_f64(in[0])[i] = 1;
    for (int64_t i = 0; all && i < in[1]->size; i++) assay_f64(in[1])[i] = 231.0 / 1024;
    forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", *some, in, &want);
    for (const char* const* kernel = some + 1; *kernel; kernel++) {
      forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", *kernel, in, &got);
      assert_string_equal(got.tactic, *kernel);
      if (!tactic_case_identical(want.out[0], got.out[0]))
        fail_msg("%s has other bits where %s are open", *kernel, all ? "all" : "few");
      tactic_case_release(&got);
    }
    tactic_case_release(&want);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// What a caller gets as float32 is stored so by the kernel, and rounded before.
static void results_are_of_the_format(void** state) {
  (void)state;
  static const graph_case_t c = ROW("for a caller", {"x float[70,136]"},
                                    LIST("w float[136,201]", "b float[201]"), "MatMul p x w -> y");
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16};
  static const char* const some[] = {"product_mma/64x64", "product_bulk/128x64",
                                     "product_turns/128x96", NULL};
  for (int i = 0; i < 2; i++)
    for (const char* const* kernel = some; *kernel; kernel++) {
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&c, in);
      tactic_run_t got;
      forced_case_run_in(formats[i], m, "cuda", *kernel, in, &got);
      assert_string_equal(got.tactic, *kernel);
      for (int64_t k = 0; k < got.out[0]->size; k++) {
        const double y = assay_tensor_element(got.out[0], k);
        double rounded;
        assay_format_round_n(formats[i], &y, &rounded, 1, ASSAY_OVERFLOW_IEEE);
        if (y != rounded) fail_msg("%s gives %.9g in %s", *kernel, y, i ? "bf16" : "fp16");
      }
      tactic_case_release(&got);
      graph_case_release(in);
      assay_model_release(m);
    }
}

// What the copy engine cannot bring, or not by whole steps.
static void others_are_left_to_others(void** state) {
  (void)state;
  static const graph_case_t others[] = {
      ROW("rows off 16 bytes", {"x float[70,20]"}, {"w float[20,64]"}, "MatMul p x w -> y"),
      ROW("weights of the run off 16 bytes", LIST("x float[70,64]", "z float[64,20]"), {0},
          "MatMul p x z -> y"),
      ROW("several matrices", LIST("x float[2,3,66,16]", "z float[3,16,40]"), {0},
          "MatMul p x z -> y"),
      ROW("turned left side", {"x float[72,40]"}, {"w float[72,48]"}, "Gemm p x w -> y | transA=1"),
      ROW("channels of half a step", {"x float[1,32,9,11]"}, {"w float[40,32,3,3]"},
          "Conv c x w -> y"),
      ROW("few channels, with dilations", {"x float[1,3,9,11]"}, {"w float[40,3,3,3]"},
          "Conv c x w -> y | dilations=2,2"),
      ROW("few channels, by weights of the run", LIST("x float[1,3,9,11]", "z float[40,3,3,3]"),
          {0}, "Conv c x z -> y"),
      ROW("groups", {"x float[1,128,6,5]"}, {"w float[16,64,3,3]"}, "Conv c x w -> y | group=2"),
      ROW("three axes", {"x float[1,64,3,4,5]"}, {"w float[8,64,2,2,2]"}, "Conv c x w -> y"),
      ROW("long strides", {"x float[1,64,3,30]"}, {"w float[8,64,1,3]"},
          "Conv c x w -> y | strides=1,9"),
      ROW("transposed", {"x float[2,64,5,4]"}, {"w float[64,16,4,4]"},
          "ConvTranspose c x w -> y | strides=2,2 pads=1,1,1,1"),
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    product_case_left(&others[i], ASSAY_FORMAT_FP16, "product_bulk");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_give_the_bits_of_mma), cmocka_unit_test(open_sums_find_room),
      cmocka_unit_test(results_are_of_the_format), cmocka_unit_test(others_are_left_to_others)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
