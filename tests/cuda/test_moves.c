// Layers that move elements, on the CUDA platform without a GPU: the emulated engine's elements.
#include "layer_case.h"

#define ROW(name, opset, inputs, constants, tactic, ...) \
  { {name, opset, inputs, constants, {__VA_ARGS__}, "y"}, tactic, false }
#define LIST(...) \
  { __VA_ARGS__ }
#define NONE \
  { NULL }

static const layer_case_t boxes[] = {
    ROW("Transpose", 17, LIST("x float[3,4,5]"), NONE, "boxes", "Transpose n x -> y | perm=2,0,1"),
    ROW("Transpose of matrices", 17, LIST("x float[2,40,70]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,2,1"),
    ROW("Transpose of heads", 17, LIST("x float[2,17,4,16]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,2,1,3"),
    ROW("Transpose of six", 17, LIST("x float[2,3,4,2,3,8]"), NONE, "boxes",
        "Transpose n x -> y | perm=0,5,2,1,4,3"),
    ROW("Transpose of int8", 17, LIST("x int8[33,18]"), NONE, "boxes", "Transpose n x -> y"),
    ROW("Transpose of int64", 17, LIST("x int64[33,18]"), NONE, "boxes", "Transpose n x -> y"),
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
    ROW("a view", 17, LIST("x float[3,4,5]"), LIST("s int64[2] -1 10"), "views", "Relu r x -> h",
        "Reshape n h s -> y"),
    ROW("nothing", 17, LIST("x float[3,0]"), NONE, "boxes", "Transpose n x -> y"),
};

static void boxes_are_the_emulated_engines(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) layer_case_check(&boxes[i], "emu");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_are_the_emulated_engines)};
  layer_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
