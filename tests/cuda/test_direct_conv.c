// Convolutions of few channels a group on a GPU that is not there (fake/): by pieces of rows and by
// strips of all shapes that fit, with the bits of those made element by element.
#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }

typedef struct direct_case {
  graph_case_t graph;
  int pieces, in_16_bits;  // shapes that fit the layer in 32 bits, and in 16
  int strips;              // in 16 bits, besides
} direct_case_t;

// Edges in all directions, pieces that are cut off, strides past the kernel, and all widths.
#define ROW(name, x, w, made, attributes, pieces, in_16_bits, strips)            \
  {                                                                              \
    {name,                                                                       \
     17,                                                                         \
     {"x float[" x "]"},                                                         \
     LIST("w float[" w "]", "b float[" made "]"),                                \
     LIST("Conv c x w b -> h | " attributes, "Add a h h -> g", "Relu r g -> y"), \
     "y"},                                                                       \
        pieces, in_16_bits, strips                                               \
  }
static const direct_case_t rows[] = {
    ROW("3x3", "2,8,5,7", "8,1,3,3", "8", "group=8 pads=1,1,1,1", 6, 8, 6),
    ROW("5x5", "1,16,9,6", "16,1,5,5", "16", "group=16 pads=2,2,2,2 strides=2,2", 6, 8, 3),
    ROW("7x7", "1,8,7,8", "8,1,7,7", "8", "group=8 pads=3,3,3,3", 6, 8, 6),
    ROW("11x11", "1,8,12,9", "8,1,11,11", "8", "group=8 pads=5,5,5,5", 6, 8, 0),
    ROW("gaps", "1,8,9,10", "8,1,3,2", "8", "group=8 strides=2,3 pads=2,0,0,2", 6, 8, 5),
    ROW("dilations", "1,8,9,11", "8,1,3,3", "8", "group=8 dilations=2,3 pads=2,3,2,3", 6, 8, 0),
    ROW("odd channels", "1,7,5,6", "7,1,3,3", "7", "group=7 pads=1,1,1,1", 1, 1, 0),
    ROW("six channels", "2,6,5,6", "6,1,3,3", "6", "group=6 pads=1,1,1,1", 3, 3, 0),
    ROW("two a channel", "1,8,5,6", "16,1,3,3", "16", "group=8 pads=1,1,1,1", 3, 3, 0),
    ROW("groups of four", "1,16,5,6", "16,4,3,3", "16", "group=4 pads=1,1,1,1", 6, 6, 0),
    ROW("groups of eight to two", "1,16,5,6", "4,8,3,3", "4", "group=2 pads=1,1,1,1", 0, 3, 0),
    ROW("one axis", "2,8,20", "8,1,5", "8", "group=8 strides=3 pads=2,1", 6, 8, 0),
    // From here on for strips.
    ROW("blocks on all sides", "1,40,18,37", "40,1,7,7", "40", "group=40 pads=3,3,3,3", 0, 0, 8),
    ROW("samples of a block", "9,24,5,9", "24,1,4,3", "24", "group=24 pads=2,1,1,0 strides=1,2", 0,
        0, 5),
    ROW("taps in one row", "2,72,6,21", "72,1,1,6", "72", "group=72 pads=0,5,0,2 strides=1,2", 0, 0,
        6),
};

static const char* const pieces[] = {"1x1", "2x1", "2x2", "2x4", "4x1",
                                     "4x2", "4x4", "8x1", "8x2", NULL};
static const char* const strips[] = {"strips_7x7",  "strips_7x14", "strips_8x8",
                                     "strips_4x7",  "strips_4x4",  "strips_7x4",
                                     "strips_4x14", "strips_2x4",  NULL};

// How many of these take the layer, each of which is to give it bits that are wanted.
static int count_fitting(assay_model_t* m, assay_format_t format, assay_tensor_t* const* in,
                         const tactic_run_t* want, const char* name, const char* const* shapes) {
  int n = 0;
  for (; *shapes; shapes++) {
    char kernel[64];
    tactic_run_t got;
    snprintf(kernel, sizeof kernel, "direct_conv/%s", *shapes);
    forced_case_run_in(format, m, "cuda", kernel, in, &got);
    n += strcmp(got.tactic, kernel) == 0;
    if (!tactic_case_identical(want->out[0], got.out[0]))
      fail_msg("%s by %s has other bits", name, got.tactic);
    tactic_case_release(&got);
  }
  return n;
}

static void run_format(const direct_case_t* c, assay_format_t format, int n_pieces, int n_strips) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t want;
  forced_case_run_in(format, m, "cuda", "direct_conv/element", in, &want);
  assert_string_equal(want.tactic, "direct_conv/element");
  if (n_pieces)
    assert_int_equal(count_fitting(m, format, in, &want, c->graph.name, pieces), n_pieces);
  assert_int_equal(count_fitting(m, format, in, &want, c->graph.name, strips), n_strips);
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

static void all_shapes_give_the_same_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const direct_case_t* c = &rows[i];
    print_message("%s\n", c->graph.name);
    if (c->pieces) run_format(c, ASSAY_FORMAT_FP32, c->pieces, 0);
    run_format(c, ASSAY_FORMAT_FP16, c->in_16_bits, c->strips);
    if (i % 3 == 0) run_format(c, ASSAY_FORMAT_BF16, c->in_16_bits, c->strips);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes_give_the_same_bits)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
