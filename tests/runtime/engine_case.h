// Engines and contexts for tests, through the public API only.
#ifndef TESTS_RUNTIME_ENGINE_CASE_H_
#define TESTS_RUNTIME_ENGINE_CASE_H_

#include <assay/assay.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "status_case.h"

static inline assay_engine_t* build_model(const char* name, const assay_engine_options_t* options) {
  char path[512];
  assay_model_t* m = NULL;
  assay_engine_t* e = NULL;
  snprintf(path, sizeof path, "%s/%s/model.onnx", getenv("ASSAY_TEST_MODELS"), name);
  ok(assay_model_load(path, &m));
  ok(assay_engine_build(m, options, &e));
  assay_model_release(m);
  return e;
}

static inline assay_context_t* open_context(assay_engine_t* e,
                                            const assay_context_options_t* options) {
  assay_context_t* c = NULL;
  ok(assay_context_create(e, options, &c));
  return c;
}

// Numbers that depend on the seed only.
static inline void fill(float* x, size_t n, uint32_t seed) {
  for (size_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)(seed >> 8) / 16777216.0f * 4 - 2;
  }
}

enum { IMAGE = 3 * 16 * 16, CLASSES = 10, MAX = 6 };

static inline void bind_images(assay_context_t* c, const float* images, int64_t n) {
  const int64_t dims[] = {n, 3, 16, 16};
  ok(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, images,
                              (size_t)n * IMAGE * sizeof *images));
}

// What the classifier makes of n images, in memory of its own.
static inline void classify(assay_context_t* c, const float* images, int64_t n, float* out) {
  bind_images(c, images, n);
  ok(assay_context_bind_output(c, 0, NULL, 0));
  ok(assay_context_run(c));
  assay_tensor_t* t = assay_context_output(c, 0);
  assert_non_null(t);
  assert_int_equal(assay_tensor_rank(t), 2);
  assert_int_equal(assay_tensor_dims(t)[0], n);
  ok(assay_tensor_read(t, out, (size_t)n * CLASSES * sizeof *out));
  assay_tensor_release(t);
}

#endif  // TESTS_RUNTIME_ENGINE_CASE_H_
