// What becomes of a tile's sums, which lie in shared memory. Options: those of product.h; the
// kernel says BM x BN, the tile, and N_THREADS, which finish it.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_

#include "product.h"

// Sums of a row, and as many that nobody has as keep the pairs of eight rows in different banks.
#define SUM_STEP (BN + 8)
// Two sums that lie side by side, from an even column on.
DEVICE void put_sums(float* tile, int row, int column, float low, float high) {
  const uint32_t words[2] = {bits_of(low), bits_of(high)};
  WRITE_8(tile + row * SUM_STEP + column, words);
}

// What comes after sums may be long: it is there once, and not for each sum of a thread, which the
// kernel has put into shared memory (put_sums). Where it is short, more of them are on their way.
#if EPILOGUE && !PROGRAM_IS_SHORT
#define FINISH ROLLED
#else
#define FINISH UNROLL_4
#endif
DEVICE void finish_tile(const product_args_t* a, const tile_t* t, const float* sums) {
  const ending_t e = find_ending(a, t);
  // A thread has the same columns of several rows.
  const int threads = BN / TOGETHER, rows = N_THREADS / threads;
  const int first = THREAD / threads, across = THREAD % threads * TOGETHER;
  const int64_t column = t->column + across;
  float bias[TOGETHER] = {0};
  if (first >= rows || column >= a->n) return;
  take_bias(a, t, column, columns_left(a, column), bias);
  FINISH
  for (int row = first; row < BM; row += rows) {
    float together[TOGETHER];
    UNROLL
    for (int j = 0; j < TOGETHER; j += 4)
      read_four(sums + row * SUM_STEP + across + j, together + j);
    finish_together(a, &e, t->row + row, column, bias, together);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
