// Allocations that fail: one after the other in some sequence of calls, which has to end with a
// status and free what it took.
//
// The first ones fail one by one, those behind them by samples whose seed is printed.
// ASSAY_FULL=1: all. ASSAY_ALLOC=MODEL:N: only the Nth of a model, for a debugger.
#ifndef ASSAY_TESTS_ROBUST_ALLOC_CASE_H_
#define ASSAY_TESTS_ROBUST_ALLOC_CASE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// cmocka needs these before it
#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "seed_case.h"

typedef struct alloc_case {
  assay_status_t (*run)(const char* path);  // of a model
  uint64_t one_by_one, samples;
} alloc_case_t;

// What the last run made (FNV-1a): one that does without some memory has to make the same.
static uint64_t alloc_digest;

static inline void alloc_digest_add(const void* data, size_t n) {
  const unsigned char* p = data;
  for (size_t i = 0; i < n; i++) alloc_digest = (alloc_digest ^ p[i]) * 0x100000001b3u;
}

static inline assay_status_t alloc_run(const alloc_case_t* c, const char* path) {
  alloc_digest = 0xcbf29ce484222325u;
  return c->run(path);
}

typedef struct alloc_tally {
  size_t runs, reached, recovered, wrong;
  uint64_t digest;  // of a run without failures
} alloc_tally_t;

// Lets allocation n fail, alone or with all behind it. False: the sequence made fewer.
static inline bool alloc_fail_at(const alloc_case_t* c, const char* name, const char* path,
                                 uint64_t n, bool sticky, alloc_tally_t* tally) {
  enum { MAX_PRINTED = 20 };
  int64_t live = assay_alloc_live();
  assay_alloc_fail_after(n, sticky);
  assay_status_t st = alloc_run(c, path);
  bool reached = assay_alloc_fail_after(0, false) >= n;
  char message[512] = "no error";
  assay_code_t code = assay_status_code(st);
  if (st) snprintf(message, sizeof message, "%s", assay_status_message(st));
  assay_status_free(st);
  int64_t leaked = assay_alloc_live() - live;
  tally->runs++;
  tally->reached += reached;
  tally->recovered += reached && code == ASSAY_OK;
  // Doing without the memory is fine if nothing is missing afterwards.
  if (code == ASSAY_OK && alloc_digest != tally->digest) {
    code = ASSAY_INTERNAL;
    snprintf(message, sizeof message, "no error, but another result");
  }
  if (leaked || (code != ASSAY_OK && !(reached && code == ASSAY_NO_MEMORY))) {
    if (tally->wrong++ < MAX_PRINTED)
      print_error("%s: allocation %llu%s fails: %lld not freed, code %d, %s\n", name,
                  (unsigned long long)n, sticky ? " and all behind it" : "", (long long)leaked,
                  (int)code, message);
  }
  return reached;
}

static inline void alloc_fail_each(const alloc_case_t* c, const char* name) {
  char path[256], only[256];
  snprintf(path, sizeof path, "models/small/%s.onnx", name);
  alloc_tally_t tally = {0};
  const char* chosen = getenv("ASSAY_ALLOC");
  size_t k = strlen(name);
  assert_null(alloc_run(c, path));  // what is made once and kept, such as a library's tables
  tally.digest = alloc_digest;
  if (chosen) {
    snprintf(only, sizeof only, "%s", chosen);
    if (strncmp(only, name, k) != 0 || only[k] != ':') return;
    alloc_fail_at(c, name, path, strtoull(only + k + 1, NULL, 10), false, &tally);
    assert_int_equal(tally.wrong, 0);
    return;
  }
  assay_alloc_fail_after(0, false);
  assert_null(alloc_run(c, path));
  uint64_t total = assay_alloc_fail_after(0, false);
  bool full = getenv("ASSAY_FULL") != NULL;
  uint64_t seed = test_seed(), n = 1;
  for (; (full || n <= c->one_by_one) && alloc_fail_at(c, name, path, n, false, &tally); n++) {
  }
  if (n <= total) {
    print_message("%s: seed %llu\n", name, (unsigned long long)seed);
    assay_random_t random = assay_random_make(seed, name, 0);
    const uint64_t samples = (uint64_t)test_draws((int64_t)c->samples);
    for (uint64_t i = 0; i < samples; i++) {
      double place = assay_random_uniform(&random, i);
      alloc_fail_at(c, name, path, n + (uint64_t)(place * (double)(total + 1 - n)), false, &tally);
    }
  }
  for (n = 1; n <= total; n += 1 + total / (full ? 2000 : c->samples))
    alloc_fail_at(c, name, path, n, true, &tally);
  print_message("%s: %llu allocations, %zu runs, %zu with a failure, %zu of them did without\n",
                name, (unsigned long long)total, tally.runs, tally.reached, tally.recovered);
  assert_int_equal(tally.wrong, 0);
}

#endif  // ASSAY_TESTS_ROBUST_ALLOC_CASE_H_
