// Random numbers that depend on a seed, a stream's name and a position only: any element can be
// drawn at any time, by any thread, and is always the same.
#ifndef ASSAY_BASE_RANDOM_H_
#define ASSAY_BASE_RANDOM_H_

#include <stdint.h>

// The generator Philox4x32-10. Source: Salmon, Moraes, Dror, Shaw, 'Parallel Random Numbers: As
// Easy as 1, 2, 3', SC 2011.
void assay_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

// A stream of numbers.
typedef struct assay_random {
  uint64_t seed, stream;
} assay_random_t;

// The stream of a seed, a name (of a node) and an iteration (of the loops around the node; 0:
// none).
assay_random_t assay_random_make(uint64_t seed, const char* name, uint64_t iteration);

// The iteration `round` (from 1 on) of a loop that itself runs in an iteration (0: in none). Never
// 0.
uint64_t assay_random_iteration(uint64_t outer, uint64_t round);

// Number `index` of the stream, uniform in [0, 1): a multiple of 2^-53.
double assay_random_uniform(const assay_random_t* r, uint64_t index);
// The same number's place under the normal distribution of mean 0 and variance 1.
double assay_random_normal(const assay_random_t* r, uint64_t index);

// The inverse of the normal distribution function, p in (0, 1), to about 1e-16 of its value.
double assay_normal_quantile(double p);

#endif  // ASSAY_BASE_RANDOM_H_
