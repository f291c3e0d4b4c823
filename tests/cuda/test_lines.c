// Convolutions of few channels from lines of the image on a GPU that is not there (fake/): the bits
// of mma.sync.
#include "cuda/product_case.h"

static const char* const kernels[] = {"product_mma/64x64", "product_lines/128", "product_lines/256",
                                      NULL};

// Lines that begin at any element, at pairs, and at multiples of eight; tiles that go on in the
// next sample, that begin with a line of the output, and that are parts of one; terms and columns
// that are over; one channel, an even number of them, and as many as are moved apart; edges of all
// sides; columns of several tiles.
static const graph_case_t rows[] = {
    ROW("3x3 of any width", {"x float[2,3,17,19]"}, LIST("w float[20,3,3,3]", "b float[20]"),
        "Conv c x w b -> y | pads=1,1,1,1"),
    ROW("7x7 of pairs", {"x float[1,3,40,38]"}, LIST("w float[24,3,7,7]", "b float[24]"),
        "Conv c x w b -> y | pads=3,3,3,3 strides=2,2"),
    ROW("whole lines", {"x float[3,3,16,32]"}, {"w float[5,3,3,3]"},
        "Conv c x w -> y | pads=1,1,1,1"),
    ROW("parts of lines", {"x float[1,3,2,512]"}, {"w float[16,3,3,3]"},
        "Conv c x w -> y | pads=1,1,1,1"),
    ROW("32 channels", {"x float[1,32,9,32]"}, LIST("w float[3,32,3,3]", "b float[3]"),
        "Conv c x w b -> y | pads=1,1,1,1"),
    ROW("edges of their own", {"x float[2,6,21,50]"}, {"w float[9,6,2,5]"},
        "Conv c x w -> y | pads=0,3,2,1 strides=1,2"),
    ROW("apart", {"x float[1,3,68,72]"}, LIST("w float[96,3,4,4]", "b float[96]"),
        "Conv c x w b -> y | strides=4,4"),
    ROW("one channel", {"x float[1,1,20,20]"}, {"w float[70,1,5,4]"}, "Conv c x w -> y"),
    {"a program behind it",
     20,
     {"x float[1,3,33,35]"},
     {"w float[32,3,3,3]", "b float[32]"},
     {"Conv c x w b -> h | pads=1,1,1,1 strides=2,2", "Sigmoid f h -> s", "Mul m h s -> y"},
     "y"},
};

static void lines_give_the_bits_of_mma(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    product_case_same(&rows[i], i % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16, kernels);
}

static void others_are_left_to_others(void** state) {
  (void)state;
  static const graph_case_t others[] = {
      ROW("fewer rows than a tile", {"x float[2,3,10,12]"}, {"w float[8,3,3,3]"},
          "Conv c x w -> y | pads=1,1,1,1"),
      ROW("groups", {"x float[1,6,20,20]"}, {"w float[8,3,3,3]"}, "Conv c x w -> y | group=2"),
      ROW("dilations", {"x float[1,3,20,20]"}, {"w float[8,3,3,3]"},
          "Conv c x w -> y | dilations=2,1 pads=2,1,2,1"),
      ROW("1x1", {"x float[1,3,20,20]"}, {"w float[8,3,1,1]"}, "Conv c x w -> y"),
      ROW("too many terms", {"x float[1,48,20,20]"}, {"w float[8,48,3,3]"}, "Conv c x w -> y"),
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    product_case_left(&others[i], ASSAY_FORMAT_FP16, "product_lines");
  product_case_left(&rows[0], ASSAY_FORMAT_FP32, "product_lines");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lines_give_the_bits_of_mma),
                                     cmocka_unit_test(others_are_left_to_others)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
