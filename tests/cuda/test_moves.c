// Layers that move elements, on the CUDA platform without a GPU: the emulated engine's elements.
#include "backends/cuda/data/tiles.h"
#include "layer_case.h"

#define ROW(name, opset, inputs, constants, tactic, ...) \
  { {name, opset, inputs, constants, {__VA_ARGS__}, "y"}, tactic, false }
#define LIST(...) \
  { __VA_ARGS__ }
#define NONE \
  { NULL }

static const layer_case_t boxes[] = {
    {{"a roll along two axes",
      17,
      {"x float[2,7,9,3]"},
      {"a int64[2] 3 4", "b int64[2] 6 3"},
      {"Split s x a -> p q | axis=1", "Concat t q p -> u | axis=1", "Split v u b -> r w | axis=2",
       "Concat o w r -> y | axis=2"},
      "y"},
     "boxes",
     true},
    {{"a shuffle of channels, and a part twice",
      17,
      {"x float[1,8,4,4]"},
      {"a int64[4] 1 2 3 2"},
      {"Split s x a -> p q r t | axis=1", "Concat o t q p r q -> y | axis=1"},
      "y"},
     "boxes",
     true},
    {{"every other row and column (Focus)",
      17,
      {"x float[1,3,8,10]"},
      {"b int64[1] 0", "c int64[1] 1", "e int64[1] 99", "h int64[1] 2", "w int64[1] 3",
       "t int64[1] 2"},
      {"Slice s0 x b e h t -> u", "Slice s1 x c e h t -> v", "Slice s2 u b e w t -> k",
       "Slice s3 v b e w t -> l", "Slice s4 x c e w t -> m", "Slice s5 m c e h t -> n",
       "Slice s6 m b e h t -> q", "Concat o k l q n -> y | axis=1"},
      "y"},
     "boxes",
     true},
    {{"parts of parts over borders",
      17,
      {"x float[11,4]"},
      {"a int64[2] 4 7", "b int64[1] 1", "e int64[1] 10", "d int64[1] 0", "t int64[1] 3"},
      {"Split s x a -> p q | axis=0", "Concat o q p -> z | axis=0", "Slice f z b e d t -> g",
       "Concat c g z -> y | axis=0"},
      "y"},
     "boxes",
     true},
    ROW("Transpose", 17, LIST("x float[3,4,5]"), NONE, "boxes", "Transpose n x -> y | perm=2,0,1"),
    ROW("Transpose of matrices", 17, LIST("x float[2,40,70]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,2,1"),
    ROW("Transpose of more matrices", 17, LIST("x float[2,3,20,34]"), NONE, "boxes",
        "Transpose n x -> y | perm=1,0,3,2"),
    ROW("Transpose of heads", 17, LIST("x float[2,17,4,16]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,2,1,3"),
    ROW("Transpose of six", 17, LIST("x float[2,3,4,2,3,8]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,5,2,1,4,3"),
    // By tiles: what DepthToSpace is, where channels are last, is the first. With three
    // dimensions, their output in another layout would be a view.
    ROW("Transpose of blocks", 17, LIST("x float[8,12,64,2,2]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,3,1,4,2"),
    ROW("Transpose of a shuffle", 17, LIST("x float[160,1,8,16]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,1,3,2"),
    ROW("Transpose of a shuffle by three", 17, LIST("x float[230,1,24,3]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,1,3,2"),
    ROW("Transpose of large matrices", 17, LIST("x float[2,1,128,96]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,1,3,2"),
    ROW("Transpose of odd matrices", 17, LIST("x float[5,1,45,81]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,1,3,2"),
    ROW("Transpose of matrices with prime sides", 17, LIST("x float[3,1,67,97]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,1,3,2"),
    ROW("Transpose of one prime side", 17, LIST("x float[1,521,1,64]"), NONE, "boxes",
        "Transpose n x -> y | perm=3,0,1,2"),
    ROW("Transpose of six large ones", 17, LIST("x float[4,5,6,7,3,8]"), NONE, "boxes",
        "Transpose n x -> y | perm=5,4,3,2,1,0"),
    ROW("Transpose of eight", 17, LIST("x float[2,4,2,4,2,4,6,8]"), NONE, "boxes",
        "Transpose n x -> y | perm=7,5,3,1,6,4,2,0"),
    ROW("DepthToSpace of many, the columns first", 17, LIST("x float[1,32,16,40]"), NONE, "boxes",
        "DepthToSpace n x -> y | blocksize=2 mode=CRD"),
    ROW("DepthToSpace of many", 17, LIST("x float[2,27,16,28]"), NONE, "boxes",
        "DepthToSpace n x -> y | blocksize=3"),
    ROW("SpaceToDepth of many", 17, LIST("x float[1,8,32,72]"), NONE, "boxes",
        "SpaceToDepth n x -> y | blocksize=2"),
    ROW("Concat", 17, LIST("x float[3,7]", "z float[3,5]"), NONE, "boxes",
        "Concat n x z -> y | axis=1"),
    ROW("Concat of words", 17, LIST("x float[3,8]", "z float[3,16]"), NONE, "boxes",
        "Concat n x z -> y | axis=1"),
    ROW("Concat of many", 17, LIST("x float[2,3]", "z float[2,5]"), NONE, "boxes",
        "Concat n x z x z x z x z x z x z x z -> y | axis=1"),
    ROW("Slice", 17, LIST("x float[6,9]"),
        LIST("a int64[2] 1 8", "b int64[2] 5 0", "d int64[2] 0 1", "s int64[2] 2 -3"), "boxes",
        "Slice n x a b d s -> y"),
    ROW("Pad", 17, LIST("x float[3,5]"), LIST("p int64[4] 1 0 0 2", "v float[] 1.5"), "boxes",
        "Pad n x p v -> y"),
    ROW("Pad, reflected", 17, LIST("x float[4,5]"), LIST("p int64[4] 1 2 3 2"), "boxes",
        "Pad n x p -> y | mode=reflect"),
    ROW("Pad, reflected, of three", 17, LIST("x float[4,5,6]"), LIST("p int64[6] 1 2 1 0 1 2"),
        "boxes", "Pad n x p -> y | mode=reflect"),
    ROW("Pad by the edge", 17, LIST("x float[4,5]"), LIST("p int64[4] 1 2 3 2"), "boxes",
        "Pad n x p -> y | mode=edge"),
    ROW("Pad around", 19, LIST("x float[4,5]"), LIST("p int64[4] 1 2 3 2"), "boxes",
        "Pad n x p -> y | mode=wrap"),
    ROW("Pad of int32", 17, LIST("x int32[4,4]"), LIST("p int64[4] 0 4 0 4", "v int32[] -7"),
        "boxes", "Pad n x p v -> y"),
    ROW("Expand", 17, LIST("x float[3,1,5]"), LIST("s int64[4] 2 1 4 1"), "boxes",
        "Expand n x s -> y"),
    ROW("Tile", 17, LIST("x float[3,5]"), LIST("r int64[2] 2 3"), "boxes", "Tile n x r -> y"),
    ROW("DepthToSpace", 17, LIST("x float[2,8,3,5]"), NONE, "boxes",
        "DepthToSpace n x -> y | blocksize=2"),
    ROW("DepthToSpace, the columns first", 17, LIST("x float[2,8,3,5]"), NONE, "boxes",
        "DepthToSpace n x -> y | blocksize=2 mode=CRD"),
    ROW("SpaceToDepth", 17, LIST("x float[2,3,4,6]"), NONE, "boxes",
        "SpaceToDepth n x -> y | blocksize=2"),
    ROW("Gather", 17, LIST("x float[9,7]"), LIST("i int64[3] 0 -1 8"), "gather",
        "Gather n x i -> y"),
    ROW("Gather of the last axis", 17, LIST("x float[2,3,9]"), LIST("i int32[2,2] 0 4 -9 8"),
        "gather", "Gather n x i -> y | axis=2"),
    ROW("Gather by an input", 17, LIST("x float[9,8]", "i int64[2,2] 3 -9 8 0"), NONE, "gather",
        "Gather n x i -> y"),
    ROW("Gather of one", 17, LIST("x int64[3,5]"), LIST("i int64[] 1"), "gather",
        "Gather n x i -> y | axis=1"),
    ROW("a view", 17, LIST("x float[3,4,5]"), LIST("s int64[2] -1 10"), "views", "Relu r x -> h",
        "Reshape n h s -> y"),
    ROW("nothing", 17, LIST("x float[3,0]"), NONE, "boxes", "Transpose n x -> y"),
};

static const layer_case_t integers[] = {
    ROW("Transpose of int8", 17, LIST("x int8[33,18]"), NONE, "boxes", "Transpose n x -> y"),
    ROW("Transpose of int64", 17, LIST("x int64[33,18]"), NONE, "boxes", "Transpose n x -> y"),
    ROW("Transpose of many bytes", 17, LIST("x int8[16,1,24,48]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,1,3,2"),
    ROW("Transpose of odd bytes", 17, LIST("x uint8[9,45,47]"), NONE, "boxes",
        "Transpose n x -> y | perm=2,0,1"),
    ROW("Transpose of many int64", 17, LIST("x int64[16,1,24,48]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,1,3,2"),
};

// Unlike each other as far as the type goes, where integers of a case are zeros else.
static void number_elements(assay_tensor_t* t) {
  for (int64_t i = 0; t->store == ASSAY_STORE_I64 && i < t->size; i++) {
    const uint64_t x = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    const int64_t all = (int64_t)x, byte = (int64_t)(x >> 56);
    assay_i64(t)[i] = t->type == ASSAY_TYPE_INT8    ? byte - 128
                      : t->type == ASSAY_TYPE_UINT8 ? byte
                                                    : all;
  }
}

static void boxes_of_integers_are_the_emulated_engines(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&integers[i].graph, in);
    number_elements(in[0]);
    layer_case_compare(&integers[i], m, 0, in, "emu");
    graph_case_release(in);
    assay_model_release(m);
  }
}

static void boxes_are_the_emulated_engines(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) layer_case_check(&boxes[i], "emu");
}

// As on the CPU: with its words, after a run that was right and before another one.
static void indices_out_of_range_are_errors(void** state) {
  static const struct {
    int64_t index;
    bool wrong;
  } runs[] = {{-9, false}, {9, true}, {8, false}, {-10, true}};
  const graph_case_t c = {
      "Gather", 17, {"x float[9,8]", "i int64[2] 3 4"}, {0}, {"Gather n x i -> y"}, "y"};
  (void)state;
  for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&c, in);
    tactic_run_t run;
    assay_i64(in[1])[1] = runs[k].index;
    assay_status_t st = tactic_case_try(m, "cuda", ASSAY_FORMAT_FP32, in, &run);
    assert_int_equal(st != NULL, runs[k].wrong);
    if (st) assert_non_null(strstr(assay_status_message(st), "expected -9 to 8"));
    assay_status_free(st);
    tactic_case_release(&run);
    graph_case_release(in);
    assay_model_release(m);
  }
}

static void divisions_are_exact(void** state) {
  static const uint32_t borders[] = {
      1,           2,          3,     4,     5,     7,        641,
      32767,       32768,      65535, 65536, 65537, 1u << 30, (1u << 30) + 1,
      0x7ffffffeu, 0x7fffffffu};
  enum { BORDERS = sizeof borders / sizeof *borders };
  (void)state;
  for (size_t i = 0; i < BORDERS; i++)
    for (size_t k = 0; k < BORDERS; k++)
      for (int off = -2; off <= 2; off++) {
        const uint32_t n = borders[i];
        const int64_t x = (int64_t)(borders[k] / n) * n + off;
        if (x < 0 || x > INT32_MAX) continue;
        const divisor_t d = divisor_of(n);
        assert_int_equal(DIVIDED((uint32_t)x, d), x / n);
      }
  for (uint32_t n = 2; n <= 65536; n += n < 300 ? 1 : 61)
    for (uint32_t x = 0; x < 65536; x += x % n == 0 || x % n == n - 1 ? 1 : (n - 1) - x % n)
      if (DIVIDED_SHORT(x, short_factor_of(n)) != x / n) fail_msg("%u / %u", x, n);
}

// Of boxes that begin in the midst of a vector, or go on there.
static void vectors_are_where_all_begins_at_them(void** state) {
  static const struct {
    int64_t from_at, to_at, from_step, length, pitch;
    int from_words, to_words;
  } rows[] = {{0, 0, 64 * 64, 64, 64, 8, 8}, {4, 0, 64 * 64, 64, 64, 4, 8},
              {0, 6, 64 * 64, 64, 64, 8, 2}, {0, 0, 64 * 64 + 2, 64, 64, 2, 8},
              {0, 0, 64 * 68, 64, 68, 4, 8}, {1, 3, 64 * 64, 64, 64, 1, 1},
              {0, 0, 64 * 64, 52, 64, 4, 8}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const cuda_own_t own = {.properties = {.multiprocessors = 4}};
    box_t b = {.rank = 3,
               .dims = {9, rows[i].length, 64},
               .from_strides = {rows[i].from_step, 1, rows[i].pitch},
               .to_strides = {64 * 64, 64, 1},
               .from_at = rows[i].from_at,
               .to_at = rows[i].to_at};
    cuda_tiles_t t;
    assert_true(cuda_tiles_make(&own, &b, 2, &t));
    assert_int_equal(t.from_words, rows[i].from_words);
    assert_int_equal(t.to_words, rows[i].to_words);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(divisions_are_exact),
                                     cmocka_unit_test(vectors_are_where_all_begins_at_them),
                                     cmocka_unit_test(boxes_are_the_emulated_engines),
                                     cmocka_unit_test(boxes_of_integers_are_the_emulated_engines),
                                     cmocka_unit_test(indices_out_of_range_are_errors)};
  layer_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
