// Places in a tensor that indices of the type INDEX name.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PLACES_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PLACES_H_

#include "places_args.h"
#include "prelude.h"

// The slice of the data that is place i; -1: an index is out of the data (the host says so).
DEVICE int64_t slice_of_place(const places_t* p, int64_t i) {
  int64_t at = 0, rest = i;
  for (int d = p->rank - 1; d >= 0; d--) {
    at += rest % p->dims[d] * p->steps[d];
    rest /= p->dims[d];
  }
  for (int j = 0; j < p->k; j++) {
    int64_t index = (int64_t)GLOBAL(const INDEX, p->indices)[i * p->k + j];
    if (index < 0) index += p->sizes[j];
    if (index < 0 || index >= p->sizes[j]) return -1;
    at += index * p->strides[j];
  }
  return at;
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PLACES_H_
