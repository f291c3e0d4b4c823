// Attention on a GPU that is not there (fake/): beside the emulated engine and within its bounds;
// the same bits however many warps share keys.
#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
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

static void attentions_agree(void** state) {
  (void)state;
  tactic_case_all(attentions, sizeof attentions / sizeof *attentions);
}

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

// ---- tf32 ---------------------------------------------------------------------------------------

// Heads that are wider than what tensor cores are asked for, other distances than pieces, operands
// that come to the products through nodes of the layer.
static const tactic_case_t more[] = {
    MASKED("wide heads", "1,2,20,128", "1,2,70,128", "1,2,70,128", "float[20,70]", ""),
    MASKED("wide keys, narrow values", "1,2,70,128", "1,2,50,128", "1,2,50,8", "float[70,50]", ""),
    MASKED("narrow keys, wide values", "1,2,70,8", "1,2,50,8", "1,2,50,120", "float[70,50]", ""),
    MASKED("as ViT has it", "1,1,67,64", "1,1,197,64", "1,1,197,64", "float[197]", ""),
};

static const tactic_case_t through_nodes = {
    {"through nodes",
     17,
     {"q float[2,19,3,16]", "k float[2,40,3,16]", "v float[2,40,3,16]", "m float[19,40]"},
     {"f float[] 0.3"},
     {"Transpose a q -> q1 | perm=0,2,1,3", "Mul b q1 f -> q2",
      "Transpose c k -> k1 | perm=0,2,3,1", "Transpose d v -> v1 | perm=0,2,1,3",
      "MatMul p q2 k1 -> s", "Add e s m -> t", "Softmax g t -> w", "MatMul o w v1 -> y"},
     "y"},
    "attention_",
    1e-5,
    false};

static const tactic_case_t of_microsoft = {
    {"of com.microsoft",
     17,
     {"q float[2,20,48]", "k float[2,30,48]", "v float[2,30,72]"},
     {0},
     {"com.microsoft.MultiHeadAttention n q k v -> y | num_heads=3"},
     "y"},
    "attention_",
    1e-5,
    false};

static const tactic_case_t wider = {
    {"wider than warps take",
     23,
     {"q float[1,2,20,160]", "k float[1,2,40,160]", "v float[1,2,40,136]", "m float[20,40]"},
     {0},
     {"Attention a q k v m -> y"},
     "y"},
    "attention_",
    1e-5,
    false};

// No layer is left to the host; every element is within its limits, and near the emulated engine's.
static void check_tf32(const tactic_case_t* c, const char* tactic) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t want, got;
  tactic_case_run(m, "emu", ASSAY_FORMAT_TF32, in, &want);
  tactic_case_run(m, "cuda", ASSAY_FORMAT_TF32, in, &got);
  if (!tactic_case_is_by(got.tactic, tactic))
    fail_msg("%s: by %s, not by %s", c->graph.name, got.tactic, tactic);
  tactic_case_compare(c->graph.name, "tf32", want.out[0], got.out[0], 0x1p-8);
  tactic_case_judge(c, ASSAY_FP32_TIGHT, m, ASSAY_FORMAT_TF32, in);
  tactic_case_release(&want);
  tactic_case_release(&got);
  graph_case_release(in);
  assay_model_release(m);
}

static void layers_of_tf32_are_on_the_device(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++)
    check_tf32(&attentions[i], "attention_tf32");
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) check_tf32(&more[i], "attention_tf32");
  check_tf32(&through_nodes, "attention_tf32");
  check_tf32(&of_microsoft, "attention_tf32");
  check_tf32(&wider, "attention_fma");
}

static void same_bits(assay_model_t* m, const char* name, const tactic_run_t* want,
                      const char* const* kernels, assay_tensor_t* const* in) {
  for (; *kernels; kernels++) {
    tactic_run_t got;
    forced_case_run_in(ASSAY_FORMAT_TF32, m, "cuda", *kernels, in, &got);
    assert_string_equal(got.tactic, *kernels);
    if (!tactic_case_identical(want->out[0], got.out[0]))
      fail_msg("%s by %s has other bits", name, got.tactic);
    tactic_case_release(&got);
  }
}

static void warps_of_tf32_give_the_same_bits(void** state) {
  (void)state;
  static const char* const kernels[] = {"attention_tf32/2", "attention_tf32/1", NULL};
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&attentions[i].graph, in);
    tactic_run_t want;
    forced_case_run_in(ASSAY_FORMAT_TF32, m, "cuda", "attention_tf32/4", in, &want);
    same_bits(m, attentions[i].graph.name, &want, kernels, in);
    tactic_case_release(&want);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(attentions_agree),
                                     cmocka_unit_test(warps_of_attention_give_the_same_bits),
                                     cmocka_unit_test(layers_of_tf32_are_on_the_device),
                                     cmocka_unit_test(warps_of_tf32_give_the_same_bits)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
