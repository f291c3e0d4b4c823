// Attention on a GPU that is not there (fake/): beside the emulated engine and within its bounds;
// the same bits however many warps or queries share keys.
#include "cuda/forced_case.h"
#include "cuda/platform_case.h"

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
    ATTENTION("shared keys", "1,4,9,32", "1,2,12,32", ""),
    ATTENTION("a cap", "1,1,20,32", "1,1,20,32", " | softcap=2.0"),
    MASKED("a row of keys", "2,2,9,32", "2,2,33,32", "2,2,33,20", "float[2,1,1,33]", ""),
    MASKED("pairs of keys", "2,3,19,32", "2,3,134,32", "2,3,134,32", "float[2,1,1,134]", ""),
    MASKED("pairs in rows", "2,3,19,32", "2,3,70,32", "2,3,70,32", "float[2,3,19,70]", ""),
    MASKED("a mask of heads", "2,3,19,32", "2,3,70,32", "2,3,70,32", "float[1,3,1,70]", ""),
    MASKED("rows without pairs", "2,2,18,24", "2,2,81,24", "2,2,81,32", "float[18,81]", ""),
    MASKED("a number of a query", "2,2,18,32", "2,2,80,32", "2,2,80,32", "float[2,1,18,1]", ""),
    MASKED("one number", "2,2,18,32", "2,2,34,32", "2,2,34,32", "float[1]", ""),
    MASKED("bytes in pairs", "2,2,18,32", "2,2,72,32", "2,2,72,32", "bool[2,2,18,72]", ""),
    MASKED("bytes", "2,2,18,32", "2,2,71,32", "2,2,71,32", "bool[18,71]", ""),
    MASKED("a byte of a query", "2,2,18,32", "2,2,71,32", "2,2,71,32", "bool[1,2,18,1]", ""),
    MASKED("shared keys and one mask", "2,4,9,32", "2,2,68,32", "2,2,68,32", "float[9,68]", ""),
    MASKED("shared keys and masks", "2,4,9,32", "2,2,67,32", "2,2,67,32", "float[2,4,9,67]", ""),
    MASKED("shared keys and masks of batches", "2,6,9,32", "2,2,67,32", "2,2,67,32",
           "float[2,1,9,67]", ""),
    MASKED("causal, with a mask", "2,4,19,32", "2,2,19,32", "2,2,19,32", "float[2,4,19,19]",
           " | is_causal=1"),
    MASKED("a cap and a mask", "1,2,20,32", "1,2,20,32", "1,2,20,32", "bool[20,20]",
           " | softcap=2.0"),
    WRITTEN("windows", "6,2,9,32", "6,2,32,9", "6,2,9,32", ITEMS("m float[3,1,9,9]"),
            ITEMS("b float[1,2,9,9]", "there int64[5] 2 3 2 9 9", "back int64[4] 6 2 9 9"),
            ITEMS("Add x s b -> t", "Reshape r t there -> u", "Add z u m -> w5",
                  "Reshape i w5 back -> w4", "Softmax f w4 -> w")),
    WRITTEN("other dimensions than heads", "2,3,9,32", "2,3,32,40", "2,3,40,32",
            ITEMS("m float[3,2,9,40]"), ITEMS("there int64[4] 3 2 9 40", "back int64[4] 2 3 9 40"),
            ITEMS("Reshape r s there -> t", "Add a t m -> u", "Reshape i u back -> x",
                  "Softmax f x -> w")),
    WRITTEN("queries in two dimensions", "2,1,12,32", "2,1,32,40", "2,1,40,32",
            ITEMS("m float[3,1,40]"), ITEMS("there int64[4] 2 3 4 40", "back int64[4] 2 1 12 40"),
            ITEMS("Reshape r s there -> t", "Add a t m -> u", "Reshape i u back -> x",
                  "Softmax f x -> w")),
    WRITTEN("three masks", "2,2,19,32", "2,2,32,66", "2,2,66,32",
            ITEMS("m float[2,1,1,66]", "c bool[19,66]", "d bool[2,1,19,1]"),
            ITEMS("low float[] -3", "lower float[] -5"),
            ITEMS("Add a s m -> t", "Where h c t low -> u", "Where g d lower u -> x",
                  "Softmax f x -> w")),
    {{"written out",
      17,
      {"q float[2,2,9,32]", "k float[2,2,32,33]", "v float[2,2,33,16]", "m float[9,33]"},
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

// ---- groups of four warps -----------------------------------------------------------------------

// More queries than a group has, blocks of keys of which some are whole, heads of all widths.
static const tactic_case_t of_groups[] = {
    MASKED("keys that are few more than blocks", "1,2,70,64", "1,2,130,64", "1,2,130,64",
           "float[1,1,1,130]", ""),
    MASKED("a mask of a sample, three blocks", "2,1,66,32", "2,1,190,32", "2,1,190,32",
           "float[2,1,1,190]", ""),
    MASKED("one block of keys", "1,2,70,64", "1,2,50,64", "1,2,50,64", "float[50]", ""),
    ATTENTION("as ViT has it, by groups", "1,1,67,64", "1,1,197,64", ""),
    ATTENTION("a whole tile", "1,1,128,32", "1,1,64,32", ""),
    ATTENTION("causal, by groups", "1,2,150,64", "1,2,150,64", " | is_causal=1"),
    ATTENTION("shared keys, by groups", "1,4,65,32", "1,2,77,32", ""),
    ATTENTION("heads of odd pieces", "1,1,69,40", "1,1,77,40", ""),
};
// What takes more registers than five groups of a multiprocessor have.
static const tactic_case_t of_wide_groups[] = {
    MASKED("wide heads, by groups", "1,1,70,128", "1,1,130,128", "1,1,130,128", "float[130]", ""),
    MASKED("heads of 80", "1,2,66,80", "1,2,77,80", "1,2,77,80", "float[66,77]", ""),
    MASKED("wide keys, narrow values, by groups", "1,1,70,128", "1,1,70,128", "1,1,70,16",
           "float[70,70]", ""),
    MASKED("a mask without pairs", "1,2,70,32", "1,2,77,32", "1,2,77,96", "float[1,1,1,77]", ""),
    MASKED("bytes, by groups", "1,2,68,32", "1,2,72,32", "1,2,72,32", "bool[1,2,68,72]", ""),
    MASKED("causal, with a mask, by groups", "1,4,70,32", "1,2,70,32", "1,2,70,32",
           "float[1,4,70,70]", " | is_causal=1"),
    MASKED("a cap, by groups", "1,2,70,32", "1,2,70,32", "1,2,70,32", "bool[70,70]",
           " | softcap=2.0"),
    MASKED("a number of a query, by groups", "1,2,68,32", "1,2,80,32", "1,2,80,32",
           "float[1,1,68,1]", ""),
};

static void run_by_groups(const tactic_case_t* cases, size_t n, assay_format_t format,
                          const char* const* kernels, size_t n_kernels) {
  for (size_t i = 0; i < n; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cases[i].graph, in);
    tactic_run_t want, got;
    forced_case_run_in(format, m, "emu:sm_90", NULL, in, &want);
    assert_string_equal(want.tactic, "emu_attention");
    for (size_t k = 0; k < n_kernels; k++) {
      forced_case_run_in(format, m, "cuda", kernels[k], in, &got);
      if (strcmp(got.tactic, kernels[k]) != 0)
        fail_msg("%s: by %s, not by %s", cases[i].graph.name, got.tactic, kernels[k]);
      if (!tactic_case_identical(want.out[0], got.out[0]))
        fail_msg("%s by %s has other bits", cases[i].graph.name, got.tactic);
      tactic_case_release(&got);
    }
    tactic_case_release(&want);
    graph_case_release(in);
    assay_model_release(m);
  }
}

static void groups_give_the_same_bits(void** state) {
  (void)state;
  static const char* const fp16[] = {"attention_wgmma_f16/64", "attention_wgmma_f16/128",
                                     "attention_wgmma_f16/64x5"};
  static const char* const bf16[] = {"attention_wgmma_bf16/64x5", "attention_wgmma_bf16/128"};
  const size_t n = sizeof of_groups / sizeof *of_groups;
  run_by_groups(of_groups, n, ASSAY_FORMAT_FP16, fp16, 3);
  run_by_groups(of_groups, 4, ASSAY_FORMAT_BF16, bf16, 2);
  run_by_groups(of_wide_groups, sizeof of_wide_groups / sizeof *of_wide_groups, ASSAY_FORMAT_FP16,
                fp16, 2);
}

// ---- float32 on tensor cores --------------------------------------------------------------------

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
     {"q float[2,19,3,32]", "k float[2,40,3,32]", "v float[2,40,3,32]", "m float[19,40]"},
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

// Sums and values that are not finite, or far from 1: as the emulated engine has them.
static const tactic_case_t specials[] = {
    {{"with infinities and NaN",
      17,
      {"q float[2,3,20,32]", "k float[2,3,32,70]", "v float[2,3,70,24]"},
      {0},
      {"MatMul m q k -> s", "Softmax p s -> p", "MatMul o p v -> y"},
      "y"},
     "attention_",
     1e-5,
     true},
};

static const tactic_case_t very_wide = {
    {"wider than registers take",
     23,
     {"q float[1,2,20,20]", "k float[1,2,40,20]", "v float[1,2,40,516]", "m float[20,40]"},
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

static void check_fp32(const tactic_case_t* c, assay_fp32_t setting, const char* tactic) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t want, got;
  tactic_case_run(m, "emu", ASSAY_FORMAT_FP32, in, &want);
  op_case_ok(tactic_case_try_in(setting, m, "cuda", ASSAY_FORMAT_FP32, in, &got));
  if (!tactic_case_is_by(got.tactic, tactic))
    fail_msg("%s: by %s, not by %s", c->graph.name, got.tactic, tactic);
  tactic_case_compare(c->graph.name, "fp32", want.out[0], got.out[0], 1e-5);
  tactic_case_judge(c, setting, m, ASSAY_FORMAT_FP32, in);
  tactic_case_release(&want);
  tactic_case_release(&got);
  graph_case_release(in);
  assay_model_release(m);
}

// In the default setting by parts of tf32, where heads are wide enough for its gate.
static void layers_of_fp32_are_by_parts(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    const bool narrow = strstr(more[i].graph.name, "narrow keys");
    check_fp32(&more[i], ASSAY_FP32_TIGHT, narrow ? "attention_fma" : "attention_3xtf32");
    check_fp32(&more[i], ASSAY_FP32_PLAIN, "attention_fma");
  }
  check_fp32(&through_nodes, ASSAY_FP32_TIGHT, "attention_3xtf32");
  check_fp32(&wider, ASSAY_FP32_TIGHT, "attention_fma");
  tactic_case_all(specials, sizeof specials / sizeof *specials);
}

static void same_bits(assay_format_t format, assay_model_t* m, const char* name,
                      const tactic_run_t* want, const char* const* kernels,
                      assay_tensor_t* const* in) {
  for (; *kernels; kernels++) {
    tactic_run_t got;
    forced_case_run_in(format, m, "cuda", *kernels, in, &got);
    assert_string_equal(got.tactic, *kernels);
    if (!tactic_case_identical(want->out[0], got.out[0]))
      fail_msg("%s by %s has other bits", name, got.tactic);
    tactic_case_release(&got);
  }
}

static void warps_of_float32_give_the_same_bits(void** state) {
  (void)state;
  static const char* const tf32[] = {"attention_tf32/2", "attention_tf32/1", NULL};
  static const char* const parts[] = {"attention_3xtf32/2", "attention_3xtf32/1", NULL};
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    const char* name = attentions[i].graph.name;
    assay_model_t* m = graph_case_model(&attentions[i].graph, in);
    tactic_run_t want;
    forced_case_run_in(ASSAY_FORMAT_TF32, m, "cuda", "attention_tf32/4", in, &want);
    same_bits(ASSAY_FORMAT_TF32, m, name, &want, tf32, in);
    tactic_case_release(&want);
    forced_case_run_in(ASSAY_FORMAT_FP32, m, "cuda", "attention_3xtf32/4", in, &want);
    // Narrow heads are none for it.
    if (tactic_case_is_by(want.tactic, "attention_3xtf32"))
      same_bits(ASSAY_FORMAT_FP32, m, name, &want, parts, in);
    tactic_case_release(&want);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// ---- weights by powers of 2 ---------------------------------------------------------------------

// Scores of 150 keys whose largest ones lie where a mask or larger queries put them.
static double nothing(int query, int key) { return (void)query, (void)key, 0; }
static double growing(int query, int key) { return 0.11 * key - 0.3 * query; }
static double falling(int query, int key) { return (void)query, -0.12 * key; }
static double one_far_ahead(int query, int key) { return key == 90 + query ? 300 : 0; }
static double just_ahead(int query, int key) { return key / 64 * 5.3 + 0.01 * query; }
static double hidden(int query, int key) { return key < 64 + query ? -INFINITY : 0; }
static double all_hidden(int query, int key) { return query % 3 && key % 7 ? 0 : -INFINITY; }
static double least(int query, int key) { return key < 64 + query ? -65504 : 0; }
static double all_least(int query, int key) { return query % 3 && key % 7 ? 0 : -65504; }
static double far_below(int query, int key) { return -615.0 - query - key / 64; }
static double far_above(int query, int key) { return 615.0 + query + key / 64; }
static double below_1024(int query, int key) { return -703.0 - query + key / 64; }
static double above_1024(int query, int key) { return 703.0 + query - key / 64; }
static double steps(int query, int key) { return key / 64 * 700.0 - 1000 + query; }
static double huge(int query, int key) { return 40000.0 + 32 * query + (key == 100 ? 64 : 0); }

static const struct {
  const char* name;
  double (*mask)(int query, int key);
  double times;  // of queries
} scores[] = {{"equal", nothing, 0},
              {"usual", nothing, 1},
              {"large", nothing, 60},
              {"larger", nothing, 2000},
              {"growing", growing, 1},
              {"falling", falling, 1},
              {"one far ahead", one_far_ahead, 1},
              {"just ahead", just_ahead, 0.2},
              {"hidden at first", hidden, 1},
              {"hidden rows", all_hidden, 1},
              {"least at first", least, 1},
              {"least in rows", all_least, 1},
              {"far below 0", far_below, 1},
              {"far above 0", far_above, 1},
              {"-1024 about", below_1024, 1},
              {"1024 about", above_1024, 1},
              {"steps from far to far", steps, 1},
              {"huge", huge, 30}};

static const tactic_case_t of_scores[2] = {
    MASKED("", "1,2,20,64", "1,2,150,64", "1,2,150,24", "float[20,150]", ""),
    {{"",
      23,
      {"q float[1,2,20,64]", "k float[1,2,150,64]", "v float[1,2,150,24]"},
      {0},
      {"Attention a q k v -> y"},
      "y"},
     "attention_",
     1e-5,
     false}};

// With and without a mask, by any number of warps: the emulated GPU's bits, within bounds.
static void check_scores(size_t i, bool masked, assay_format_t format) {
  static const char* const of_f16[] = {"attention_f16/4", "attention_f16/1", NULL};
  static const char* const of_bf16[] = {"attention_bf16/4", "attention_bf16/1", NULL};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  const tactic_case_t* c = &of_scores[!masked];
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t want;
  for (int64_t k = 0; k < in[0]->size; k++) assay_f64(in[0])[k] *= scores[i].times;
  for (int k = 0; masked && k < 20 * 150; k++)
    assay_f64(in[3])[k] = scores[i].mask(k / 150, k % 150);
  print_message("%s%s\n", scores[i].name, masked ? ", masked" : "");
  forced_case_run_in(format, m, "emu:sm_90", NULL, in, &want);
  assert_string_equal(want.tactic, "emu_attention");
  same_bits(format, m, scores[i].name, &want, format == ASSAY_FORMAT_FP16 ? of_f16 : of_bf16, in);
  tactic_case_judge(c, ASSAY_FP32_TIGHT, m, format, in);
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

static void scores_anywhere_are_weighed(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
    for (int masked = scores[i].mask == nothing ? 0 : 1; masked < 2; masked++) {
      // On the host, where compiling takes long, each row in one of the formats.
      const bool both = getenv("ASSAY_TEST_GPU"), first = (i + (size_t)masked) % 2 == 0;
      if (both || first) check_scores(i, masked, ASSAY_FORMAT_FP16);
      if (both || !first) check_scores(i, masked, ASSAY_FORMAT_BF16);
    }
}

// Others have no powers of 2 whose bits are known: their weights are exp_of_negative's.
static void older_gpus_weigh_otherwise(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  const tactic_case_t* c = &of_scores[1];
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t of_90, of_80, again;
  forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", "attention_f16/4", in, &of_90);
  fake->capability = 80;
  forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", "attention_f16/4", in, &of_80);
  forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", "attention_f16/1", in, &again);
  assert_string_equal(of_80.tactic, "attention_f16/4");
  assert_false(tactic_case_identical(of_90.out[0], of_80.out[0]));
  assert_true(tactic_case_identical(again.out[0], of_80.out[0]));
  tactic_case_judge(c, ASSAY_FP32_TIGHT, m, ASSAY_FORMAT_FP16, in);
  fake->capability = 90;
  tactic_case_release(&of_90);
  tactic_case_release(&of_80);
  tactic_case_release(&again);
  graph_case_release(in);
  assay_model_release(m);
}

// ---- by multiply-adds ---------------------------------------------------------------------------

// However many queries share a block: near the emulated engine's, and the same bits.
static void check_queries(const tactic_case_t* c, assay_format_t format, double tolerance,
                          const char* const* kernels) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t want, first = {0}, got;
  tactic_case_run(m, "emu", format, in, &want);
  for (int i = 0; kernels[i]; i++) {
    forced_case_run_in(format, m, "cuda", kernels[i], in, &got);
    assert_string_equal(got.tactic, kernels[i]);
    tactic_case_compare(c->graph.name, got.tactic, want.out[0], got.out[0], tolerance);
    if (i && !tactic_case_identical(first.out[0], got.out[0]))
      fail_msg("%s by %s has other bits", c->graph.name, got.tactic);
    if (i) tactic_case_release(&first);
    first = got;
  }
  tactic_case_release(&first);
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

static void blocks_of_queries_give_the_same_bits(void** state) {
  (void)state;
  static const char* const all[] = {"attention_fma/64", "attention_fma/32", "attention_fma/16",
                                    NULL};
  static const char* const wide[] = {"attention_fma/wide", NULL};
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; i++)
    check_queries(&attentions[i], ASSAY_FORMAT_FP32, 1e-5, all);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    check_queries(&more[i], ASSAY_FORMAT_FP32, 1e-5, all);
  check_queries(&through_nodes, ASSAY_FORMAT_FP32, 1e-5, all);
  check_queries(&of_microsoft, ASSAY_FORMAT_FP32, 1e-5, all);
  check_queries(&wider, ASSAY_FORMAT_FP32, 1e-5, all + 1);
  check_queries(&very_wide, ASSAY_FORMAT_FP32, 1e-5, wide);
  // Operands that are converted.
  check_queries(&of_microsoft, ASSAY_FORMAT_FP16, 0x1p-8, all);
  check_queries(&wider, ASSAY_FORMAT_BF16, 0x1p-5, all + 1);
  check_queries(&very_wide, ASSAY_FORMAT_FP16, 0x1p-8, wide);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(attentions_agree),
                                     cmocka_unit_test(warps_of_attention_give_the_same_bits),
                                     cmocka_unit_test(groups_give_the_same_bits),
                                     cmocka_unit_test(layers_of_tf32_are_on_the_device),
                                     cmocka_unit_test(layers_of_fp32_are_by_parts),
                                     cmocka_unit_test(warps_of_float32_give_the_same_bits),
                                     cmocka_unit_test(scores_anywhere_are_weighed),
                                     cmocka_unit_test(older_gpus_weigh_otherwise),
                                     cmocka_unit_test(blocks_of_queries_give_the_same_bits)};
  find_platform();
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
