// The range of inputs in which an algorithm keeps what plain sums keep.
#ifndef ASSAY_BACKENDS_CPU_RANGE_H_
#define ASSAY_BACKENDS_CPU_RANGE_H_

#include <stdint.h>
#include <string.h>

#include "ops/sum_account.h"

// Magnitudes [min, max), as float32 bits, and 0.
typedef struct cpu_range {
  uint32_t min, max;
} cpu_range_t;

static inline uint32_t cpu_range_bits(double x) {
  const float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static inline cpu_range_t cpu_range_of(const assay_sum_account_t* a) {
  return (cpu_range_t){cpu_range_bits(a->min), cpu_range_bits(a->max)};
}

#endif  // ASSAY_BACKENDS_CPU_RANGE_H_
