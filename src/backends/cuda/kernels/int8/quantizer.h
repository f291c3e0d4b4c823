// A quantizer behind a kernel that makes floats: their bytes are stored beside them, as
// int8_pointwise makes them of what was stored.
//
// Options: INT8_OUT, INT8_SIGNED, INT8_INVERSE, as of int8_end.h. Who includes this says index_t.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_QUANTIZER_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_QUANTIZER_H_

#include "quantizer_args.h"
#include "types.h"

#define INT8_QUANTIZES 1
#include "int8_end.h"

// As functions of int8_end.h want it.
DEVICE int8_end_args_t end_of(const quantizer_args_t* q) {
  int8_end_args_t e;
  e.low = q->low, e.high = q->high, e.scale = q->scale, e.whole_zero = q->whole_zero;
  e.inverse = q->inverse, e.least = q->least, e.most = q->most;
  return e;
}

// n elements, a constant, from `at` on, which is a multiple of it.
DEVICE void store_quantized(const quantizer_args_t* q, int64_t at, int n, const float* x) {
  const int8_end_args_t e = end_of(q);
  if (n % INT8_TOGETHER == 0) {
    UNROLL
    for (int i = 0; i < n; i += INT8_TOGETHER) int8_store_all(&e, q->y, (index_t)(at + i), x + i);
  } else {
    UNROLL
    for (int i = 0; i < n; i++) int8_store(&e, q->y, (index_t)(at + i), x[i]);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_QUANTIZER_H_
