// Products with constant matrices of 4- or 8-bit codes, which become float32 where they are loaded:
// each sum is one chain of fused multiply-adds over its terms in ascending order, from its start
// on, whatever the tile is. So it is on the CPU (cpu/gemm/coded_kernel.h).
//
// Options besides those of product.h: IN, the type of the left side; BITS 4 or 8; SIGNED 1: codes
// of 8 bits are; BM x BN, the tile; TM x TN, the part of a thread.
#include "coded_args.h"
#include "product.h"

#define BK 16
#define ACROSS (BN / TN)
#define N_THREADS (BM / TM * ACROSS)

DEVICE float weight(const coded_args_t* a, const void* codes, int64_t k, int64_t column) {
  const int64_t n = a->product.n, place = k / a->block * n + column;
#if BITS == 4
  const uint32_t word = ((const uint32_t*)codes)[k / 8 * n + column];
  const int32_t code = (int32_t)(word >> (k % 8 * 4) & 15);
#elif SIGNED
  const int32_t code = ((const int8_t*)codes)[k * n + column];
#else
  const int32_t code = ((const uint8_t*)codes)[k * n + column];
#endif
  return ((float)code - GLOBAL(const float, a->zeros)[place]) *
         GLOBAL(const float, a->scales)[place];
}

KERNEL(coded, coded_args_t, N_THREADS) {
  SHARED float x_tile[BK][BM + 4];
  SHARED float w_tile[BK][BN + 4];
  const product_args_t* p = &a.product;
  const ELEMENT(IN)* x = GLOBAL(const ELEMENT(IN), p->x);
  const void* codes = GLOBAL(const uint32_t, p->w);
  const tile_t t = find_tile(p, BM, BN);
  const int down = THREAD / ACROSS * TM, right = THREAD % ACROSS * TN;
  float sums[TM][TN];
  UNROLL
  for (int j = 0; j < TN; j++) {
    const int64_t column = t.column + right + j;
    const float bias = a.bias && column < p->n ? GLOBAL(const float, a.bias)[column] : 0.0F;
    UNROLL
    for (int i = 0; i < TM; i++) sums[i][j] = bias;
  }
  WAIT_FOR_INPUTS();
  for (int64_t k0 = 0; k0 < p->k; k0 += BK) {
    SYNC();
    UNROLL
    for (int i = THREAD; i < BM * BK; i += N_THREADS) {
      const int64_t k = k0 + i % BK, row = t.row + i / BK;
      x_tile[i % BK][i / BK] = k < p->k && row < p->m ? LOAD(IN)(x, row * p->k + k) : 0.0F;
    }
    UNROLL
    for (int i = THREAD; i < BN * BK; i += N_THREADS) {
      const int64_t k = k0 + i / BN, column = t.column + i % BN;
      w_tile[i / BN][i % BN] = k < p->k && column < p->n ? weight(&a, codes, k, column) : 0.0F;
    }
    SYNC();
    const int left = p->k - k0 < BK ? (int)(p->k - k0) : BK;
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
  for (int j = 0; j < TN; j++)
    finish_sum(p, &t, t.row + down + i, t.column + right + j, sums[i][j]);
}
