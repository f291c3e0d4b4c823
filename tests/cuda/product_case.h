// Products that several kernels run: the same bits by all, and those that are left to others.
#ifndef ASSAY_TESTS_CUDA_PRODUCT_CASE_H_
#define ASSAY_TESTS_CUDA_PRODUCT_CASE_H_

#include <stdlib.h>

#include "cuda/forced_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, inputs, constants, node) \
  { name, 20, inputs, constants, {node}, "y" }

// Both orders of the weights, and what is brought element by element; leftovers of rows, columns
// and steps; steps beyond what shared memory has; several matrices; convolutions.
static const graph_case_t product_case_all[] = {
    ROW("columns side by side", {"x float[70,136]"}, {"w float[136,200]"}, "MatMul p x w -> y"),
    ROW("terms side by side", {"x float[130,72]"}, LIST("w float[264,72]", "b float[264]"),
        "Gemm p x w b -> y | transB=1"),
    ROW("element by element", {"x float[9,21]"}, {"w float[21,35]"}, "MatMul p x w -> y"),
    ROW("turned left side", {"x float[72,40]"}, {"w float[72,48]"}, "Gemm p x w -> y | transA=1"),
    ROW("many steps", {"x float[8,1400]"}, {"w float[1400,40]"}, "MatMul p x w -> y"),
    ROW("one term", {"x float[3,1]"}, {"w float[1,5]"}, "MatMul p x w -> y"),
    ROW("activations", LIST("x float[2,3,66,16]", "z float[3,16,40]"), {0}, "MatMul p x z -> y"),
    ROW("1x1", {"x float[2,16,5,6]"}, LIST("w float[72,16,1,1]", "b float[72]"),
        "Conv c x w b -> y"),
    ROW("3x3", {"x float[1,24,9,11]"}, LIST("w float[40,24,3,3]", "b float[40]"),
        "Conv c x w b -> y | pads=1,0,1,2 strides=2,1"),
    ROW("patches", {"x float[2,3,32,48]"}, LIST("w float[24,3,16,16]", "b float[24]"),
        "Conv c x w b -> y | strides=16,16"),
    ROW("groups", {"x float[1,32,6,5]"}, {"w float[16,16,3,3]"}, "Conv c x w -> y | group=2"),
    ROW("transposed", {"x float[2,8,5,4]"}, {"w float[8,16,4,4]"},
        "ConvTranspose c x w -> y | strides=2,2 pads=1,1,1,1"),
    {"a bias behind it, and a program",
     20,
     {"x float[2,9,24]"},
     {"w float[24,40]", "b float[1,1,40]"},
     {"MatMul p x w -> h", "Add a b h -> g", "Tanh t g -> y"},
     "y"},
    {"one number behind it",
     20,
     {"x float[2,9,24]"},
     {"w float[24,40]", "b float[] 0.3"},
     {"MatMul p x w -> h", "Add a h b -> y"},
     "y"},
    {"a row of the run behind it",
     20,
     {"x float[2,9,24]", "b float[40]"},
     {"w float[24,40]"},
     {"MatMul p x w -> h", "Add a h b -> y"},
     "y"},
    {"itself behind it",
     20,
     {"x float[2,9,24]"},
     {"w float[24,40]"},
     {"MatMul p x w -> h", "Add a h h -> y"},
     "y"},
    {"a program behind it",
     20,
     {"x float[2,9,24]"},
     {"w float[24,40]", "b float[40]", "c float[9,40]"},
     {"MatMul p x w -> h", "Add a h b -> g", "Gelu f g -> k", "Mul m k c -> y"},
     "y"},
};
enum { PRODUCT_CASE_ALL = sizeof product_case_all / sizeof *product_case_all };

// Each kernel of "TACTIC/VARIANT"s, of which NULL is the end, gives the bits of the first one.
static inline void product_case_same(const graph_case_t* c, assay_format_t format,
                                     const char* const* kernels) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(c, in);
  tactic_run_t want, got;
  print_message("%s\n", c->name);
  forced_case_run_in(format, m, "cuda", *kernels, in, &want);
  assert_string_equal(want.tactic, *kernels);
  while (*++kernels) {
    forced_case_run_in(format, m, "cuda", *kernels, in, &got);
    assert_string_equal(got.tactic, *kernels);
    if (!tactic_case_identical(want.out[0], got.out[0]))
      fail_msg("%s by %s has other bits", c->name, got.tactic);
    tactic_case_release(&got);
  }
  tactic_case_release(&want);
  graph_case_release(in);
  assay_model_release(m);
}

// How many kernels there are for one that a row is tried by. On the host each takes seconds to
// compile and run; ASSAY_TEST_SHARE says it of a GPU on which they do, too, and of all others.
static inline size_t product_case_step(void) {
  enum { ON_HOST = 5 };
  const char* share = getenv("ASSAY_TEST_SHARE");
  const long step = share ? strtol(share, NULL, 10) : 0;
  if (step > 0) return (size_t)step;
  return getenv("ASSAY_TEST_GPU") || getenv("ASSAY_FULL") ? 1 : ON_HOST;
}

// Row i: by the first kernel and some of the others, and the next rows by those left out.
static inline void product_case_share(const graph_case_t* rows, size_t i, assay_format_t format,
                                      const char* const* kernels) {
  enum { MOST = 63 };
  const size_t step = product_case_step();
  const char* some[MOST + 1] = {*kernels};
  size_t n = 0, all = 0;
  while (kernels[all]) all++;
  assert_in_range(all, 1, MOST);
  for (size_t k = 1 + i % step; k < all; k += step) some[++n] = kernels[k];
  product_case_same(&rows[i], format, some);
}

// The tactic, asked for, does not run the case.
static inline void product_case_left(const graph_case_t* c, assay_format_t format,
                                     const char* tactic) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(c, in);
  tactic_run_t got;
  forced_case_run_in(format, m, "cuda", tactic, in, &got);
  if (tactic_case_is_by(got.tactic, tactic)) fail_msg("%s by %s", c->name, got.tactic);
  tactic_case_release(&got);
  graph_case_release(in);
  assay_model_release(m);
}

// On the platform of the environment; without one, on a machine that has no GPU.
static inline void product_case_platform(void) {
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
}

#endif  // ASSAY_TESTS_CUDA_PRODUCT_CASE_H_
