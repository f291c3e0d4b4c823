// Tests of the public API: they see <assay/...> only, but for what makes
// allocations fail (base/alloc.h).
#ifndef TESTS_API_API_CASE_H_
#define TESTS_API_API_CASE_H_

#include <assay/assay.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants those before it.
#include <jansson.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "fail_case.h"
#include "status_case.h"

static inline assay_tensor_t* floats(int rank, const int64_t* dims, const float* x) {
  assay_tensor_t* t = NULL;
  size_t n = 1;
  for (int i = 0; i < rank; i++) n *= (size_t)dims[i];
  ok(assay_tensor_make(ASSAY_TYPE_FLOAT, rank, dims, x, n * sizeof *x, &t));
  return t;
}

static inline assay_tensor_t* vector(int64_t n, const float* x) { return floats(1, &n, x); }

// A text that the library handed over must have this in it; it is freed.
static inline void has(char* text, const char* word) {
  if (!strstr(text, word)) fail_msg("'%s' is not in:\n%s", word, text);
  assay_text_free(text);
}

typedef struct runs {
  assay_status_t (*run)(void);
} runs_t;

static inline assay_status_t run_again(void* run) { return ((const runs_t*)run)->run(); }

// Lets one allocation after the other fail in `run`, which has to end well or with NO_MEMORY, and
// to free what it took.
static inline void allocations_fail(assay_status_t (*run)(void)) {
  runs_t runs = {run};
  json_set_alloc_funcs(assay_malloc, assay_free);
  ok(run());  // what is made once and kept
  assert_true(fail_each(200, run_again, &runs) > 0);
}

#endif  // TESTS_API_API_CASE_H_
