// The interval of a ratio of paired latencies: known ranks, and how often it holds the truth.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/verbs/bench/bench_ratio.h"

enum { MAX = 200 };

// Ranks of both ends, from tables of the sign test (two-sided, 5 %).
static void test_ranks(void** state) {
  (void)state;
  static const struct {
    size_t n, rank;  // 0: no interval
  } rows[] = {{1, 0},  {5, 0},  {6, 1},  {8, 1},   {9, 2},
              {10, 2}, {20, 6}, {25, 8}, {50, 18}, {100, 40}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double x[MAX];
    const size_t n = rows[i].n, k = rows[i].rank;
    for (size_t j = 0; j < n; j++) x[j] = 0.01 * (double)(n - j);  // 0.01 to 0.01 n, unsorted
    const bench_ratio_t r = bench_ratio_of(x, n);
    const double low = k ? exp(0.01 * (double)k) : 0;
    const double high = k ? exp(0.01 * (double)(n + 1 - k)) : INFINITY;
    const double median = exp(0.01 * 0.5 * (double)(n + 1));
    if (fabs(r.ratio / median - 1) > 1e-12 || (k && fabs(r.low / low - 1) > 1e-12) ||
        (k && fabs(r.high / high - 1) > 1e-12) || (!k && (r.low != low || r.high != high)) ||
        r.differs != (k > 0))
      fail_msg("%zu pairs: %g (%g to %g, differs: %d), not %g (%g to %g)", n, r.ratio, r.low,
               r.high, r.differs, median, low, high);
  }
}

// Of skewed draws with one outlier in ten, whose median is 0: 95 % or more of the intervals hold 1.
static void test_coverage(void** state) {
  (void)state;
  enum { TIMES = 2000, N = 40 };
  uint64_t s = 12345;
  int differ = 0, slower = 0;
  for (int t = 0; t < TIMES; t++) {
    double x[N], y[N];
    for (int i = 0; i < N; i++) {
      s = s * 6364136223846793005u + 1442695040888963407u;
      const double u = (double)(s >> 11) / 9007199254740992.0;
      x[i] = u < 0.5 ? 0.01 * (u - 0.5) : u < 0.9 ? 0.05 * (u - 0.5) : 2 * u;
      y[i] = x[i] + 0.02;
    }
    differ += bench_ratio_of(x, N).differs;
    slower += bench_ratio_of(y, N).low > 1;
  }
  if (differ > 0.05 * TIMES * 1.25) fail_msg("%d of %d intervals miss the median", differ, TIMES);
  if (slower < 0.95 * TIMES) fail_msg("a shift shows in %d of %d only", slower, TIMES);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks), cmocka_unit_test(test_coverage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
