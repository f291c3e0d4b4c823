// The sign test's interval of a median.
#include "cli/verbs/bench/bench_ratio.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// How many pairs may lie outside the interval at either end: the largest k for which k - 1 or fewer
// of n tosses of a coin are heads with a probability of at most 2.5 %.
static size_t outside(size_t n) {
  double below = 0;
  size_t k = 0;
  for (;; k++) {
    const double ways = lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
    below += exp(ways - (double)n * log(2));
    if (below > 0.025) return k;
  }
}

bench_ratio_t bench_ratio_of(double* logarithms, size_t n) {
  qsort(logarithms, n, sizeof *logarithms, ascending);
  const double median = 0.5 * (logarithms[(n - 1) / 2] + logarithms[n / 2]);
  const size_t k = outside(n);
  bench_ratio_t r = {.ratio = exp(median), .low = 0, .high = INFINITY};
  if (k) {
    r.low = exp(logarithms[k - 1]);
    r.high = exp(logarithms[n - k]);
  }
  r.differs = r.low > 1 || r.high < 1;
  return r;
}
