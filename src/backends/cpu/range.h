// The range of inputs in which an algorithm keeps what plain sums keep.
#ifndef ASSAY_BACKENDS_CPU_RANGE_H_
#define ASSAY_BACKENDS_CPU_RANGE_H_

#include <stdint.h>

// Magnitudes [min, max), as float32 bits, and 0.
typedef struct cpu_range {
  uint32_t min, max;
} cpu_range_t;

#endif  // ASSAY_BACKENDS_CPU_RANGE_H_
