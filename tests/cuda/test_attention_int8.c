// Quantized attention in one launch on a GPU that is not there (fake/): the bits of its layers one
// by one, and the layers that stay alone.
#include <stdlib.h>

#include "cuda/int8_case.h"
#include "cuda/pair_case.h"

typedef struct attention_case {
  graph_case_t graph;
  int joined;  // layers in the launch of another one
} attention_case_t;

static const pair_case_way_t apart = {.sources = "-attention_int8,-rows_quantized"}, any = {0};

// with, without: zero points. Scales at which softmax chooses several keys, and its weights several
// bytes.
#define SCALES(qz, kz, wz, vz, yz)                                                          \
  "qs float[] 0.02", "qz " qz, "ks float[] 0.017", "kz " kz, "ws float[] 0.0039", "wz " wz, \
      "vs float[] 0.03", "vz " vz, "ys float[] 0.005", "yz " yz, "c float[] 0.125"
#define CONSTANTS_without SCALES("int8[] 0", "int8[] 0", "int8[] 0", "int8[] 0", "int8[] 0")
#define CONSTANTS_with SCALES("uint8[] 130", "int8[] -7", "uint8[] 3", "uint8[] 99", "uint8[] 128")
#define CONSTANTS_with_signed SCALES("int8[] 5", "int8[] -7", "uint8[] 3", "int8[] 9", "int8[] 1")
#define SCORES \
  "DequantizeLinear a q qs qz -> qf", "DequantizeLinear b k ks kz -> kf", "MatMul p qf kf -> s"
#define SCALED SCORES, "Mul m s c -> t"
#define WEIGHTS(t) \
  "Softmax n " t " -> w", "QuantizeLinear r w ws wz -> i", "DequantizeLinear u i ws wz -> wf"
#define SUMS(y) \
  "DequantizeLinear o v vs vz -> vf", "MatMul g wf vf -> h", "QuantizeLinear x h ys yz -> " y
#define MASKED "Add e t mask -> t2"
#define CASE(name, inputs, zeros, nodes, output, joined) \
  { {name, 21, inputs, {CONSTANTS_##zeros}, nodes, output}, joined }
#define PLAIN(name, q, k, v, zeros, joined)                                  \
  CASE(name, LIST("q int8[" q "]", "k int8[" k "]", "v int8[" v "]"), zeros, \
       LIST(SCALED, WEIGHTS("t"), SUMS("y")), "y", joined)
// Heads behind positions, as products make them.
#define HEADS(name, q, k, v, kept, zeros, joined)                                         \
  CASE(name, LIST("q0 int8[" q "]", "k0 int8[" k "]", "v0 int8[" v "]"), zeros,           \
       LIST("Transpose tq q0 -> q | perm=0,2,1,3", "Transpose tk k0 -> k | perm=0,2,3,1", \
            "Transpose tv v0 -> v | perm=0,2,1,3", SCALED, WEIGHTS("t"), SUMS("z"),       \
            "Transpose ty z -> y | perm=0,2,1,3"),                                        \
       kept, joined)

static const attention_case_t rows[] = {
    PLAIN("whole tiles", "2,3,32,64", "2,3,64,128", "2,3,128,64", without, 3),
    PLAIN("odd sizes", "1,2,21,9", "1,2,9,37", "1,2,37,11", without, 3),
    PLAIN("keys by two", "3,19,40", "3,40,50", "3,50,24", without, 3),
    PLAIN("one matrix", "17,33", "33,70", "70,18", without, 3),
    PLAIN("one query", "4,1,32", "4,32,12", "4,12,32", without, 3),
    PLAIN("few keys", "2,21,16", "2,16,5", "2,5,16", without, 3),
    PLAIN("a row of several warps", "1,2,18,16", "1,2,16,400", "1,2,400,20", without, 3),
    PLAIN("odd rows of several warps", "2,17,16", "2,16,301", "2,301,8", without, 3),
    HEADS("heads behind positions", "2,33,3,64", "2,40,3,64", "2,40,3,64", "y", without, 7),
    HEADS("heads of 20", "1,7,2,20", "1,36,2,20", "1,36,2,20", "y", without, 7),
    HEADS("odd heads", "1,7,2,5", "1,9,2,5", "1,9,2,3", "y", without, 7),
    HEADS("the result is read before it is turned", "1,7,2,16", "1,9,2,16", "1,9,2,16", "y z",
          without, 6),
    HEADS("turned keys are read, too", "1,7,2,16", "1,9,2,16", "1,9,2,16", "y k", without, 6),
    CASE("zero points", LIST("q uint8[2,2,20,40]", "k int8[2,2,40,45]", "v uint8[2,2,45,24]"), with,
         LIST(SCALED, WEIGHTS("t"), SUMS("y")), "y", 3),
    CASE("without a scale", LIST("q int8[2,20,40]", "k int8[2,40,45]", "v int8[2,45,24]"), without,
         LIST(SCORES, WEIGHTS("s"), SUMS("y")), "y", 3),
    CASE(
        "a mask of keys",
        LIST("q int8[2,3,20,40]", "k int8[2,3,40,45]", "v int8[2,3,45,24]", "mask float[2,1,1,45]"),
        without, LIST(SCALED, MASKED, WEIGHTS("t2"), SUMS("y")), "y", 4),
    CASE("a mask of queries and keys",
         LIST("q int8[2,3,20,40]", "k int8[2,3,40,45]", "v int8[2,3,45,24]", "mask float[20,45]"),
         without, LIST(SCORES, "Add e mask s -> t2", WEIGHTS("t2"), SUMS("y")), "y", 4),
    CASE("a mask of heads and queries",
         LIST("q int8[2,3,20,40]", "k int8[2,3,40,45]", "v int8[2,3,45,24]", "mask float[3,20,1]"),
         with_signed, LIST(SCALED, MASKED, WEIGHTS("t2"), SUMS("y")), "y", 4),
    CASE("scores that a mask makes larger",
         LIST("q int8[1,20,40]", "k int8[1,40,45]", "v int8[2,45,24]", "mask float[2,20,45]"),
         without, LIST(SCALED, MASKED, WEIGHTS("t2"), SUMS("y")), "y", 0),
    CASE("weights are an output", LIST("q int8[2,20,40]", "k int8[2,40,45]", "v int8[2,45,24]"),
         without, LIST(SCALED, WEIGHTS("t"), SUMS("y")), "y w", 0),
    CASE("scores are read elsewhere", LIST("q int8[2,20,40]", "k int8[2,40,45]", "v int8[2,45,24]"),
         without, LIST(SCALED, WEIGHTS("t"), SUMS("y"), "Neg d t -> o"), "y o", 0),
    CASE("softmax over queries", LIST("q int8[2,40,40]", "k int8[2,40,40]", "v int8[2,40,24]"),
         without,
         LIST(SCALED, "Softmax n t -> w | axis=1", "QuantizeLinear r w ws wz -> i",
              "DequantizeLinear u i ws wz -> wf", SUMS("y")),
         "y", 0),
    CASE("heads that share keys",
         LIST("q int8[2,3,20,40]", "k int8[1,1,40,45]", "v int8[2,3,45,24]"), without,
         LIST(SCALED, WEIGHTS("t"), SUMS("y")), "y", 0),
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void fill(pair_case_sample_t* s, uint64_t seed) {
  for (size_t k = 0; s->in[k]; k++) int8_case_fill(s->in[k], &seed);
}

static void one_launch_has_the_bits_of_all(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    const attention_case_t* c = &rows[i];
    pair_case_sample_t s;
    pair_case_run_t want, got;
    pair_case_init(&c->graph, &s);
    fill(&s, i);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &any, s.in, &got);
    assert_int_equal(want.joined, 0);
    if (got.joined != c->joined)
      fail_msg("%s: %d layers joined, not %d", c->graph.name, got.joined, c->joined);
    pair_case_same(c->graph.name, &want, &got);
    pair_case_release(&want);
    pair_case_release(&got);
    pair_case_deinit(&s);
  }
}

// Each layer is seen, and a kernel that is asked for runs its own.
static assay_status_t count(void* user, const assay_layer_t* layer, const assay_node_t* node,
                            uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                            size_t n_out, assay_tensor_t* const* out) {
  (void)layer, (void)node, (void)iteration, (void)n_in, (void)in, (void)out;
  *(int*)user += n_out == 1;
  return NULL;
}

static void layers_that_are_looked_at_stay_alone(void** state) {
  (void)state;
  int layers = 0;
  const assay_tap_t tap = {.layer = count, .user = &layers};
  const pair_case_way_t looked_at = {.tap = &tap}, forced = {.kernel = "int8_mma/16x64"};
  pair_case_sample_t s;
  pair_case_run_t want, tapped, asked;
  pair_case_init(&rows[0].graph, &s);
  fill(&s, 1);
  pair_case_run(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
  pair_case_run(s.m, ASSAY_FORMAT_FP32, &looked_at, s.in, &tapped);
  pair_case_run(s.m, ASSAY_FORMAT_FP32, &forced, s.in, &asked);
  assert_int_equal(tapped.joined, 0);
  assert_int_equal(asked.joined, 0);
  assert_int_equal(layers, PAIR_CASE_RUNS * 4);
  pair_case_same("with a tap", &want, &tapped);
  pair_case_same("with a kernel that is asked for", &want, &asked);
  pair_case_release(&want);
  pair_case_release(&tapped);
  pair_case_release(&asked);
  pair_case_deinit(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_all),
                                     cmocka_unit_test(layers_that_are_looked_at_stay_alone)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
