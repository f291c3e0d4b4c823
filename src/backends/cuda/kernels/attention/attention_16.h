// Results of attention of 16-bit floats, as tensor cores give them.
//
// Options besides those of attention_scores.h: Y_FAST 1: two columns of the result from an even one
// on lie at a multiple of 4 bytes.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_16_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_16_H_

#include "attention_scores.h"

#define PAIR JOINED(two_, T)

// Writes the thread's part of a row of the result, of query h, times `by`.
DEVICE void put_row(const attention_args_t* a, const queries_t* t, int h, float by, element_t* y,
                    INDEX row) {
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i++) {
    const int32_t column = i * 8 + LANE % 4 * 2;
    const float low = t->sums[i][2 * h] * by, high = t->sums[i][2 * h + 1] * by;
#if Y_FAST
    if (WHOLE || column < a->v_size) *(uint32_t*)(void*)(y + (row + column)) = PAIR(low, high);
#else
    if (WHOLE || column < a->v_size) STORE(T)(y, row + column * (INDEX)a->y.column, low);
    if (WHOLE || column + 1 < a->v_size) STORE(T)(y, row + (column + 1) * (INDEX)a->y.column, high);
#endif
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_16_H_
