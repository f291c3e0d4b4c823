// Products of float32 in parts of tf32 by wgmma (sm_90a), whose operands the copy engine brings: a
// block a tile (product_block.h, product_parts.h). Options: those of product_stages.h, of which
// W_PARTS is 2 and weights lie by columns.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#include "product_block.h"
#include "product_bulk_args.h"

// Parts make NaN of infinities, and of sums that overflow on the way: what is not finite is made
// again, of the weights' parts, by multiply-adds.
DEVICE float made_again(const product_args_t* a, int64_t row, int64_t column) {
  const tile_t all = {0, 0, 0, 0, 0, 0};
  const row_t r = find_row(a, &all, row);
  const float* x = GLOBAL(const float, a->x);
  const float* w = GLOBAL(const float, a->w) + column * a->w_column;
  float sum = 0;
  ROLLED
  for (int64_t k = 0; k < a->k; k++) {
    const int64_t at = find_term(a, &r, k);
    sum = FMA(at < 0 ? 0.0F : x[at], w[k] + w[a->n * a->w_column + k], sum);
  }
  return sum;
}

DEVICE void mend_sums(const product_args_t* a, const tile_t* t, float* tile) {
  ROLLED
  for (int i = THREAD * 4; i < BM * BN; i += N_THREADS * 4) {
    const int row = i / BN, column = i % BN;
    float sums[4];
    read_four(tile + row * SUM_STEP + column, sums);
    if (is_finite(sums[0]) && is_finite(sums[1]) && is_finite(sums[2]) && is_finite(sums[3]))
      continue;
    ROLLED
    for (int j = 0; j < 4; j++) {
      float* sum = tile + row * SUM_STEP + column + j;
      if (!is_finite(*sum) && t->row + row < a->m && t->column + column + j < a->n)
        *sum = made_again(a, t->row + row, t->column + column + j);
    }
  }
  SYNC();
}

KERNEL_OF_BLOCKS(product_parts, product_bulk_args_t, N_THREADS, BM > 64 || BN > 64 ? 1 : 2) {
#if HAS_WGMMA
  const tile_t t = find_only_tile(&a.product, (uint32_t)BLOCK, BM, BN);
  float* tile = (float*)multiply_tile(&a.x, &a.w, &a.product, &t);
  WAIT_FOR_INPUTS();
  mend_sums(&a.product, &t, tile);
  finish_tile(&a.product, &t, tile, THREAD);
#else  // it compiles, and must not run
  (void)a;
#endif
}
