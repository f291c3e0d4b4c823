// Products by fused multiply-adds in float32: each sum is one chain over its terms in ascending
// order, whatever the tile is.
//
// Options besides those of product.h: IN, the type of both sides; BM x BN, the tile; TM x TN, the
// part of a thread; X_ALONG_K, W_ALONG_K 1: neighbours along k lie side by side in memory.
#include "product.h"

#define BK 16
#define ACROSS (BN / TN)
#define N_THREADS (BM / TM * ACROSS)

KERNEL(product_fma, product_args_t, N_THREADS) {
  SHARED float x_tile[BK][BM + 4];
  SHARED float w_tile[BK][BN + 4];
  SHARED row_t rows[BM];
  const ELEMENT(IN)* x = GLOBAL(const ELEMENT(IN), a.x);
  const ELEMENT(IN)* w = GLOBAL(const ELEMENT(IN), a.w);
  const tile_t t = find_tile(&a, BM, BN);
  const int down = THREAD / ACROSS * TM, right = THREAD % ACROSS * TN;
  float sums[TM][TN];
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) sums[i][j] = 0;
  for (int i = THREAD; i < BM; i += N_THREADS) rows[i] = find_row(&a, &t, t.row + i);
  WAIT_FOR_INPUTS();
  for (int64_t k0 = 0; k0 < a.k; k0 += BK) {
    SYNC();
    UNROLL
    for (int i = THREAD; i < BM * BK; i += N_THREADS) {
      const int k = X_ALONG_K ? i % BK : i / BM, row = X_ALONG_K ? i / BK : i % BM;
      const int64_t at = k0 + k < a.k ? find_term(&a, &rows[row], k0 + k) : -1;
      x_tile[k][row] = at < 0 ? 0.0F : LOAD(IN)(x, at);
    }
    UNROLL
    for (int i = THREAD; i < BN * BK; i += N_THREADS) {
      const int k = W_ALONG_K ? i % BK : i / BN, column = W_ALONG_K ? i / BK : i % BN;
      const bool inside = k0 + k < a.k && t.column + column < a.n;
      const int64_t at = t.w + (k0 + k) * a.w_k + (t.column + column) * a.w_column;
      w_tile[k][column] = inside ? LOAD(IN)(w, at) : 0.0F;
    }
    SYNC();
    const int left = a.k - k0 < BK ? (int)(a.k - k0) : BK;
    for (int k = 0; k < left; k++) {
      float u[TM], v[TN];
      UNROLL
      for (int i = 0; i < TM; i++) u[i] = x_tile[k][down + i];
      UNROLL
      for (int j = 0; j < TN; j++) v[j] = w_tile[k][right + j];
      UNROLL
      for (int i = 0; i < TM; i++) UNROLL
      for (int j = 0; j < TN; j++) sums[i][j] = FMA(u[i], v[j], sums[i][j]);
    }
  }
  LAUNCH_NEXT();
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) finish_sum(&a, &t, t.row + down + i, t.column + right + j, sums[i][j]);
}
