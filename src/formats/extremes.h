// What a look at a tensor's values tells first: how large they are, and whether all are numbers.
#ifndef ASSAY_FORMATS_EXTREMES_H_
#define ASSAY_FORMATS_EXTREMES_H_

#include <assay/types.h>
#include <stdint.h>

typedef struct assay_extremes {
  double largest;  // finite magnitude; 0 if there is none
  int64_t n_nan, n_inf;
} assay_extremes_t;

// Of n elements of a float type as packed; canonical ones are of type DOUBLE. The same for any
// number of threads.
assay_extremes_t assay_extremes(assay_type_t type, const void* data, int64_t n);

#endif  // ASSAY_FORMATS_EXTREMES_H_
