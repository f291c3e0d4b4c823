// Layers on the CUDA platform without a GPU (fake/): their outputs beside another target's, bit for
// bit, in several formats.
#ifndef TESTS_CUDA_LAYER_CASE_H_
#define TESTS_CUDA_LAYER_CASE_H_

#include <stdlib.h>

#include "backends/tactic_case.h"

typedef struct layer_case {
  graph_case_t graph;
  const char* tactic;  // that runs the last layer
  bool specials;       // some elements of float inputs are zeros, infinities, NaN, huge and tiny
} layer_case_t;

static const struct {
  const char* name;
  assay_format_t format;
} layer_formats[] = {
    {"fp32", ASSAY_FORMAT_FP32}, {"fp16", ASSAY_FORMAT_FP16}, {"bf16", ASSAY_FORMAT_BF16}};
enum { LAYER_FORMATS = 3 };

// Before any library is opened.
static inline void layer_case_platform(void) {
  const char* folder = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", folder ? folder : ".", 1);
}

// The same bits; NaN are alike.
static inline void layer_case_same(const char* name, const char* format, const assay_tensor_t* want,
                                   const assay_tensor_t* got) {
  if (!tactic_case_same_shape(want, got)) fail_msg("%s, %s: another shape", name, format);
  for (int64_t i = 0; i < want->size; i++) {
    const bool floats = want->store == ASSAY_STORE_F64;
    const double a = floats ? assay_f64(want)[i] : 0, b = floats ? assay_f64(got)[i] : 0;
    if (floats ? (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b))
               : assay_i64(want)[i] == assay_i64(got)[i])
      continue;
    if (floats) fail_msg("%s, %s: element %lld is %a, not %a", name, format, (long long)i, b, a);
    fail_msg("%s, %s: element %lld is %lld, not %lld", name, format, (long long)i,
             (long long)assay_i64(got)[i], (long long)assay_i64(want)[i]);
  }
}

static inline void layer_case_compare(const layer_case_t* c, assay_model_t* m, int format,
                                      assay_tensor_t* const* in, const char* target) {
  tactic_run_t want, got;
  tactic_case_run(m, target, layer_formats[format].format, in, &want);
  tactic_case_run(m, "cuda", layer_formats[format].format, in, &got);
  if (c->tactic && !tactic_case_is_by(got.tactic, c->tactic))
    fail_msg("%s, %s: by %s, not by %s", c->graph.name, layer_formats[format].name, got.tactic,
             c->tactic);
  for (size_t i = 0; i < want.n_out; i++)
    layer_case_same(c->graph.name, layer_formats[format].name, want.out[i], got.out[i]);
  tactic_case_release(&want);
  tactic_case_release(&got);
}

static inline void layer_case_check(const layer_case_t* c, const char* target) {
  for (int f = 0; f < LAYER_FORMATS; f++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&c->graph, in);
    for (size_t i = 0; c->specials && in[i]; i++) tactic_case_specials(in[i]);
    layer_case_compare(c, m, f, in, target);
    graph_case_release(in);
    assay_model_release(m);
  }
}

#endif  // TESTS_CUDA_LAYER_CASE_H_
