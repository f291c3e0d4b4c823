// Products by cuBLASLt on a GPU that is not there (fake/cublaslt.c): what it is given to multiply,
// where it is left out, and what it says when it fails. By what it competes: exec/test_choice.c,
// and cli/test_cublaslt.py for plans.
#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, inputs, constants, ...) \
  { name, 20, inputs, constants, {__VA_ARGS__}, "y" }

// Both orders of both sides, several matrices, biases and Relu, convolutions of a place.
static const graph_case_t rows[] = {
    ROW("columns side by side", {"x float[70,136]"}, {"w float[136,40]"}, "MatMul p x w -> y"),
    ROW("rows of a batch", {"x float[3,5,24]"}, {"w float[24,9]"}, "MatMul p x w -> y"),
    ROW("terms side by side", {"x float[13,72]"}, LIST("w float[26,72]", "b float[26]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("turned left side", {"x float[72,10]"}, {"w float[72,18]"}, "Gemm p x w -> y | transA=1"),
    ROW("both turned", {"x float[9,20]"}, {"w float[7,9]"}, "Gemm p x w -> y | transA=1 transB=1"),
    ROW("one row", {"x float[1,300]"}, {"w float[300,12]"}, "MatMul p x w -> y"),
    ROW("one term", {"x float[3,1]"}, {"w float[1,5]"}, "MatMul p x w -> y"),
    ROW("activations", LIST("x float[2,3,6,16]", "z float[2,3,16,4]"), {0}, "MatMul p x z -> y"),
    ROW("one matrix for all", LIST("x float[1,4,8]", "z float[5,8,16]"), {0}, "MatMul p x z -> y"),
    ROW("an addend", {"x float[2,9,24]"}, LIST("w float[24,16]", "b float[16]"),
        "MatMul p x w -> h", "Add a b h -> y"),
    ROW("an addend and Relu", {"x float[9,24]"}, LIST("w float[24,16]", "b float[1,16]"),
        "MatMul p x w -> h", "Add a h b -> g", "Relu r g -> y"),
    ROW("an addend of the run", LIST("x float[9,24]", "z float[16]"), {"w float[24,16]"},
        "MatMul p x w -> h", "Add a h z -> y"),
    ROW("Relu", {"x float[9,24]"}, {"w float[24,16]"}, "MatMul p x w -> h", "Relu r h -> y"),
    ROW("one bias for all", {"x float[9,24]"}, LIST("w float[24,16]", "b float[1]"),
        "Gemm p x w b -> y"),
    ROW("1x1", {"x float[2,16,5,6]"}, LIST("w float[24,16,1,1]", "b float[24]"),
        "Conv c x w b -> h", "Relu r h -> y"),
    ROW("1 of one axis", {"x float[2,16,5]"}, {"w float[24,16,1]"}, "Conv c x w -> y"),
};

// What it does not do, or where what follows is more than it ends with.
static const graph_case_t others[] = {
    ROW("a factor", {"x float[9,24]"}, {"w float[24,16]"}, "Gemm p x w -> y | alpha=2.0"),
    ROW("a bias of the run", LIST("x float[9,24]", "z float[16]"), {"w float[24,16]"},
        "Gemm p x w z -> y"),
    ROW("a matrix is added", {"x float[9,24]"}, LIST("w float[24,16]", "c float[9,16]"),
        "MatMul p x w -> h", "Add a h c -> y"),
    ROW("a column is added", {"x float[9,24]"}, LIST("w float[24,16]", "c float[9,1]"),
        "MatMul p x w -> h", "Add a h c -> y"),
    ROW("two addends", {"x float[9,24]"}, LIST("w float[24,16]", "b float[16]", "c float[16]"),
        "MatMul p x w -> h", "Add a h b -> g", "Add d g c -> y"),
    ROW("Relu before an addend", {"x float[9,24]"}, LIST("w float[24,16]", "b float[16]"),
        "MatMul p x w -> h", "Relu r h -> g", "Add a g b -> y"),
    ROW("another function", {"x float[9,24]"}, {"w float[24,16]"}, "MatMul p x w -> h",
        "Gelu f h -> y"),
    ROW("steps of several dimensions", LIST("x float[2,1,6,16]", "z float[1,3,16,4]"), {0},
        "MatMul p x z -> y"),
    ROW("3x3", {"x float[1,16,9,11]"}, {"w float[40,16,3,3]"}, "Conv c x w -> y"),
    ROW("strides", {"x float[1,16,9,11]"}, {"w float[40,16,1,1]"}, "Conv c x w -> y | strides=2,2"),
    ROW("pads", {"x float[1,16,9,11]"}, {"w float[40,16,1,1]"}, "Conv c x w -> y | pads=1,1,1,1"),
    ROW("groups", {"x float[1,32,6,5]"}, {"w float[32,16,1,1]"}, "Conv c x w -> y | group=2"),
};

typedef struct run_case {
  const graph_case_t* graph;
  assay_format_t format;
  const char *ours, *algorithm;  // 66: the same bits; 67: others
} run_case_t;

static void compare(const run_case_t* r) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(r->graph, in);
  tactic_run_t want, got;
  char kernel[64];
  snprintf(kernel, sizeof kernel, "cublaslt/%s", r->algorithm);
  forced_case_run_in(r->format, m, "cuda", r->ours, in, &want);
  assert_string_equal(want.tactic, r->ours);
  forced_case_run_in(r->format, m, "cuda", kernel, in, &got);
  if (strcmp(got.tactic, kernel) != 0)
    fail_msg("%s is by %s, not by %s", r->graph->name, got.tactic, kernel);
  if (!tactic_case_identical(want.out[0], got.out[0]))
    fail_msg("%s by %s has other bits", r->graph->name, got.tactic);
  tactic_case_release(&got);
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

#define SAME "13.1.0-66.20.20.20.20.20"

static void it_multiplies_as_our_kernels(void** state) {
  (void)state;
  setenv("ASSAY_FAKE_CUBLASLT", "same", 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    print_message("%s\n", rows[i].name);
    const run_case_t cases[] = {{&rows[i], ASSAY_FORMAT_FP16, "product_mma/64x64", SAME},
                                {&rows[i], ASSAY_FORMAT_BF16, "product_mma/64x64", SAME},
                                {&rows[i], ASSAY_FORMAT_FP32, "product_fma/64x64", SAME}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) compare(&cases[k]);
  }
}

static void it_is_not_for_all_layers(void** state) {
  (void)state;
  setenv("ASSAY_FAKE_CUBLASLT", "same", 1);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&others[i], in);
    tactic_run_t got;
    forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", "cublaslt", in, &got);
    if (tactic_case_is_by(got.tactic, "cublaslt")) fail_msg("%s is by it", others[i].name);
    tactic_case_release(&got);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// Without a measurement, and where it offers nothing, our kernels run.
static void unasked_it_does_not_run(void** state) {
  static const char* const words[] = {"same", ""};
  (void)state;
  for (size_t i = 0; i < 2; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&rows[0], in);
    tactic_run_t got;
    setenv("ASSAY_FAKE_CUBLASLT", words[i], 1);
    forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", i ? "cublaslt" : NULL, in, &got);
    assert_true(tactic_case_is_by(got.tactic, "product_mma") ||
                tactic_case_is_by(got.tactic, "product_wgmma"));
    tactic_case_release(&got);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_multiplies_as_our_kernels),
                                     cmocka_unit_test(it_is_not_for_all_layers),
                                     cmocka_unit_test(unasked_it_does_not_run)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
