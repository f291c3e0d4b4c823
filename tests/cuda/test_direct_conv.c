// Convolutions of few channels a group on a GPU that is not there (fake/): by pieces of rows of all
// shapes that fit, with the bits of those made element by element.
#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }

typedef struct direct_case {
  graph_case_t graph;
  int pieces, in_16_bits;  // shapes that fit the layer in 32 bits, and in 16
} direct_case_t;

// Edges in all directions, pieces that are cut off, strides past the kernel, and all widths.
#define ROW(name, x, w, made, attributes, pieces, in_16_bits)                    \
  {                                                                              \
    {name,                                                                       \
     17,                                                                         \
     {"x float[" x "]"},                                                         \
     LIST("w float[" w "]", "b float[" made "]"),                                \
     LIST("Conv c x w b -> h | " attributes, "Add a h h -> g", "Relu r g -> y"), \
     "y"},                                                                       \
        pieces, in_16_bits                                                       \
  }
static const direct_case_t rows[] = {
    ROW("3x3", "2,8,5,7", "8,1,3,3", "8", "group=8 pads=1,1,1,1", 6, 8),
    ROW("5x5", "1,16,9,6", "16,1,5,5", "16", "group=16 pads=2,2,2,2 strides=2,2", 6, 8),
    ROW("7x7", "1,8,7,8", "8,1,7,7", "8", "group=8 pads=3,3,3,3", 6, 8),
    ROW("11x11", "1,8,12,9", "8,1,11,11", "8", "group=8 pads=5,5,5,5", 6, 8),
    ROW("gaps", "1,8,9,10", "8,1,3,2", "8", "group=8 strides=2,3 pads=2,0,0,2", 6, 8),
    ROW("dilations", "1,8,9,11", "8,1,3,3", "8", "group=8 dilations=2,3 pads=2,3,2,3", 6, 8),
    ROW("odd channels", "1,7,5,6", "7,1,3,3", "7", "group=7 pads=1,1,1,1", 1, 1),
    ROW("six channels", "2,6,5,6", "6,1,3,3", "6", "group=6 pads=1,1,1,1", 3, 3),
    ROW("two a channel", "1,8,5,6", "16,1,3,3", "16", "group=8 pads=1,1,1,1", 3, 3),
    ROW("groups of four", "1,16,5,6", "16,4,3,3", "16", "group=4 pads=1,1,1,1", 6, 6),
    ROW("groups of eight to two", "1,16,5,6", "4,8,3,3", "4", "group=2 pads=1,1,1,1", 0, 3),
    ROW("one axis", "2,8,20", "8,1,5", "8", "group=8 strides=3 pads=2,1", 6, 8),
};

static int count_pieces(const graph_case_t* c, assay_format_t format) {
  static const char* const kernels[] = {"direct_conv/1x1", "direct_conv/2x1", "direct_conv/2x2",
                                        "direct_conv/2x4", "direct_conv/4x1", "direct_conv/4x2",
                                        "direct_conv/4x4", "direct_conv/8x1", "direct_conv/8x2"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(c, in);
  tactic_run_t want, got;
  int n = 0;
  forced_case_run_in(format, m, "cuda", "direct_conv/element", in, &want);
  assert_string_equal(want.tactic, "direct_conv/element");
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    forced_case_run_in(format, m, "cuda", kernels[k], in, &got);
    n += strcmp(got.tactic, kernels[k]) == 0;
    if (!tactic_case_identical(want.out[0], got.out[0]))
      fail_msg("%s by %s has other bits", c->name, got.tactic);
    tactic_case_release(&got);
  }
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
  return n;
}

static void pieces_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const direct_case_t* c = &rows[i];
    print_message("%s\n", c->graph.name);
    assert_int_equal(count_pieces(&c->graph, ASSAY_FORMAT_FP32), c->pieces);
    assert_int_equal(count_pieces(&c->graph, ASSAY_FORMAT_FP16), c->in_16_bits);
    assert_int_equal(count_pieces(&c->graph, ASSAY_FORMAT_BF16), c->in_16_bits);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_give_the_same_bits)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
