// NumPy's legacy generator, RandomState: the same numbers, so that inputs that Polygraphy makes
// from a seed are made here, too.
#ifndef ASSAY_IO_NUMPY_RANDOM_H_
#define ASSAY_IO_NUMPY_RANDOM_H_

#include "tensor/tensor.h"

// The Mersenne twister MT19937.
typedef struct assay_numpy_random {
  uint32_t key[624];
  int at;
} assay_numpy_random_t;

// RandomState(seed).
void assay_numpy_random_seed(assay_numpy_random_t* r, uint32_t seed);
uint32_t assay_numpy_random_u32(assay_numpy_random_t* r);
// random_sample(): uniform in [0, 1), a multiple of 2^-53.
double assay_numpy_random_sample(assay_numpy_random_t* r);

// What inputs are drawn from, as Polygraphy draws them.
typedef struct assay_numpy_range {
  double min, max;           // of floats: random_sample() * (max - min) + min, rounded to the type
  int64_t int_min, int_max;  // of integers and bool: randint(int_min, int_max + 1, dtype=type)
} assay_numpy_range_t;

// A canonical tensor; the stream goes on after it. Errors: INVALID_ARGUMENT a range that the type
// does not hold, or that is empty; UNSUPPORTED types that NumPy has no numbers of.
assay_status_t assay_numpy_random_tensor(assay_numpy_random_t* r, assay_type_t type, int rank,
                                         const int64_t* dims, const assay_numpy_range_t* range,
                                         assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_IO_NUMPY_RANDOM_H_
