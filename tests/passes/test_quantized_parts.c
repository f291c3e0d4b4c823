// Columns of products that are quantized apart, and functions that move before what moves elements.
#include "passes/form_case.h"

#define PASS "quantized_parts"
#define CONSTANTS                                                                                  \
  {                                                                                                \
    "sx float[] 0.02", "zx int8[] 3", "w float[5,24]", "sw float[24] positive", "zw int8[24]",     \
        "w8 int8[5,24]", "s float[] 0.01", "bias float[24]", "sq float[] 0.05", "sk float[] 0.07", \
        "sv float[] 0.06", "half float[] 0.5", "heads int64[5] 2 3 3 2 4",                         \
        "inner int64[5] 2 3 2 3 4", "zero int64[] 0", "last int64[] -1", "first int64[1] 0",       \
        "uneven int64[3] 7 1 16", "one1 int64[] 1", "rows float[3,24]", "four float[4] 1 2 3 4",   \
        "thirds int64[5] 0 -1 3 2 4"                                                               \
  }
#define X \
  { "x float[2,3,5]" }
#define QUANTIZED "QuantizeLinear q x sx zx -> xq", "DequantizeLinear d xq sx zx -> xf"
#define WEIGHTS \
  "QuantizeLinear qw w sw zw -> wq | axis=1", "DequantizeLinear dw wq sw zw -> wf | axis=1"
#define ENDS(q, k, v)                                                              \
  "QuantizeLinear eq " q " sq zx -> q8", "DequantizeLinear oq q8 sq zx -> yq",     \
      "QuantizeLinear ek " k " sk zx -> k8", "DequantizeLinear ok k8 sk zx -> yk", \
      "QuantizeLinear ev " v " sv zx -> v8", "DequantizeLinear ov v8 sv zx -> yv"
#define THREE                                                                       \
  "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear QuantizeLinear " \
  "DequantizeLinear"

static const form_case_t cases[] = {
    {PASS,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Add Reshape Transpose "
     "QuantizeLinear DequantizeLinear MatMul Add Reshape Transpose QuantizeLinear DequantizeLinear "
     "MatMul Add Reshape Transpose Mul " THREE,
     {"queries, keys and values of heads, by a Split and Squeezes",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Add a p bias -> b", "Reshape r b heads -> r",
       "Transpose t r -> t | perm=2,0,3,1,4", "Split s t -> a b2 c | axis=0",
       "Squeeze s1 a first -> qa", "Squeeze s2 b2 first -> kb", "Squeeze s3 c first -> v",
       "Transpose kt kb -> k | perm=0,1,3,2", "Mul h qa half -> qh", ENDS("qh", "k", "v")},
      "yq yk yv"}},
    {PASS,
     "QuantizeLinear DequantizeLinear DequantizeLinear MatMul Reshape Transpose DequantizeLinear "
     "MatMul Reshape Transpose DequantizeLinear MatMul Reshape Transpose " THREE,
     {"heads first, by Gathers, one scale, weights of bytes, no bias",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, "DequantizeLinear dw w8 s -> wf", "MatMul m xf wf -> p", "Reshape r p inner -> r",
       "Transpose t r -> t | perm=3,0,2,1,4", "Gather g1 t zero -> qa", "Gather g2 t last -> k",
       "Gather g3 t one1 -> v", ENDS("qa", "k", "v")},
      "yq yk yv"}},
    {PASS,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Add QuantizeLinear "
     "DequantizeLinear MatMul Add QuantizeLinear DequantizeLinear MatMul Add " THREE,
     {"columns as they lie, parts of other sizes, a bias of each row",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Add a rows p -> b",
       "Split s b uneven -> qa k v | axis=-1", ENDS("qa", "k", "v")},
      "yq yk yv"}},
    {PASS,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Reshape Transpose "
     "QuantizeLinear DequantizeLinear MatMul Reshape Transpose QuantizeLinear DequantizeLinear "
     "QuantizeLinear DequantizeLinear",
     {"two parts of three, a Reshape that copies and infers, two Transposes",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Reshape r p thirds -> r",
       "Transpose t r -> t | perm=4,2,3,1,0", "Gather g1 t first -> qa | axis=1",
       "Gather g2 t last -> k | axis=1", "QuantizeLinear eq qa sq zx -> q8",
       "DequantizeLinear oq q8 sq zx -> yq", "QuantizeLinear ek k sk zx -> k8",
       "DequantizeLinear ok k8 sk zx -> yk"},
      "yq yk"}},

    // ---- what stays
    {PASS,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Split QuantizeLinear "
     "DequantizeLinear QuantizeLinear DequantizeLinear",
     {"not: a part that nothing quantizes",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Split s p uneven -> qa k v | axis=2",
       "QuantizeLinear eq qa sq zx -> q8", "DequantizeLinear oq q8 sq zx -> yq",
       "QuantizeLinear ek k sk zx -> k8", "DequantizeLinear ok k8 sk zx -> yk"},
      "yq yk v"}},
    {PASS,
     "MatMul Split " THREE,
     {"not: a product of floats",
      13,
      X,
      CONSTANTS,
      {"MatMul m x w -> p", "Split s p uneven -> qa k v | axis=2", ENDS("qa", "k", "v")},
      "yq yk yv"}},
    {PASS,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Split " THREE,
     {"not: parts of rows",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Split s p -> qa k v | axis=1",
       ENDS("qa", "k", "v")},
      "yq yk yv"}},
    {PASS,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Reshape Gather Gather "
     "Gather Gather Add " THREE " QuantizeLinear",
     {"not: what is taken twice would be computed twice",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Reshape r p heads -> r",
       "Gather g1 r zero -> qa | axis=2", "Gather g2 r zero -> k | axis=2",
       "Gather g3 r last -> v | axis=2", "Gather g4 r last -> u | axis=2", "Add f u half -> fu",
       ENDS("qa", "k", "v"), "QuantizeLinear eu fu sv zx -> u8"},
      "yq yk yv u8"}},
    {PASS,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Split " THREE,
     {"not: an output itself",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Split s p uneven -> qa k v | axis=2",
       ENDS("qa", "k", "v")},
      "yq yk yv p"}},

    // ---- functions before a quantizer
    {"quantizer_moves",
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Mul QuantizeLinear "
     "Reshape Transpose DequantizeLinear",
     {"a scale behind what moves a product of integers",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Reshape r p heads -> r",
       "Transpose t r -> t | perm=2,0,3,1,4", "Mul h half t -> th",
       "QuantizeLinear eq th sq zx -> q8", "DequantizeLinear oq q8 sq zx -> yq"},
      "yq"}},
    {"quantizer_moves",
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul Reshape Mul "
     "QuantizeLinear DequantizeLinear",
     {"not: a factor for each of some",
      13,
      X,
      CONSTANTS,
      {QUANTIZED, WEIGHTS, "MatMul m xf wf -> p", "Reshape r p heads -> r", "Mul h four r -> th",
       "QuantizeLinear eq th sq zx -> q8", "DequantizeLinear oq q8 sq zx -> yq"},
      "yq"}},
    {"quantizer_moves",
     "MatMul Reshape Mul QuantizeLinear DequantizeLinear",
     {"not: behind a product of floats",
      13,
      X,
      CONSTANTS,
      {"MatMul m x w -> p", "Reshape r p heads -> r", "Mul h half r -> th",
       "QuantizeLinear eq th sq zx -> q8", "DequantizeLinear oq q8 sq zx -> yq"},
      "yq"}},
};

FORM_CASE_TESTS(cases)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forms),
      cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests_name("quantized_parts", tests, NULL, NULL);
}
