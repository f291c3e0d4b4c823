// Products, convolutions and attention on a GPU that is not there (fake/): beside the emulated
// engine and within their bounds; the same bits alone and in a batch.
#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, inputs, constants, node, tolerance) \
  { {name, 17, inputs, constants, {node}, "y"}, NULL, tolerance, false }

// Sizes at which tiles and steps of the sums have something left over.
#define MATMUL(m, k, n)                                                              \
  ROW(m " x " k " x " n, LIST("x float[" m "," k "]"), LIST("w float[" k "," n "]"), \
      "MatMul p x w -> y", 1e-5)
static const tactic_case_t products[] = {
    MATMUL("1", "1", "1"),
    MATMUL("1", "7", "5"),
    MATMUL("17", "65", "129"),
    MATMUL("64", "64", "64"),
    MATMUL("65", "16", "8"),
    MATMUL("3", "130", "72"),
    ROW("of activations", LIST("x float[2,3,20,16]", "z float[3,16,40]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("one side for all", LIST("x float[3,5,24]", "z float[24,9]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("another batch", LIST("x float[1,4,8]", "z float[5,8,16]"), {0}, "MatMul p x z -> y", 1e-5),
    ROW("Gemm", {"x float[20,24]"}, LIST("w float[24,16]", "b float[16]"), "Gemm p x w b -> y",
        1e-5),
    ROW("Gemm, turned right side", {"x float[20,24]"}, LIST("w float[40,24]", "b float[1]"),
        "Gemm p x w b -> y | transB=1", 1e-5),
    ROW("Gemm, turned left side", {"x float[24,20]"}, {"w float[24,16]"},
        "Gemm p x w -> y | transA=1", 1e-5),
    ROW("Gemm, factors", {"x float[20,24]"}, LIST("w float[24,16]", "b float[16]"),
        "Gemm p x w b -> y | alpha=0.5 beta=-2.0", 1e-5),
    ROW("Gemm, a matrix is added", LIST("x float[20,24]", "z float[20,16]"), {"w float[24,16]"},
        "Gemm p x w z -> y | beta=0.25", 1e-5),
    ROW("Gemm, a column is added", LIST("x float[20,24]", "z float[20,1]"), {"w float[24,16]"},
        "Gemm p x w z -> y", 1e-5),
    ROW("Gemm, a factor alone", {"x float[20,24]"}, {"w float[24,16]"},
        "Gemm p x w -> y | alpha=3.0", 1e-5),
    ROW("a vector on the left", LIST("x float[24]", "z float[3,24,9]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("a vector on the right", LIST("x float[3,5,24]", "z float[24]"), {0}, "MatMul p x z -> y",
        1e-5),
    ROW("two vectors", LIST("x float[24]", "z float[24]"), {0}, "MatMul p x z -> y", 1e-5),
    ROW("Gemm, both turned", {"x float[9,20]"}, {"w float[7,9]"},
        "Gemm p x w -> y | transA=1 transB=1", 1e-5),
    {{"a program behind it",
      20,
      {"x float[2,9,24]"},
      {"w float[24,40]", "b float[40]", "c float[9,40]"},
      {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k c -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"its own input behind it",
      17,
      {"x float[9,24]"},
      {"w float[24,24]"},
      {"MatMul p x w -> h", "Add a h x -> g", "Relu r g -> y"},
      "y"},
     NULL,
     1e-5,
     false},
};

#define CONV(name, x, w, attributes) \
  ROW(name, {x}, LIST(w, "b float[8]"), "Conv c x w b -> y" attributes, 1e-5)
static const tactic_case_t convs[] = {
    CONV("1x1", "x float[2,16,5,6]", "w float[8,16,1,1]", ""),
    CONV("3x3", "x float[1,8,7,9]", "w float[8,8,3,3]", " | pads=1,0,1,2"),
    CONV("strides", "x float[1,3,11,13]", "w float[8,3,5,5]", " | pads=2,2,2,2 strides=2,3"),
    CONV("dilations", "x float[1,5,9,11]", "w float[8,5,3,3]", " | dilations=2,1"),
    CONV("groups", "x float[1,32,6,5]", "w float[8,16,3,3]", " | group=2"),
    CONV("small groups", "x float[2,8,6,5]", "w float[8,2,3,3]", " | group=4 pads=1,1,1,1"),
    CONV("depthwise", "x float[2,8,6,5]", "w float[8,1,3,3]", " | group=8 pads=1,1,1,1"),
    CONV("depthwise, two a channel", "x float[1,4,6,5]", "w float[8,1,3,3]", " | group=4"),
    CONV("one axis", "x float[2,16,20]", "w float[8,16,5]", " | strides=3 pads=2,1"),
    CONV("three axes", "x float[1,4,3,4,5]", "w float[8,4,2,3,3]", " | pads=0,1,1,1,1,0"),
    CONV("SAME", "x float[1,8,7,7]", "w float[8,8,4,4]", " | auto_pad=SAME_LOWER strides=2,2"),
    ROW("no bias", {"x float[1,8,5,6]"}, {"w float[12,8,3,3]"}, "Conv c x w -> y", 1e-5),
    {{"a residual behind it",
      17,
      {"x float[2,8,6,5]"},
      {"w float[8,8,3,3]", "b float[8]"},
      {"Conv c x w b -> h | pads=1,1,1,1", "Add a h x -> g", "Relu r g -> y"},
      "y"},
     NULL,
     1e-5,
     false},
    {{"a depthwise one with a program",
      17,
      {"x float[1,8,6,5]"},
      {"w float[8,1,3,3]", "b float[8]"},
      {"Conv c x w b -> h | group=8", "HardSwish s h -> y"},
      "y"},
     NULL,
     1e-5,
     false},
};

#define TRANSPOSED(name, x, w, attributes) \
  ROW(name, {x}, {w}, "ConvTranspose c x w -> y" attributes, 1e-5)
static const tactic_case_t transposed[] = {
    TRANSPOSED("4x4", "x float[2,8,5,4]", "w float[8,6,4,4]", " | strides=2,2 pads=1,1,1,1"),
    TRANSPOSED("gaps", "x float[1,3,4,5]", "w float[3,2,2,2]", " | strides=3,4"),
    TRANSPOSED("groups", "x float[1,6,4,5]", "w float[6,4,3,3]",
               " | group=3 strides=3,2 output_padding=1,1"),
    TRANSPOSED("dilations", "x float[1,8,6,5]", "w float[8,16,3,2]", " | dilations=2,3"),
    TRANSPOSED("one axis", "x float[2,4,9]", "w float[4,8,3]", " | strides=2"),
    TRANSPOSED("depthwise", "x float[1,8,5,4]", "w float[8,1,4,4]",
               " | group=8 strides=2,2 pads=1,1,1,1"),
};

#define ATTENTION(name, q, kv, attributes)                         \
  {                                                                \
    {name,                                                         \
     23,                                                           \
     LIST("q float[" q "]", "k float[" kv "]", "v float[" kv "]"), \
     {0},                                                          \
     {"Attention a q k v -> y" attributes},                        \
     "y"},                                                         \
        NULL, 1e-5, false                                          \
  }
// With a mask, by a kernel of attention.
#define MASKED(name, q, kv, v, mask, attributes)                             \
  {                                                                          \
    {name,                                                                   \
     23,                                                                     \
     LIST("q float[" q "]", "k float[" kv "]", "v float[" v "]", "m " mask), \
     {0},                                                                    \
     {"Attention a q k v m -> y" attributes},                                \
     "y"},                                                                   \
        "attention_", 1e-5, false                                            \
  }
#define ITEMS(...) __VA_ARGS__
// Written out; inputs: what comes behind q, k and v.
#define WRITTEN(name, q, k, v, inputs, constants, nodes)                 \
  {                                                                      \
    {name,                                                               \
     17,                                                                 \
     LIST("q float[" q "]", "k float[" k "]", "v float[" v "]", inputs), \
     LIST(constants),                                                    \
     LIST("MatMul p q k -> s", nodes, "MatMul o w v -> y"),              \
     "y"},                                                               \
        "attention_", 1e-5, false                                        \
  }
static const tactic_case_t attentions[] = {
    ATTENTION("one tile", "1,2,16,16", "1,2,16,16", ""),
    ATTENTION("odd sizes", "2,3,21,9", "2,3,70,9", ""),
    ATTENTION("one query", "1,4,1,32", "1,4,65,32", ""),
    ATTENTION("causal", "1,2,70,24", "1,2,70,24", " | is_causal=1"),
    ATTENTION("shared keys", "1,4,9,16", "1,2,12,16", ""),
    ATTENTION("a cap", "1,1,20,16", "1,1,20,16", " | softcap=2.0"),
    MASKED("a row of keys", "2,2,9,16", "2,2,33,16", "2,2,33,20", "float[2,1,1,33]", ""),
    MASKED("pairs of keys", "2,3,19,16", "2,3,134,16", "2,3,134,16", "float[2,1,1,134]", ""),
    MASKED("pairs in rows", "2,3,19,16", "2,3,70,16", "2,3,70,16", "float[2,3,19,70]", ""),
    MASKED("a mask of heads", "2,3,19,16", "2,3,70,16", "2,3,70,16", "float[1,3,1,70]", ""),
    MASKED("rows without pairs", "2,2,18,24", "2,2,81,24", "2,2,81,16", "float[18,81]", ""),
    MASKED("a number of a query", "2,2,18,16", "2,2,80,16", "2,2,80,32", "float[2,1,18,1]", ""),
    MASKED("one number", "2,2,18,16", "2,2,34,16", "2,2,34,16", "float[1]", ""),
    MASKED("bytes in pairs", "2,2,18,16", "2,2,72,16", "2,2,72,16", "bool[2,2,18,72]", ""),
    MASKED("bytes", "2,2,18,16", "2,2,71,16", "2,2,71,16", "bool[18,71]", ""),
    MASKED("a byte of a query", "2,2,18,16", "2,2,71,16", "2,2,71,16", "bool[1,2,18,1]", ""),
    MASKED("shared keys and one mask", "2,4,9,16", "2,2,68,16", "2,2,68,16", "float[9,68]", ""),
    MASKED("shared keys and masks", "2,4,9,16", "2,2,67,16", "2,2,67,16", "float[2,4,9,67]", ""),
    MASKED("shared keys and masks of batches", "2,6,9,16", "2,2,67,16", "2,2,67,16",
           "float[2,1,9,67]", ""),
    MASKED("causal, with a mask", "2,4,19,16", "2,2,19,16", "2,2,19,16", "float[2,4,19,19]",
           " | is_causal=1"),
    MASKED("a cap and a mask", "1,2,20,16", "1,2,20,16", "1,2,20,16", "bool[20,20]",
           " | softcap=2.0"),
    WRITTEN("windows", "6,2,9,16", "6,2,16,9", "6,2,9,16", ITEMS("m float[3,1,9,9]"),
            ITEMS("b float[1,2,9,9]", "there int64[5] 2 3 2 9 9", "back int64[4] 6 2 9 9"),
            ITEMS("Add x s b -> t", "Reshape r t there -> u", "Add z u m -> w5",
                  "Reshape i w5 back -> w4", "Softmax f w4 -> w")),
    WRITTEN("other dimensions than heads", "2,3,9,16", "2,3,16,40", "2,3,40,16",
            ITEMS("m float[3,2,9,40]"), ITEMS("there int64[4] 3 2 9 40", "back int64[4] 2 3 9 40"),
            ITEMS("Reshape r s there -> t", "Add a t m -> u", "Reshape i u back -> x",
                  "Softmax f x -> w")),
    WRITTEN("queries in two dimensions", "2,1,12,16", "2,1,16,40", "2,1,40,16",
            ITEMS("m float[3,1,40]"), ITEMS("there int64[4] 2 3 4 40", "back int64[4] 2 1 12 40"),
            ITEMS("Reshape r s there -> t", "Add a t m -> u", "Reshape i u back -> x",
                  "Softmax f x -> w")),
    WRITTEN("three masks", "2,2,19,16", "2,2,16,66", "2,2,66,16",
            ITEMS("m float[2,1,1,66]", "c bool[19,66]", "d bool[2,1,19,1]"),
            ITEMS("low float[] -3", "lower float[] -5"),
            ITEMS("Add a s m -> t", "Where h c t low -> u", "Where g d lower u -> x",
                  "Softmax f x -> w")),
    {{"written out",
      17,
      {"q float[2,2,9,16]", "k float[2,2,16,33]", "v float[2,2,33,16]", "m float[9,33]"},
      {"f float[] 0.25"},
      {"MatMul p q k -> s", "Mul n s f -> t", "Add b t m -> u", "Softmax x u -> w",
       "MatMul o w v -> y"},
      "y"},
     NULL,
     1e-5,
     false},
};

#define TEST(rows)                                     \
  static void rows##_agree(void** state) {             \
    (void)state;                                       \
    tactic_case_all(rows, sizeof rows / sizeof *rows); \
  }
TEST(products)
TEST(convs)
TEST(transposed)
TEST(attentions)

// However many warps share keys; and as the emulated GPU says.
static void warps_of_attention_give_the_same_bits(void** state) {
  (void)state;
  static const char* const kernels[] = {"attention_f16/4", "attention_f16/2", "attention_f16/1"};
  enum { N_KERNELS = sizeof kernels / sizeof *kernels };
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&attentions[i].graph, in);
    tactic_run_t want, got;
    forced_case_run_in(ASSAY_FORMAT_FP16, m, "emu:sm_90", NULL, in, &want);
    assert_string_equal(want.tactic, "emu_attention");
    for (int k = 0; k < N_KERNELS; k++) {
      forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", kernels[k], in, &got);
      assert_string_equal(got.tactic, kernels[k]);
      if (!tactic_case_identical(want.out[0], got.out[0]))
        fail_msg("%s by %s has other bits", attentions[i].graph.name, got.tactic);
      tactic_case_release(&got);
    }
    tactic_case_release(&want);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_agree), cmocka_unit_test(convs_agree),
      cmocka_unit_test(transposed_agree), cmocka_unit_test(attentions_agree),
      cmocka_unit_test(warps_of_attention_give_the_same_bits)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
