// How many threads a piece of work is worth. Results never depend on it.
#ifndef ASSAY_BACKENDS_CPU_THREADS_H_
#define ASSAY_BACKENDS_CPU_THREADS_H_

#include <omp.h>
#include <stdint.h>

// work: simple operations on one element each, in vector code. Below some microseconds of work, to
// wake other threads and to wait for them costs more than they do.
static inline int cpu_threads(int64_t work) {
  enum { WORTH = 100000 };
  const int all = omp_get_max_threads();
  return work < 2 * WORTH ? 1 : work / WORTH < all ? (int)(work / WORTH) : all;
}

#endif  // ASSAY_BACKENDS_CPU_THREADS_H_
