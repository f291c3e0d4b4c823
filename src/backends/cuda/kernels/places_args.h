// Places in a tensor that indices name: arguments of kernels that gather and scatter.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PLACES_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PLACES_ARGS_H_

#include "types.h"

enum { PLACES_RANK = 8 };

// Each place is one of `count` slices of the data. Place i, taken apart by `dims` (the last one
// fastest), begins at the sum of its `steps`; its `k` indices, of `sizes`, go on by `strides`.
// Steps and strides are in slices.
typedef struct places {
  address_t indices;  // k for each place
  int64_t n, count;
  int64_t dims[PLACES_RANK], steps[PLACES_RANK], sizes[PLACES_RANK], strides[PLACES_RANK];
  int32_t rank, k;
} places_t;

typedef struct gather_places_args {
  places_t places;
  address_t data, out;
  int64_t slice;  // words
} gather_places_args_t;

typedef struct scatter_args {
  places_t places;
  address_t data, updates, out;
  address_t owners;  // uint32_t for each slice of the data, or for each place
  address_t keys;    // of the places, in order
  int64_t slice;     // words; of a reduction elements
} scatter_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PLACES_ARGS_H_
