// What becomes of the result of a row that a reduction of floats has made: it is stored, with
// QUANTIZED as a byte, too (quantizer.h). Who includes this has rows.h before it.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_REDUCE_RESULT_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_REDUCE_RESULT_H_

#include "elements.h"

#ifdef QUANTIZED
typedef int64_t index_t;
#include "quantizer.h"
#endif

DEVICE void store_result(const reduce_args_t* a, int64_t row, float x) {
  const int64_t at = row_place(&a->g, a->g.row_to, row);
#ifdef QUANTIZED
  store_quantized(&a->quantizer, at, 1, &x);
  if (!a->y) return;
#endif
  STORE(TO)(GLOBAL(ELEMENT(TO), a->y), at, x);
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_REDUCE_RESULT_H_
