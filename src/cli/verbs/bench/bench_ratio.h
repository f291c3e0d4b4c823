// The ratio of two latencies that were measured in pairs, with a confidence interval.
#ifndef ASSAY_CLI_VERBS_BENCH_BENCH_RATIO_H_
#define ASSAY_CLI_VERBS_BENCH_BENCH_RATIO_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct bench_ratio {
  double ratio;      // the median
  double low, high;  // its 95 % interval; 0 and infinity where there are too few pairs (below 6)
  bool differs;      // the interval does not hold 1
} bench_ratio_t;

// Of the logarithms of the ratios of n > 0 pairs, which are sorted. The interval is that of the
// sign test: it assumes of the pairs that they are independent and have one median, and nothing of
// their distribution; it holds the median with a probability of at least 95 %. Source: W. J.
// Conover, Practical Nonparametric Statistics, 3rd edition, 1999, section 3.2 (confidence interval
// for a quantile).
bench_ratio_t bench_ratio_of(double* logarithms, size_t n);

#endif  // ASSAY_CLI_VERBS_BENCH_BENCH_RATIO_H_
