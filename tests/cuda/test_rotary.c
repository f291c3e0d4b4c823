// RotaryEmbedding on the CUDA platform without a GPU: the emulated engine's bits, in every form.
#include "layer_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, inputs, constants, node) \
  { {name, 23, LIST inputs, LIST constants, {node}, "y"}, "rotary", false }
#define MS "com.microsoft.RotaryEmbedding n x i c s -> y"

static const layer_case_t rows[] = {
    ROW("a row of the caches for each token",
        ("x float[2,3,5,8]", "c float[2,5,4]", "s float[2,5,4]"), (0),
        "RotaryEmbedding n x c s -> y"),
    ROW("positions", ("x float[2,3,5,8]", "i int64[2,5] 0 8 3 3 1 7 6 5 4 2"),
        ("c float[9,4]", "s float[9,4]"), "RotaryEmbedding n x c s i -> y"),
    ROW("neighbours", ("x float[2,3,5,8]", "i int64[2,5] 0 8 3 3 1 7 6 5 4 2"),
        ("c float[9,4]", "s float[9,4]"), "RotaryEmbedding n x c s i -> y | interleaved=1"),
    ROW("tokens of three dimensions", ("x float[2,5,24]", "i int64[2,5] 0 8 3 3 1 7 6 5 4 2"),
        ("c float[9,4]", "s float[9,4]"), "RotaryEmbedding n x c s i -> y | num_heads=3"),
    ROW("a part of the channels", ("x float[2,3,5,8]"),
        ("i int64[2,5] 0 8 3 3 1 7 6 5 4 2", "c float[9,2]", "s float[9,2]"),
        "RotaryEmbedding n x c s i -> y | rotary_embedding_dim=4"),
    ROW("a part, of neighbours", ("x float[1,2,3,7]", "c float[1,3,3]", "s float[1,3,3]"), (0),
        "RotaryEmbedding n x c s -> y | rotary_embedding_dim=6 interleaved=1"),
    ROW("Microsoft's, from the first position on", ("x float[2,5,24]", "i int64[1] 3"),
        ("c float[9,4]", "s float[9,4]"), MS " | num_heads=3"),
    ROW("Microsoft's, heads by the caches", ("x float[2,5,24]", "i int64[2,5] 0 8 3 3 1 7 6 5 4 2"),
        ("c float[9,4]", "s float[9,4]"), MS " | interleaved=1"),
    ROW("Microsoft's, four dimensions, a part",
        ("x float[2,3,5,8]", "i int64[2,5] 0 8 3 3 1 7 6 5 4 2"), ("c float[9,2]", "s float[9,2]"),
        MS " | rotary_embedding_dim=4 num_heads=3"),
};

static void bits_are_the_emulated_engines(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) layer_case_check(&rows[i], "emu");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_the_emulated_engines)};
  layer_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
