// Loops in which one allocation after the other fails (base/alloc.h). They end behind the last
// allocation that is made, not at the first success: some code does without what it did not get.
#ifndef TESTS_FAIL_CASE_H_
#define TESTS_FAIL_CASE_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// The allocation to fail after the nth: the next one up to `each` and with ASSAY_FULL, which
// scripts/test --full sets; else ever fewer, a fiftieth further.
static inline uint64_t fail_next(uint64_t n, uint64_t each) {
  static int full = -1;
  if (full < 0) full = getenv("ASSAY_FULL") != NULL;
  return n + (full || n < each ? 1 : 1 + n / 50);
}

#endif  // TESTS_FAIL_CASE_H_
