// The seed of a test that draws what it tries, and how many it draws.
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

// How many of n draws are made: ASSAY_DRAWS percent, which scripts/test sets by the machine's
// speed; else all. It is printed: a run with that seed and that percentage makes the same ones.
static inline int64_t test_draws(int64_t n) {
  const char* given = getenv("ASSAY_DRAWS");
  const int64_t percent = given ? strtoll(given, NULL, 10) : 100;
  if (percent <= 0 || percent >= 100 || n <= 1) return n;
  const int64_t draws = (n * percent + 99) / 100;
  printf("ASSAY_DRAWS=%lld: %lld of %lld\n", (long long)percent, (long long)draws, (long long)n);
  fflush(stdout);
  return draws;
}

#endif  // TESTS_SEED_CASE_H_
