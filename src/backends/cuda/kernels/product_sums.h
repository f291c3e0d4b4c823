// What becomes of a tile's sums, which lie in shared memory. Options: those of product.h; the
// kernel says BM x BN, the tile, and N_THREADS, which finish it.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_

#include "product.h"

// Rows of sums, whose groups of four change places by the row.
DEVICE int sum_place(int row, int column) { return row * BN + (column ^ (row & 7) * 4); }

// What comes after sums may be long: it is there once, and not for each sum of a thread, which the
// kernel has put into shared memory (sum_place). Where nothing does, more of them are on their way.
#if EPILOGUE
#define FINISH ROLLED
#else
#define FINISH UNROLL_4
#endif
DEVICE void finish_tile(const product_args_t* a, const tile_t* t, const float* sums) {
  const ending_t e = find_ending(a, t);
  FINISH
  for (int i = THREAD * TOGETHER; i < BM * BN; i += N_THREADS * TOGETHER) {
    float together[TOGETHER];
    UNROLL
    for (int j = 0; j < TOGETHER; j++) together[j] = sums[sum_place(i / BN, i % BN + j)];
    finish_together(a, t, &e, t->row + i / BN, t->column + i % BN, together);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
