// Loops in which one allocation after the other fails (base/alloc.h). They end behind the last
// allocation that is made, not at the first success: some code does without what it did not get.
#ifndef TESTS_FAIL_CASE_H_
#define TESTS_FAIL_CASE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"

// The allocation to fail after the nth: the next one up to `each` and with ASSAY_FULL, which
// scripts/test --full sets; else ever fewer, a fiftieth further.
static inline uint64_t fail_next(uint64_t n, uint64_t each) {
  static int full = -1;
  if (full < 0) full = getenv("ASSAY_FULL") != NULL;
  return n + (full || n < each ? 1 : 1 + n / 50);
}

// Lets one allocation after the other fail in `use`, which has to end well or with NO_MEMORY, and
// to free what it took. Returns how often it failed.
static inline size_t fail_each(uint64_t each, assay_status_t (*use)(void* user), void* user) {
  bool reached = true;
  size_t failed = 0;
  for (uint64_t n = 1; reached; n = fail_next(n, each)) {
    const int64_t live = assay_alloc_live();
    assay_alloc_fail_after(n, false);
    assay_status_t st = use(user);
    reached = assay_alloc_fail_after(0, false) >= n;
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
      fail_msg("allocation %llu: %s", (unsigned long long)n, assay_status_message(st));
    failed += st != NULL;
    assay_status_free(st);
    if (assay_alloc_live() != live)
      fail_msg("allocation %llu: %lld not freed", (unsigned long long)n,
               (long long)(assay_alloc_live() - live));
  }
  return failed;
}

#endif  // TESTS_FAIL_CASE_H_
