// Products by cuBLASLt on a GPU that is not there (fake/cublaslt.c): what it is given to multiply,
// where it is left out, and what it says when it fails. By what it competes: exec/test_choice.c,
// and cli/test_cublaslt.py for plans.
#include <stdlib.h>

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/driver.h"
#include "base/alloc.h"
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
    ROW("one row", {"x float[1,250]"}, {"w float[250,12]"}, "MatMul p x w -> y"),
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
    ROW("a matrix is added to many rows", {"x float[2,130,24]"},
        LIST("w float[24,16]", "b float[16]", "c float[130,16]"), "MatMul p x w -> h",
        "Add a h b -> g", "Add d g c -> y"),
    ROW("a function of many rows", {"x float[300,24]"}, LIST("w float[40,24]", "b float[40]"),
        "Gemm p x w b -> h | transB=1", "Gelu f h -> y"),
    ROW("a sum of many places", LIST("x float[2,16,15,10]", "z float[2,24,15,10]"),
        LIST("w float[24,16,1,1]", "b float[24]"), "Conv c x w b -> h", "Add a h z -> g",
        "Relu r g -> y"),
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
    ROW("a function of rows off 8", {"x float[300,24]"}, {"w float[24,20]"}, "MatMul p x w -> h",
        "Gelu f h -> y"),
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
    // What is finished by a launch of ours is of 16 bits.
    const size_t n = strstr(rows[i].name, "many") ? 2 : 3;
    for (size_t k = 0; k < n; k++) compare(&cases[k]);
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

// ---- what the library is asked ------------------------------------------------------------------

static assay_status_t ask(assay_device_t* d, const char* want) {
  const cublaslt_product_t p = {.m = 4,
                                .n = 8,
                                .k = 16,
                                .matrices = 1,
                                .x_row = 16,
                                .w_row = 8,
                                .y_row = 8,
                                .in = ASSAY_TYPE_FLOAT16,
                                .out = ASSAY_TYPE_FLOAT16};
  const cublaslt_way_t* ways = NULL;
  char names[256] = "";
  size_t n = 0;
  cublaslt_t* lt = NULL;
  cublaslt_call_t* call = NULL;
  ASSAY_TRY(cublaslt_create(d, &lt));
  assay_status_t st = cublaslt_ways(lt, &p, &ways, &n);
  for (int again = 0; !st && again < 2; again++) st = cublaslt_ways(lt, &p, &ways, &n);
  for (size_t i = 0; i < n; i++)
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s:%zu ", ways[i].name,
             ways[i].splits ? " splits" : "", ways[i].scratch);
  if (!st && n) st = cublaslt_call_create(lt, &p, &ways[0], &call);
  if (!st) assert_string_equal(names, want);
  cublaslt_call_destroy(call);
  cublaslt_destroy(lt);
  return st;
}

// Ways by their names, those that split sums apart; where it takes no product there are none.
static void ways_are_by_name(void** state) {
  static const char* const cases[][2] = {
      {"", ""},
      {"same", SAME ":0 "},
      {"parts,same,turned",
       "13.1.0-67.20.20.20.20.20:0 " SAME ":0 13.1.0-68.20.20.20.20.20_2 splits:4096 "},
  };
  (void)state;
  assay_device_t* d = NULL;
  op_case_ok(assay_device_driver_cuda.open(0, &d));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    setenv("ASSAY_FAKE_CUBLASLT", cases[i][0], 1);
    op_case_ok(ask(d, cases[i][1]));
    for (uint64_t n = 1;; n++) {
      const int64_t before = assay_alloc_live();
      assay_alloc_fail_after(n, false);
      assay_status_t st = ask(d, cases[i][1]);
      const bool done = assay_alloc_fail_after(0, false) < n;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assert_int_equal(assay_alloc_live(), before);
      if (done) break;
    }
  }
  assay_device_driver_cuda.close(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_multiplies_as_our_kernels), cmocka_unit_test(it_is_not_for_all_layers),
      cmocka_unit_test(unasked_it_does_not_run), cmocka_unit_test(ways_are_by_name)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
