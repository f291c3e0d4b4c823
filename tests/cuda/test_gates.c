// Products whose columns' halves are put together, in one launch on a GPU that is not there
// (fake/): the bits of two launches, by all kernels of products, and the layers that stay alone.
#include "cuda/pair_case.h"

static const char gate[] = "gate";

#define SPLIT(axis) "Split s h -> u v | axis=" #axis " num_outputs=2"
#define SIMPLE(axis) SPLIT(axis), "Mul m u v -> y"
#define GLU(axis) SPLIT(axis), "Sigmoid f v -> g", "Mul m u g -> y"
#define SWIGLU(axis) SPLIT(axis), "Sigmoid f u -> g", "Mul k u g -> c", "Mul m c v -> y"
#define GEGLU(axis) SPLIT(axis), "Gelu f v -> g", "Mul m g u -> y"
#define LAYERS(name, inputs, constants, ...) \
  { name, 20, inputs, constants, {__VA_ARGS__}, "y" }

// Halves that are no whole number of vectors, nor of the columns that take turns; leftovers of rows
// and steps; biases and none; a product of rows, and one with the weights turned.
static const graph_case_t products[] = {
    LAYERS("1x1", {"x float[2,24,5,7]"}, LIST("w float[96,24,1,1]", "b float[96]"),
           "Conv c x w b -> h", SIMPLE(1)),
    LAYERS("1x1 without a bias", {"x float[1,64,9,8]"}, {"w float[32,64,1,1]"}, "Conv c x w -> h",
           SIMPLE(1)),
    LAYERS("an odd half", {"x float[3,16,5,5]"}, LIST("w float[42,16,1,1]", "b float[42]"),
           "Conv c x w b -> h", SIMPLE(1)),
    LAYERS("one column a half", {"x float[1,16,5,5]"}, {"w float[4,16,1,1]"}, "Conv c x w -> h",
           SIMPLE(1)),
    LAYERS("3x3", {"x float[2,64,6,7]"}, LIST("w float[72,64,3,3]", "b float[72]"),
           "Conv c x w b -> h | pads=1,1,1,1 strides=1,2", SIMPLE(1)),
    LAYERS("3x3 of few channels", {"x float[1,3,9,11]"}, LIST("w float[40,3,3,3]", "b float[40]"),
           "Conv c x w b -> h | pads=1,0,1,2", GLU(1)),
    LAYERS("patches", {"x float[2,4,8,12]"}, LIST("w float[48,4,4,4]", "b float[48]"),
           "Conv c x w b -> h | strides=4,4", SIMPLE(1)),
    LAYERS("GLU", {"x float[2,35,72]"}, LIST("w float[72,144]", "b float[144]"),
           "MatMul p x w -> l", "Add q l b -> h", GLU(2)),
    LAYERS("SwiGLU", {"x float[70,40]"}, {"w float[40,272]"}, "MatMul p x w -> h", SWIGLU(-1)),
    LAYERS("GEGLU, weights turned", {"x float[130,136]"}, LIST("w float[112,136]", "b float[112]"),
           "Gemm p x w b -> h | transB=1", GEGLU(1)),
    LAYERS("one row", {"x float[1,56]"}, LIST("w float[56,80]", "b float[80]"), "Gemm p x w b -> h",
           GLU(1)),
    LAYERS("terms one by one", {"x float[20,21]"}, {"w float[21,36]"}, "MatMul p x w -> h", GLU(1)),
    LAYERS("another value behind the gate", LIST("x float[2,16,5,4]", "z float[2,24,1,1]"),
           LIST("w float[48,16,1,1]", "b float[48]"), "Conv c x w b -> h", SPLIT(1),
           "Mul m u v -> k", "Mul n k z -> l", "Add o l z -> y"),
    LAYERS("halves that change places", {"x float[40,24]"}, {"w float[24,64]"}, "MatMul p x w -> h",
           SPLIT(1), "Tanh f u -> g", "Sub m v g -> y"),
    LAYERS("one half twice", {"x float[40,24]"}, {"w float[24,64]"}, "MatMul p x w -> h", SPLIT(1),
           "Mul m u u -> k", "Add n k v -> y"),
};

// Channels that divide by nothing, and by as many as are made at once; groups of several.
static const graph_case_t direct[] = {
    LAYERS("3x3 of each channel", {"x float[2,48,7,9]"}, LIST("w float[48,1,3,3]", "b float[48]"),
           "Conv c x w b -> h | group=48 pads=1,1,1,1", SIMPLE(1)),
    LAYERS("eight a half", {"x float[1,16,6,5]"}, {"w float[16,1,3,3]"},
           "Conv c x w -> h | group=16 pads=1,1,1,1", SIMPLE(1)),
    LAYERS("an odd half", {"x float[2,14,6,5]"}, LIST("w float[14,1,3,3]", "b float[14]"),
           "Conv c x w b -> h | group=14 pads=1,1,1,1", SIMPLE(1)),
    LAYERS("six a half, strides", {"x float[2,12,9,8]"}, LIST("w float[12,1,5,5]", "b float[12]"),
           "Conv c x w b -> h | group=12 pads=2,2,2,2 strides=2,2", GLU(1)),
    LAYERS("four a half, dilations", {"x float[1,8,9,11]"}, LIST("w float[8,1,3,3]", "b float[8]"),
           "Conv c x w b -> h | group=8 dilations=2,3 pads=2,3,2,3", SWIGLU(1)),
    LAYERS("two made of a channel", {"x float[1,8,5,6]"}, LIST("w float[16,1,3,3]", "b float[16]"),
           "Conv c x w b -> h | group=8 pads=1,1,1,1", SIMPLE(1)),
    LAYERS("groups of four", {"x float[1,16,5,6]"}, LIST("w float[16,4,3,3]", "b float[16]"),
           "Conv c x w b -> h | group=4 pads=1,1,1,1", GEGLU(1)),
    LAYERS("groups, an odd number of them", {"x float[1,12,5,6]"}, {"w float[6,4,3,3]"},
           "Conv c x w -> h | group=3 pads=1,1,1,1", SIMPLE(1)),
    LAYERS("one axis", {"x float[2,16,20]"}, LIST("w float[16,1,5]", "b float[16]"),
           "Conv c x w b -> h | group=16 strides=3 pads=2,1", SIMPLE(1)),
    LAYERS("three axes", {"x float[1,8,4,5,3]"}, LIST("w float[8,1,3,3,3]", "b float[8]"),
           "Conv c x w b -> h | group=8 pads=1,1,1,1,1,1", SIMPLE(1)),
    // As strips, which are predicted to be faster here.
    LAYERS("3x3 of a larger image", {"x float[2,48,40,41]"},
           LIST("w float[48,1,3,3]", "b float[48]"), "Conv c x w b -> h | group=48 pads=1,1,1,1",
           SIMPLE(1)),
    LAYERS("a value of the run beside it", LIST("x float[2,16,5,4]", "z float[2,8,1,1]"),
           LIST("w float[16,1,3,3]", "b float[16]"), "Conv c x w b -> h | group=16 pads=1,1,1,1",
           SPLIT(1), "Mul m u v -> k", "Mul n k z -> y"),
};

static void check(const graph_case_t* c, assay_format_t format, int pairs) {
  pair_case_check(gate, NULL, c, format, pairs);
}

static const assay_format_t others_of[] = {ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP32, ASSAY_FORMAT_TF32};

static void products_have_the_bits_of_two_launches(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    check(&products[i], ASSAY_FORMAT_FP16, 1);
    if (i % 3 == 0) check(&products[i], others_of[i / 3 % 2 * 2], 1);
  }
}

static void direct_convolutions_do(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof direct / sizeof *direct; i++) {
    check(&direct[i], ASSAY_FORMAT_FP16, 1);
    if (i % 3 == 0) check(&direct[i], others_of[i / 3 % 3], 1);
  }
}

// ---- each kernel --------------------------------------------------------------------------------

// Where all tactics of products but one are left out, its tile is that of the pair, too.
static void all_kernels_of_products_do(void** state) {
  (void)state;
  static const graph_case_t wide =
      LAYERS("more than a tile", {"x float[150,72]"}, LIST("w float[72,424]", "b float[424]"),
             "Gemm p x w b -> h", GLU(1));
  static const char* const tactics[] = {"product_bulk",  "product_turns", "product_clusters",
                                        "product_wgmma", "product_mma",   "product_fma"};
  enum { N = sizeof tactics / sizeof *tactics };
  for (int i = 0; i < N; i++) {
    char others[256] = "-product_few";
    for (int k = 0; k < N; k++)
      if (k != i) strcat(strcat(others, ",-"), tactics[k]);
    print_message("%s: ", tactics[i]);
    pair_case_check(gate, others, &wide, i < N - 1 ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_FP32, 1);
  }
}

// ---- others -------------------------------------------------------------------------------------

static const graph_case_t others[] = {
    {"what lies between is an output",
     20,
     {"x float[40,24]"},
     {"w float[24,64]"},
     {"MatMul p x w -> h", GLU(1)},
     "y h"},
    {"what lies between is read again",
     20,
     {"x float[40,24]"},
     {"w float[24,64]"},
     {"MatMul p x w -> h", GLU(1), "Neg n h -> z"},
     "y z"},
    LAYERS("another axis", {"x float[2,16,6,4]"}, {"w float[24,16,1,1]"}, "Conv c x w -> h",
           SIMPLE(2)),
    LAYERS("halves of unequal size are none", {"x float[40,24]"},
           LIST("w float[24,64]", "n int64[2] 24 40"), "MatMul p x w -> h",
           "Split s h n -> u v | axis=1", "Relu m u -> y"),
    LAYERS("four parts", {"x float[40,24]"}, {"w float[24,64]"}, "MatMul p x w -> h",
           "Split s h -> a b c d | axis=1 num_outputs=4", "Mul m a b -> k", "Mul n c d -> l",
           "Add o k l -> y"),
    LAYERS("weights of the run", LIST("x float[40,24]", "w float[24,64]"), {0}, "MatMul p x w -> h",
           GLU(1)),
    LAYERS("a function before the halves", {"x float[40,24]"}, {"w float[24,64]"},
           "MatMul p x w -> l", "Relu r l -> h", GLU(1)),
    LAYERS("several matrices", LIST("x float[2,40,24]"), {"w float[2,24,64]"}, "MatMul p x w -> h",
           GLU(2)),
};

static void others_stay_alone(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    check(&others[i], ASSAY_FORMAT_FP16, 0);
}

// Infinities and NaN go where they would.
static void special_numbers_are_the_same(void** state) {
  (void)state;
  pair_case_sample_t s;
  pair_case_run_t want, got;
  pair_case_init(&products[7], &s);
  tactic_case_specials(s.in[0]);
  pair_case_run(s.m, ASSAY_FORMAT_BF16, &(pair_case_way_t){.tactic = gate, .sources = "-gate"},
                s.in, &want);
  pair_case_run(s.m, ASSAY_FORMAT_BF16, &(pair_case_way_t){.tactic = gate}, s.in, &got);
  assert_int_equal(got.pairs, 1);
  for (int64_t i = 0; i < want.out[0]->size; i++) {
    const double a = assay_f64(want.out[0])[i], b = assay_f64(got.out[0])[i];
    if (!(isnan(a) ? isnan(b) : a == b)) fail_msg("element %lld is %g, not %g", (long long)i, b, a);
  }
  pair_case_release(&want);
  pair_case_release(&got);
  pair_case_deinit(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_the_bits_of_two_launches),
      cmocka_unit_test(direct_convolutions_do), cmocka_unit_test(all_kernels_of_products_do),
      cmocka_unit_test(others_stay_alone), cmocka_unit_test(special_numbers_are_the_same)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
