// Quantizers in one launch with what makes their floats, on a GPU that is not there (fake/): the
// bits of two launches, with the floats read by others and not, and the layers that stay alone.
#include <stdlib.h>

#include "cuda/pair_case.h"

typedef struct quantized_case {
  graph_case_t graph;
  int pairs;
} quantized_case_t;

static const pair_case_way_t apart = {.sources =
                                          "-rows_quantized,-chain_quantized,-reduce_quantized"},
                             any = {0};

#define S8 "s float[] 0.02", "z int8[] 5"
#define U8 "s float[] 0.03", "z uint8[] 100"
#define Q "QuantizeLinear q h s z -> y"
#define CASE(name, inputs, constants, nodes, output, pairs) \
  { {name, 23, inputs, constants, nodes, output}, pairs }

static const quantized_case_t rows[] = {
    CASE("rows by four", {"x float[3,5,136]"}, LIST(S8, "g float[136]", "b float[136]"),
         LIST("LayerNormalization n x g b -> h", Q), "y", 1),
    CASE("rows by four, floats read too", {"x float[3,5,136]"},
         LIST(S8, "g float[136]", "b float[136]"), LIST("LayerNormalization n x g b -> h", Q),
         "y h", 1),
    CASE("rows by two", {"x float[7,30]"}, LIST(U8, "g float[30]"),
         LIST("LayerNormalization n x g -> h", Q), "y", 1),
    CASE("odd rows, a residual behind", {"x float[4,77]"}, LIST(U8, "g float[77]", "b float[77]"),
         LIST("LayerNormalization n x g b -> h", Q, "Add a x h -> r"), "y r", 1),
    CASE("over the input", {"w float[4,64]"}, LIST(U8, "g float[64]", "b float[64]"),
         LIST("Relu p w -> x", "LayerNormalization n x g b -> h", Q, "Add a w h -> r"), "y r", 1),
    CASE("long rows", {"x float[2,5000]"}, LIST(S8, "g float[5000]", "b float[5000]"),
         LIST("LayerNormalization n x g b -> h", Q), "y", 1),
    CASE("RMS", {"x float[9,48]"}, LIST(S8, "g float[48]"), LIST("RMSNormalization n x g -> h", Q),
         "y", 1),
    CASE("softmax", {"x float[2,3,20,60]"}, LIST("s float[] 0.0039", "z uint8[] 0"),
         LIST("Softmax n x -> h", Q), "y", 1),
    CASE("softmax across", {"x float[2,12,7]"}, LIST("s float[] 0.0039", "z int8[] -128"),
         LIST("Softmax n x -> h | axis=1", Q), "y", 1),
    CASE("groups of an image", {"x float[2,8,5,3]"}, LIST(S8, "g float[8]", "b float[8]"),
         LIST("GroupNormalization n x g b -> h | num_groups=4", Q), "y", 1),
    CASE("a scale without an inverse", {"x float[3,40]"},
         LIST("s float[] 1e-20", "z int8[] 5", "g float[40]"),
         LIST("LayerNormalization n x g -> h", Q), "y", 1),
    CASE("a function and a sum", LIST("x float[6,52]", "w float[6,52]"), LIST(S8),
         LIST("Tanh t w -> i", "Add a x i -> h", Q), "y", 1),
    CASE("a sum, floats read too", LIST("x float[6,52]", "w float[6,52]"), LIST(U8),
         LIST("Add a x w -> h", Q), "y h", 1),
    CASE("an odd one", LIST("x float[3,7]", "w float[3,7]"), LIST(U8),
         LIST("Tanh t w -> i", "Add a x i -> h", Q), "y", 1),
    CASE("scaled by channel, a residual", LIST("x float[2,8,5,6]", "w float[2,8,5,6]"),
         LIST(S8, "g float[8,1,1]"), LIST("Mul m x g -> i", "Add a i w -> h", Q), "y h", 1),
    CASE("functions", {"x float[11,36]"}, LIST(S8), LIST("Sigmoid m x -> i", "Mul a i x -> h", Q),
         "y", 1),
    CASE("two quantizers of one sum", LIST("x float[6,52]", "w float[6,52]"),
         LIST(S8, "t float[] 0.1", "k uint8[] 128"),
         LIST("Add a x w -> h", Q, "QuantizeLinear r h t k -> o"), "y o", 1),
    CASE("means of images", {"x float[3,10,7,5]"}, LIST(S8), LIST("GlobalAveragePool p x -> h", Q),
         "y", 1),
    CASE("means, floats read too", {"x float[2,5,6,9]"}, LIST(U8),
         LIST("GlobalAveragePool p x -> h", Q), "y h", 1),
    CASE("means of what lies channels last", {"x float[2,8,6,5]"},
         LIST(S8, "xs float[] 0.02", "xz int8[] 0", "w int8[8,1,3,3]", "ws float[] 0.01"),
         LIST("QuantizeLinear i x xs xz -> xq", "DequantizeLinear dx xq xs xz -> xf",
              "DequantizeLinear dw w ws -> wf", "Conv c xf wf -> f | group=8", "Relu r f -> v",
              "GlobalAveragePool p v -> h", Q),
         "y v", 1),
    CASE("means across", {"x float[3,37,26]"}, LIST(S8, "o int64[1] 1"),
         LIST("ReduceMean p x o -> h | keepdims=0", Q), "y", 1),
    CASE("rows of two launches", {"x float[2,40001]"}, LIST(U8, "o int64[1] 1"),
         LIST("ReduceMax p x o -> h", Q), "y", 1),
    CASE("two launches across", {"x float[1300,5]"}, LIST(S8, "o int64[1] 0"),
         LIST("ReduceL2 p x o -> h", Q), "y h", 1),
    CASE("a logarithm of a sum", {"x float[6,33]"}, LIST(S8, "o int64[1] 1"),
         LIST("ReduceLogSumExp p x o -> h", Q), "y", 1),
    CASE("scales by channel", {"x float[3,40]"},
         LIST("s float[40] positive", "z int8[40]", "g float[40]"),
         LIST("LayerNormalization n x g -> h", "QuantizeLinear q h s z -> y | axis=1"), "y", 0),
    CASE("another value is quantized", LIST("x float[3,40]", "w float[3,40]"),
         LIST(S8, "g float[40]"),
         LIST("LayerNormalization n x g -> o", "QuantizeLinear q w s z -> y"), "y o", 0),
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void one_launch_has_the_bits_of_two(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    const quantized_case_t* c = &rows[i];
    pair_case_sample_t s;
    pair_case_run_t want, got;
    pair_case_init(&c->graph, &s);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &any, s.in, &got);
    assert_int_equal(want.pairs, 0);
    if (got.pairs != c->pairs)
      fail_msg("%s: %d pairs of layers, not %d", c->graph.name, got.pairs, c->pairs);
    pair_case_same(c->graph.name, &want, &got);
    pair_case_release(&want);
    pair_case_release(&got);
    pair_case_deinit(&s);
  }
}

// What is not finite, and beyond the type.
static void special_numbers_are_the_same(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    pair_case_sample_t s;
    pair_case_run_t want, got;
    pair_case_init(&rows[i].graph, &s);
    tactic_case_specials(s.in[0]);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &any, s.in, &got);
    for (int64_t k = 0; k < want.out[0]->size; k++)
      if (want.out[0]->store == ASSAY_STORE_I64)
        assert_int_equal(assay_i64(want.out[0])[k], assay_i64(got.out[0])[k]);
    pair_case_release(&want);
    pair_case_release(&got);
    pair_case_deinit(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_two),
                                     cmocka_unit_test(special_numbers_are_the_same)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
