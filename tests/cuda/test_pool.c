// Pooling and resizing on a GPU that is not there (fake/): beside the emulated engine and within
// their bounds, in both layouts.
#include <stdlib.h>

#include "backends/tactic_case.h"

#define POOL(x, node) \
  { {x " " node, 17, {x}, {0}, {node}, "y"}, "pool", 2e-6, false }
#define INDICES(x, node) \
  { {x " " node, 17, {x}, {0}, {node}, "y i"}, "pool", 0, false }
#define LAST_OF(w, node)                                                                           \
  {                                                                                                \
    {"channels last, " w " " node, 17, {"x float[2,3,7,9]"}, {w}, {"Conv c x w -> h", node}, "y"}, \
        "pool", 2e-6, false                                                                        \
  }
#define LAST(node) LAST_OF("w float[5,3,1,1]", node)
// Bytes in the layout of the product before them.
#define BYTES(type, channels)                                                              \
  {                                                                                        \
    {type "[" channels "] channels last",                                                  \
     17,                                                                                   \
     {"x uint8[2,16,7,9]"},                                                                \
     {"xs float[] 0.02", "xz uint8[] 3", "w int8[" channels ",16,1,1]", "ws float[] 0.01", \
      "wz int8[] 0", "ys float[] 0.5", "yz " type "[] 10"},                                \
     {"QLinearConv c x xs xz w ws wz ys yz -> h",                                          \
      "MaxPool n h -> y | kernel_shape=3,3 strides=2,2 pads=1,1,1,1"},                     \
     "y"},                                                                                 \
        "pool", 0, false                                                                   \
  }
// Several channels a thread.
#define WIDE(node) LAST_OF("w float[24,3,1,1]", node)
static const tactic_case_t pools[] = {
    POOL("x float[2,3,9]", "AveragePool n x -> y | kernel_shape=3"),
    POOL("x float[2,3,7,9]", "AveragePool n x -> y | kernel_shape=2,3 strides=2,1"),
    POOL("x float[1,2,7,9]", "AveragePool n x -> y | kernel_shape=3,3 pads=1,1,1,1"),
    POOL("x float[1,2,7,9]",
         "AveragePool n x -> y | kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1"),
    POOL("x float[1,2,8,8]",
         "AveragePool n x -> y | kernel_shape=3,3 strides=2,2 ceil_mode=1 pads=1,1,0,0"),
    POOL("x float[1,2,8,8]",
         "AveragePool n x -> y | kernel_shape=3,3 strides=2,2 ceil_mode=1 count_include_pad=1"),
    POOL("x float[1,2,5,6,4]", "AveragePool n x -> y | kernel_shape=2,3,2 strides=1,2,2"),
    POOL("x float[1,2,9,9]", "AveragePool n x -> y | kernel_shape=9,9"),
    POOL("x float[2,3,7,9]", "MaxPool n x -> y | kernel_shape=2,2 strides=2,2"),
    POOL("x float[2,3,7,9]", "MaxPool n x -> y | kernel_shape=3,3 dilations=2,2 pads=2,2,2,2"),
    POOL("x float[2,3,11]", "MaxPool n x -> y | kernel_shape=4 strides=3 ceil_mode=1"),
    POOL("x float[1,2,5,6,4]", "MaxPool n x -> y | kernel_shape=2,2,2"),
    POOL("x float[1,2,7,7]", "MaxPool n x -> y | kernel_shape=3,3 auto_pad=SAME_UPPER"),
    POOL("x float[1,2,7,7]", "LpPool n x -> y | kernel_shape=3,3 strides=2,2"),
    POOL("x float[1,2,7,7]", "LpPool n x -> y | kernel_shape=2,2 p=1"),
    INDICES("x float[2,3,7,9]", "MaxPool n x -> y i | kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
    INDICES("x float[2,3,6,5]", "MaxPool n x -> y i | kernel_shape=2,2 storage_order=1"),
    BYTES("int8", "24"),
    BYTES("uint8", "8"),
    BYTES("int8", "20"),  // one by one
    {{"bytes", 17, {"x uint8[1,2,6,5]"}, {0}, {"MaxPool n x -> y | kernel_shape=2,2"}, "y"},
     "pool",
     0,
     false},
    {{"specials", 17, {"x float[1,2,9,9]"}, {0}, {"MaxPool n x -> y | kernel_shape=2,2"}, "y"},
     "pool",
     0,
     true},
    {{"special sums",
      17,
      {"x float[1,2,9,9]"},
      {0},
      {"AveragePool n x -> y | kernel_shape=2,2"},
      "y"},
     "pool",
     2e-6,
     true},
    LAST("AveragePool n h -> y | kernel_shape=3,3 pads=1,1,1,1"),
    LAST("MaxPool n h -> y | kernel_shape=2,2 strides=2,2"),
    LAST("LpPool n h -> y | kernel_shape=2,2"),
    WIDE("AveragePool n h -> y | kernel_shape=3,3 pads=1,1,1,1"),
    WIDE("MaxPool n h -> y | kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
    WIDE("LpPool n h -> y | kernel_shape=2,2"),
};

#define RESIZE(x, scales, rest)                                                                 \
  {                                                                                             \
    {x " " scales " " rest, 19, {x}, {"s float" scales}, {"Resize n x _ s -> y | " rest}, "y"}, \
        "resize", 2e-6, false                                                                   \
  }
#define HALVED "[4] 1 1 0.5 0.6"
#define DOUBLED "[4] 1 1 2 2.5"
static const tactic_case_t resizes[] = {
    RESIZE("x float[2,3,4,5]", DOUBLED, "mode=nearest"),
    RESIZE("x float[1,2,6,5]", HALVED, "mode=nearest nearest_mode=ceil"),
    RESIZE("x float[1,2,6,5]", DOUBLED,
           "mode=nearest nearest_mode=floor coordinate_transformation_mode=asymmetric"),
    RESIZE("x float[2,3,4,5]", DOUBLED, "mode=linear"),
    RESIZE("x float[1,2,4,5]", DOUBLED, "mode=linear coordinate_transformation_mode=align_corners"),
    RESIZE("x float[1,2,4,5]", DOUBLED,
           "mode=linear coordinate_transformation_mode=pytorch_half_pixel"),
    RESIZE("x float[1,2,4,5]", DOUBLED, "mode=cubic"),
    RESIZE("x float[1,2,7,9]", HALVED, "mode=cubic exclude_outside=1"),
    RESIZE("x float[1,2,7,9]", HALVED, "mode=linear antialias=1"),
    RESIZE("x float[1,2,7,9]", HALVED, "mode=cubic antialias=1"),
    RESIZE("x float[3,4]", "[2] 2 1.5", "mode=linear"),
    RESIZE("x float[1,1,3,4,5]", "[5] 1 1 2 2 0.5", "mode=linear"),
    RESIZE("x float[7]", "[1] 1", "mode=linear"),
    {{"bytes", 19, {"x uint8[1,2,4,5]"}, {"s float" DOUBLED}, {"Resize n x _ s -> y"}, "y"},
     "resize",
     0,
     false},
    {{"specials",
      19,
      {"x float[1,2,4,6]"},
      {"s float" DOUBLED},
      {"Resize n x _ s -> y | mode=linear"},
      "y"},
     "resize",
     2e-6,
     true},
    {{"Upsample",
      9,
      {"x float[1,2,4,6]"},
      {"s float" DOUBLED},
      {"Upsample n x s -> y | mode=linear"},
      "y"},
     "resize",
     2e-6,
     false},
    {{"channels last",
      19,
      {"x float[2,3,5,6]"},
      {"w float[5,3,1,1]", "s float" DOUBLED},
      {"Conv c x w -> h", "Resize n h _ s -> y | mode=linear"},
      "y"},
     "resize",
     2e-6,
     false},
    {{"nearest, channels last",
      19,
      {"x float[2,3,5,6]"},
      {"w float[5,3,1,1]", "s float" DOUBLED},
      {"Conv c x w -> h", "Resize n h _ s -> y | mode=nearest"},
      "y"},
     "resize",
     2e-6,
     false},
};

#define TEST(rows)                                     \
  static void rows##_agree(void** state) {             \
    (void)state;                                       \
    tactic_case_all(rows, sizeof rows / sizeof *rows); \
  }
TEST(pools)
TEST(resizes)

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pools_agree),
                                     cmocka_unit_test(resizes_agree)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
