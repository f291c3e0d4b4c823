// Products whose rows are normalized in the same launch on a GPU that is not there (fake/): the
// bits of two launches, and the layers that stay alone.
#include "cuda/pair_case.h"

static const char norm[] = "product_norm";

#define LAYERS(name, inputs, constants, outputs, ...) \
  { name, 20, inputs, constants, {__VA_ARGS__}, outputs }
#define NORM "LayerNormalization n h g b -> y"

// Rows that a part of a warp has, a warp, and several warps' threads; that are no whole number of
// vectors, of tiles, and of blocks; one tile, and clusters whose number of blocks divides the rows
// of a tile, and does not; rows cut off; what is normalized read again, as an output or a residual.
static const graph_case_t rows[] = {
    LAYERS("five vectors", {"x float[70,24]"}, LIST("w float[24,40]", "g float[40]", "b float[40]"),
           "y", "MatMul p x w -> h", NORM),
    LAYERS("a bias and a residual", LIST("x float[2,35,72]", "r float[2,35,72]"),
           LIST("w float[72,72]", "v float[72]", "g float[72]", "b float[72]"), "y",
           "MatMul p x w -> l", "Add q l v -> m", "Add a m r -> h", NORM),
    LAYERS("read again", {"x float[70,40]"},
           LIST("w float[40,96]", "v float[96]", "g float[96]", "b float[96]"), "y z",
           "Gemm p x w v -> h", NORM, "Neg o h -> z"),
    LAYERS("a residual behind it", LIST("x float[19,16]", "r float[19,768]"),
           LIST("w float[16,768]", "g float[768]", "b float[768]"), "z", "MatMul p x w -> l",
           "Add a l r -> h", NORM, "Sub s y h -> z"),
    LAYERS("many rows of 768", {"x float[140,24]"},
           LIST("w float[24,768]", "v float[768]", "g float[768]"), "y", "Gemm p x w v -> h",
           "LayerNormalization n h g -> y | epsilon=0.01"),
    LAYERS("1000 columns", {"x float[9,24]"},
           LIST("w float[24,1000]", "g float[1000]", "b float[1000]"), "y", "MatMul p x w -> h",
           NORM),
    LAYERS("pairs of elements", {"x float[33,16]"},
           LIST("w float[16,42]", "g float[42]", "b float[42]"), "y", "MatMul p x w -> h", NORM),
    LAYERS("elements one by one", {"x float[20,16]"},
           LIST("w float[16,41]", "g float[41]", "b float[41]"), "y", "MatMul p x w -> h", NORM),
    LAYERS("one number for all", {"x float[66,16]"},
           LIST("w float[16,256]", "g float[1]", "b float[1]"), "y", "MatMul p x w -> h", NORM),
    LAYERS("root mean square", {"x float[40,16]"},
           LIST("w float[16,384]", "v float[384]", "g float[384]"), "y", "Gemm p x w v -> h",
           "SimplifiedLayerNormalization n h g -> y | axis=-1"),
    LAYERS("a function before it", {"x float[12,16]"},
           LIST("w float[16,512]", "v float[512]", "g float[512]", "b float[512]"), "y",
           "Gemm p x w v -> l", "Gelu f l -> h", NORM),
    LAYERS("weights turned", {"x float[70,24]"},
           LIST("w float[200,24]", "g float[200]", "b float[200]"), "y",
           "Gemm p x w -> h | transB=1", NORM),
    LAYERS("channels of an image", {"x float[2,16,5,7]"},
           LIST("w float[40,16,1,1]", "g float[40]", "b float[40]"), "y", "Conv c x w -> k",
           "Transpose t k -> h | perm=0,2,3,1", "LayerNormalization n h g b -> m",
           "Transpose u m -> y | perm=0,3,1,2"),
    LAYERS("rows of another shape, and a residual", LIST("x float[2,35,24]"),
           LIST("w float[24,40]", "g float[40]", "b float[40]", "s int64[2] 70 40"), "y",
           "MatMul p x w -> k", "Reshape r k s -> h", "LayerNormalization n h g b -> m",
           "Add a m h -> y"),
    LAYERS("rows that get other places", {"x float[2,4,6,24]"},
           LIST("w float[24,40]", "g float[40]", "b float[40]", "s int64[6] 2 2 2 3 2 40",
                "t int64[3] 12 4 40"),
           "z", "MatMul p x w -> h", "LayerNormalization n h g b -> k", "Reshape r k s -> l",
           "Transpose u l -> m | perm=0,1,3,2,4,5", "Reshape v m t -> y", "Neg o y -> z"),
    LAYERS("2048 columns", {"x float[3,16]"},
           LIST("w float[16,2048]", "g float[2048]", "b float[2048]"), "y", "MatMul p x w -> h",
           NORM),
    LAYERS("one row", {"x float[1,136]"},
           LIST("w float[136,1024]", "g float[1024]", "b float[1024]"), "y", "MatMul p x w -> h",
           NORM),
};

static const graph_case_t others[] = {
    LAYERS("several axes", {"x float[2,35,24]"},
           LIST("w float[24,40]", "g float[35,40]", "b float[35,40]"), "y", "MatMul p x w -> h",
           "LayerNormalization n h g b -> y | axis=1"),
    LAYERS("statistics", {"x float[70,24]"}, LIST("w float[24,40]", "g float[40]", "b float[40]"),
           "y m", "MatMul p x w -> h", "LayerNormalization n h g b -> y m"),
    LAYERS("more than a cluster has", {"x float[3,16]"},
           LIST("w float[16,2304]", "g float[2304]", "b float[2304]"), "y", "MatMul p x w -> h",
           NORM),
    LAYERS("a function in between", {"x float[9,24]"},
           LIST("w float[24,40]", "g float[40]", "b float[40]"), "y", "MatMul p x w -> l",
           "Softmax s l -> h", NORM),
    LAYERS("several matrices", LIST("x float[2,40,24]"),
           LIST("w float[2,24,64]", "g float[64]", "b float[64]"), "y", "MatMul p x w -> h", NORM),
    LAYERS("parameters of the run", LIST("x float[20,64]", "g float[128]", "b float[128]"),
           {"w float[64,128]"}, "y", "MatMul p x w -> h", NORM),
    LAYERS("softmax", {"x float[9,24]"}, {"w float[24,40]"}, "y", "MatMul p x w -> h",
           "Softmax s h -> y"),
};

static void one_launch_has_the_bits_of_two(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    pair_case_check(norm, NULL, &rows[i], i % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16, 1);
}

static void others_stay_alone(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    pair_case_check(norm, NULL, &others[i], ASSAY_FORMAT_FP16, 0);
  pair_case_check(norm, NULL, &rows[1], ASSAY_FORMAT_TF32, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_two),
                                     cmocka_unit_test(others_stay_alone)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
