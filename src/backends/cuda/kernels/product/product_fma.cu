// Products by fused multiply-adds in float32: each sum is one chain over its terms in ascending
// order, whatever the tile is.
//
// Options besides those of product_tiles.h: BM x BN, the tile; TM x TN, the part of a thread;
// STAGES, steps that shared memory has, so that copies of the next ones are under way; W_CONSTANT 1:
// no layer before this one writes the weights.
#include "product.h"

#define IN f32
#define ACROSS (BN / TN)
#define DOWN (BM / TM)
#define N_THREADS (DOWN * ACROSS)
#define BK 32  // terms of a step: rows of 128 bytes
#define PIECE 4

// Rows of 128 bytes; their pieces of 16 bytes change places by the row, so that eight rows lie in
// different banks.
DEVICE int place(int row, int piece) { return row * BK + (piece ^ (row & 7)) * PIECE; }
// The same in rows of BN elements, which have eight pieces at least.
#if W_FAST == 2 && BN < 32
#error "rows of columns are too short to change the places of their pieces"
#endif
DEVICE int wide_place(int row, int piece) { return row * BN + (piece ^ (row & 7)) * PIECE; }

#include "product_tiles.h"

// Rows and columns of a thread lie as far apart as there are threads: neighbours among these read
// other banks. Where columns of a term lie side by side, a thread has them by fours.
#define BY_FOURS (W_FAST == 2 && TN % 4 == 0)
DEVICE int row_of(int i) { return THREAD / ACROSS + i * DOWN; }
DEVICE int column_of(int j) {
  return BY_FOURS ? (THREAD % ACROSS + j / 4 * ACROSS) * 4 + j % 4 : THREAD % ACROSS + j * ACROSS;
}

DEVICE float weight_at(const float* w, int k, int column) {
  return W_FAST == 2 ? w[wide_place(k, column / PIECE) + column % PIECE]
                     : w[place(column, k / PIECE) + k % PIECE];
}

// Four terms of all columns of a thread, by column.
DEVICE void read_weights(const float* w, int k, float (*v)[4]) {
#if BY_FOURS
  UNROLL
  for (int r = 0; r < 4; r++) UNROLL
  for (int j = 0; j < TN; j += 4) {
    float four[4];
    read_four(w + wide_place(k + r, column_of(j) / PIECE), four);
    UNROLL
    for (int i = 0; i < 4; i++) v[j + i][r] = four[i];
  }
#elif W_FAST == 2
  UNROLL
  for (int r = 0; r < 4; r++) UNROLL
  for (int j = 0; j < TN; j++) v[j][r] = weight_at(w, k + r, column_of(j));
#else
  UNROLL
  for (int j = 0; j < TN; j++) read_four(w + place(column_of(j), k / PIECE), v[j]);
#endif
}

// A whole step.
DEVICE void multiply(const float* x, const float* w, float (*sums)[TN]) {
  UNROLL
  for (int k = 0; k < BK; k += 4) {
    float u[TM][4], v[TN][4];
    UNROLL
    for (int i = 0; i < TM; i++) read_four(x + place(row_of(i), k / PIECE), u[i]);
    read_weights(w, k, v);
    UNROLL
    for (int r = 0; r < 4; r++) UNROLL
    for (int i = 0; i < TM; i++) UNROLL
    for (int j = 0; j < TN; j++) sums[i][j] = FMA(u[i][r], v[j][r], sums[i][j]);
  }
}

// The first `left` terms of the last one. Zeros behind them are not added: a sum may be -0.
DEVICE void multiply_some(const float* x, const float* w, int left, float (*sums)[TN]) {
  ROLLED
  for (int k = 0; k < left; k++) {
    UNROLL
    for (int i = 0; i < TM; i++) {
      const float u = x[place(row_of(i), k / PIECE) + k % PIECE];
      UNROLL
      for (int j = 0; j < TN; j++) sums[i][j] = FMA(u, weight_at(w, k, column_of(j)), sums[i][j]);
    }
  }
}

KERNEL_OF_BLOCKS(product_fma, product_args_t, N_THREADS, TM * TN > 16 ? 1 : 2) {
  DYNAMIC(float, stages);
  SHARED row_t rows[BM];
  const float* x = GLOBAL(const float, a.x);
  const float* w = GLOBAL(const float, a.w);
  float* x_tiles = stages;
  float* w_tiles = stages + STAGES * BM * BK;
  const tile_t t = find_tile(&a, BM, BN);
  float sums[TM][TN];
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) sums[i][j] = 0;
  for (int i = THREAD; i < BM; i += N_THREADS) rows[i] = find_row(&a, &t, t.row + i);
  left_t of_x;
  right_t of_w;
  aim_right(&a, &t, w, &of_w);
#if W_CONSTANT
  for (int s = 0; s < STAGES - 1; s++) {
    load_right(&a, &t, w, &of_w, w_tiles + s * BN * BK);
    next_right(&a, &of_w);
  }
#endif
  SYNC();
  of_x.k = THREAD % X_WIDTH * X_TERMS;
  of_x.term = term_at(&a, of_x.k);
  aim_left(&a, rows, x, &of_x);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  // Steps are loaded STAGES - 1 before they are multiplied.
  for (int s = 0; s < STAGES - 1; s++) {
    load_left(&a, rows, x, &of_x, x_tiles + s * BM * BK);
    next_left(&a, rows, x, &of_x);
#if !W_CONSTANT
    load_right(&a, &t, w, &of_w, w_tiles + s * BN * BK);
    next_right(&a, &of_w);
#endif
    COMMIT_COPIES();
  }
  int now = 0, to = STAGES - 1;
  for (int64_t k0 = 0; k0 < a.k; k0 += BK) {
    WAIT_COPIES(STAGES - 2);
    SYNC();
    if (of_w.k < a.k) {
      load_left(&a, rows, x, &of_x, x_tiles + to * BM * BK);
      load_right(&a, &t, w, &of_w, w_tiles + to * BN * BK);
      next_left(&a, rows, x, &of_x);
      next_right(&a, &of_w);
    }
    COMMIT_COPIES();
    const float *x_tile = x_tiles + now * BM * BK, *w_tile = w_tiles + now * BN * BK;
    if (a.k - k0 < BK)
      multiply_some(x_tile, w_tile, (int)(a.k - k0), sums);
    else
      multiply(x_tile, w_tile, sums);
    now = now == STAGES - 1 ? 0 : now + 1;
    to = to == STAGES - 1 ? 0 : to + 1;
  }
  WAIT_COPIES(0);  // of steps past the last one
  SYNC();
  float* tile = stages;  // sums lie where the steps were
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) tile[row_of(i) * SUM_STEP + column_of(j)] = sums[i][j];
  SYNC();
  finish_tile(&a, &t, tile, THREAD);
}
