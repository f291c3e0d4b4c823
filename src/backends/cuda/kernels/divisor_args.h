// Divisions by what the host knows before a launch: a multiplication and a shift, where a division
// takes a GPU some twenty instructions, one after the other.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_DIVISOR_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_DIVISOR_ARGS_H_

#include "types.h"

// factor: 2^(31 + shift) / size, rounded up, where 2^shift is the smallest that is at least `size`.
typedef struct divisor {
  uint32_t size, factor, shift;
} divisor_t;

// x / d.size for x and d.size from 0 and 1 to 2^31 - 1: what the factor is too large by, less than
// size, is multiplied by less than 2^31, which 2^(31 + shift) takes off again.
#define DIVIDED(x, d) ((uint32_t)((uint64_t)((x) << 1) * (d).factor >> 32) >> (d).shift)

// The same of numbers below 2^16, by the factor 2^32 / size, rounded up, of a size from 2 to 2^16.
#define DIVIDED_SHORT(x, factor) ((uint32_t)((uint64_t)(x) * (factor) >> 32))

#ifndef __CUDACC_RTC__
static inline uint32_t short_factor_of(uint32_t size) {
  return (uint32_t)((((uint64_t)1 << 32) + size - 1) / size);
}

static inline divisor_t divisor_of(uint32_t size) {
  divisor_t d = {.size = size};
  while (1u << d.shift < size) d.shift++;
  d.factor = (uint32_t)((((uint64_t)1 << (31 + d.shift)) + size - 1) / size);
  return d;
}
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_DIVISOR_ARGS_H_
