// Products by fused multiply-adds in float32: each sum is one chain over its terms in ascending
// order, whatever the tile is.
//
// Options besides those of product.h: IN, the type of both sides; BM x BN, the tile; TM x TN, the
// part of a thread; X_ALONG_K, W_ALONG_K 1: neighbours along k lie side by side in memory.
#include "product.h"

#define BK 16
#define ACROSS (BN / TN)
#define N_THREADS (BM / TM * ACROSS)
#define X_LOADS (BM * BK / N_THREADS)
#define W_LOADS (BN * BK / N_THREADS)
#if BM * BK % N_THREADS || BN * BK % N_THREADS || N_THREADS % BK
#error "threads do not share the sides out evenly"
#endif

// Where load i of a thread goes; with *_ALONG_K a thread's loads are of one term.
#define X_TERM(i) (X_ALONG_K ? THREAD % BK : (THREAD + (i) * N_THREADS) / BM)
#define X_ROW(i) (X_ALONG_K ? (THREAD + (i) * N_THREADS) / BK : (THREAD + (i) * N_THREADS) % BM)
#define W_TERM(i) (W_ALONG_K ? THREAD % BK : (THREAD + (i) * N_THREADS) / BN)
#define W_COLUMN(i) (W_ALONG_K ? (THREAD + (i) * N_THREADS) / BK : (THREAD + (i) * N_THREADS) % BN)

typedef ELEMENT(IN) element_t;

DEVICE void load_x(const product_args_t* a, const row_t* rows, const term_t* term, int64_t k0,
                   const element_t* x, float* to) {
  UNROLL
  for (int i = 0; i < X_LOADS; i++) {
    const int64_t k = k0 + X_TERM(i);
    int64_t at = -1;
    if (k < a->k) at = X_ALONG_K ? element_of(a, &rows[X_ROW(i)], term) : find_term(a, &rows[X_ROW(i)], k);
    to[i] = at < 0 ? 0.0F : LOAD(IN)(x, at);
  }
}

DEVICE void load_w(const product_args_t* a, const tile_t* t, int64_t k0, const element_t* w,
                   float* to) {
  UNROLL
  for (int i = 0; i < W_LOADS; i++) {
    const int64_t k = k0 + W_TERM(i), column = t->column + W_COLUMN(i);
    const bool inside = k < a->k && column < a->n;
    to[i] = inside ? LOAD(IN)(w, t->w + k * a->w_k + column * a->w_column) : 0.0F;
  }
}

// One term of the sums of a thread.
DEVICE void multiply(const float* x, const float* w, int down, int right, float (*sums)[TN]) {
  float u[TM], v[TN];
  UNROLL
  for (int i = 0; i < TM; i++) u[i] = x[down + i];
  UNROLL
  for (int j = 0; j < TN; j++) v[j] = w[right + j];
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) sums[i][j] = FMA(u[i], v[j], sums[i][j]);
}

LARGE_KERNEL(product_fma, product_args_t, N_THREADS) {
  SHARED float x_tiles[2][BK][BM + 4];
  SHARED float w_tiles[2][BK][BN + 4];
  SHARED row_t rows[BM];
  const element_t* x = GLOBAL(const element_t, a.x);
  const element_t* w = GLOBAL(const element_t, a.w);
  const tile_t t = find_tile(&a, BM, BN);
  const int down = THREAD / ACROSS * TM, right = THREAD % ACROSS * TN;
  float sums[TM][TN], of_x[X_LOADS], of_w[W_LOADS];
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) sums[i][j] = 0;
  for (int i = THREAD; i < BM; i += N_THREADS) rows[i] = find_row(&a, &t, t.row + i);
  term_t term = term_at(&a, THREAD % BK);
  SYNC();
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  load_x(&a, rows, &term, 0, x, of_x);
  load_w(&a, &t, 0, w, of_w);
  for (int64_t k0 = 0; k0 < a.k; k0 += BK) {
    // Two tiles in turns: whoever is late still reads the other one.
    float(*x_tile)[BM + 4] = x_tiles[k0 / BK % 2];
    float(*w_tile)[BN + 4] = w_tiles[k0 / BK % 2];
    UNROLL
    for (int i = 0; i < X_LOADS; i++) x_tile[X_TERM(i)][X_ROW(i)] = of_x[i];
    UNROLL
    for (int i = 0; i < W_LOADS; i++) w_tile[W_TERM(i)][W_COLUMN(i)] = of_w[i];
    SYNC();
    if (k0 + BK < a.k) {
      next_term(&a, &term, BK);
      load_x(&a, rows, &term, k0 + BK, x, of_x);
      load_w(&a, &t, k0 + BK, w, of_w);
    }
    const int left = a.k - k0 < BK ? (int)(a.k - k0) : BK;
    if (left == BK) {
      UNROLL
      for (int k = 0; k < BK; k++) multiply(x_tile[k], w_tile[k], down, right, sums);
    } else {
      for (int k = 0; k < left; k++) multiply(x_tile[k], w_tile[k], down, right, sums);
    }
  }
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) finish_sum(&a, &t, t.row + down + i, t.column + right + j, sums[i][j]);
}
