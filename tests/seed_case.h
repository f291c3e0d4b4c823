// The seed of a test that draws what it tries.
#ifndef TESTS_SEED_CASE_H_
#define TESTS_SEED_CASE_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// ASSAY_TEST_SEED, which scripts/test sets but for --full; else the time. It is printed, so that a
// failure can be had again.
static inline uint64_t test_seed(void) {
  const char* given = getenv("ASSAY_TEST_SEED");
  const uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
  printf("ASSAY_TEST_SEED=%llu\n", (unsigned long long)seed);
  fflush(stdout);
  return seed;
}

#endif  // TESTS_SEED_CASE_H_
