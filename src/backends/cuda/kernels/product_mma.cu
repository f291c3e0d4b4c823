// Products by the tensor cores' mma.sync: each sum is one accumulator of float32 over steps of 16
// terms (8 of tf32) in ascending order, whatever the tile is.
//
// Options besides those of product.h: IN f16, bf16, or f32 (which is rounded to tf32); BM x BN, the
// tile; WM x WN, its warps; X_FAST 1: rows of the left side begin at multiples of 16 bytes, and
// eight terms lie side by side (of one tap, with CONV), four of f32; W_FAST 1: so do terms of a
// column, 2: so do columns of a term, 0: neither.
#include "product.h"

#define N_THREADS (32 * WM * WN)
#define TM (BM / WM / 16)  // matrices of 16 x 8 that a warp makes
#define TN (BN / WN / 8)
#define BK (128 / (int)sizeof(ELEMENT(IN)))  // terms of a step: rows of 128 bytes
#define PIECE (16 / (int)sizeof(ELEMENT(IN)))
#define STAGES 2

// Rows of 128 bytes; their pieces of 16 bytes change places by the row, so that eight rows lie in
// different banks.
DEVICE int place(int row, int piece) { return row * BK + (piece ^ (row & 7)) * PIECE; }
// The same in rows of BN elements, which have eight pieces at least.
#if W_FAST == 2 && BN < (IN_IS_F32 ? 32 : 64)
#error "rows of columns are too short to change the places of their pieces"
#endif
DEVICE int wide_place(int row, int piece) { return row * BN + (piece ^ (row & 7)) * PIECE; }

typedef ELEMENT(IN) element_t;

DEVICE void load_x(const product_args_t* a, const row_t* rows, const element_t* x, int64_t k0,
                   element_t* to) {
#if X_FAST
  UNROLL
  for (int i = THREAD; i < BM * 8; i += N_THREADS) {
    const int64_t k = k0 + i % 8 * PIECE;
    const int64_t at = k < a->k ? find_term(a, &rows[i / 8], k) : -1;
    copy_16(to + place(i / 8, i % 8), x + (at < 0 ? 0 : at), at < 0 ? 0 : 16);
  }
#else
  for (int i = THREAD; i < BM * BK; i += N_THREADS) {
    const int row = i / BK, k = i % BK;
    const int64_t at = k0 + k < a->k ? find_term(a, &rows[row], k0 + k) : -1;
    to[place(row, k / PIECE) + k % PIECE] = at < 0 ? (element_t)0 : x[at];
  }
#endif
}

DEVICE void load_w(const product_args_t* a, const tile_t* t, const element_t* w, int64_t k0,
                   element_t* to) {
#if W_FAST == 1
  UNROLL
  for (int i = THREAD; i < BN * 8; i += N_THREADS) {
    const int64_t k = k0 + i % 8 * PIECE, column = t->column + i / 8;
    const bool inside = k < a->k && column < a->n;
    copy_16(to + place(i / 8, i % 8), w + (inside ? t->w + column * a->w_column + k : 0),
            inside ? 16 : 0);
  }
#elif W_FAST == 2
  UNROLL
  for (int i = THREAD; i < BK * BN / PIECE; i += N_THREADS) {
    const int row = i / (BN / PIECE), piece = i % (BN / PIECE);
    const int64_t k = k0 + row, column = t->column + piece * PIECE;
    const bool inside = k < a->k && column < a->n;
    copy_16(to + wide_place(row, piece), w + (inside ? t->w + k * a->w_k + column : 0),
            inside ? 16 : 0);
  }
#else
  for (int i = THREAD; i < BN * BK; i += N_THREADS) {
    const int column = i / BK, k = i % BK;
    const bool inside = k0 + k < a->k && t->column + column < a->n;
    const int64_t at = t->w + (k0 + k) * a->w_k + (t->column + column) * a->w_column;
    to[place(column, k / PIECE) + k % PIECE] = inside ? w[at] : (element_t)0;
  }
#endif
}

#define MMA_f16 mma_f16
#define MMA_bf16 mma_bf16
#define MMA_f32 mma_tf32

#if IN_IS_F32
DEVICE uint32_t to_tf32(float x) { return bits_of(round_tf32(x)); }

DEVICE void multiply(float (*sums)[TN][4], const element_t* x, const element_t* w, int down,
                     int right) {
  const int g = LANE / 4, q = LANE % 4;
  UNROLL
  for (int k = 0; k < BK; k += 8) {
    uint32_t u[TM][4], v[TN][2];
    UNROLL
    for (int i = 0; i < TM; i++) UNROLL
    for (int r = 0; r < 4; r++) {
      const int row = down + i * 16 + g + r % 2 * 8, at = k + q + r / 2 * 4;
      u[i][r] = to_tf32(x[place(row, at / PIECE) + at % PIECE]);
    }
    UNROLL
    for (int j = 0; j < TN; j++) UNROLL
    for (int r = 0; r < 2; r++) {
      const int column = right + j * 8 + g, at = k + q + r * 4;
      v[j][r] = to_tf32(W_FAST == 2 ? w[wide_place(at, column / PIECE) + column % PIECE]
                                    : w[place(column, at / PIECE) + at % PIECE]);
    }
    UNROLL
    for (int i = 0; i < TM; i++) UNROLL
    for (int j = 0; j < TN; j++) mma_tf32(sums[i][j], u[i], v[j]);
  }
}
#else
DEVICE void multiply(float (*sums)[TN][4], const element_t* x, const element_t* w, int down,
                     int right) {
  UNROLL
  for (int k = 0; k < BK / 16; k++) {
    uint32_t u[TM][4], v[TN][2];
    UNROLL
    for (int i = 0; i < TM; i++)
      load_matrices(u[i], x + place(down + i * 16 + LANE % 16, k * 2 + LANE / 16));
    UNROLL
    for (int j = 0; j < TN; j += 2) {
      uint32_t r[4];
#if W_FAST == 2
      load_matrices_transposed(
          r, w + wide_place(k * 16 + LANE % 8 + LANE / 8 % 2 * 8, (right + j * 8) / 8 + LANE / 16));
#else
      load_matrices(r, w + place(right + j * 8 + LANE % 8 + LANE / 16 * 8, k * 2 + LANE / 8 % 2));
#endif
      v[j][0] = r[0];
      v[j][1] = r[1];
      v[j + 1][0] = r[2];
      v[j + 1][1] = r[3];
    }
    UNROLL
    for (int i = 0; i < TM; i++) UNROLL
    for (int j = 0; j < TN; j++) JOINED(MMA_, IN)(sums[i][j], u[i], v[j]);
  }
}
#endif

KERNEL(product_mma, product_args_t, N_THREADS) {
  DYNAMIC(element_t, stages);
  SHARED row_t rows[BM];
  const element_t* x = GLOBAL(const element_t, a.x);
  const element_t* w = GLOBAL(const element_t, a.w);
  element_t* x_tiles = stages;
  element_t* w_tiles = stages + STAGES * BM * BK;
  const tile_t t = find_tile(&a, BM, BN);
  const int warp = THREAD / 32, down = warp / WN * (BM / WM), right = warp % WN * (BN / WN);
  float sums[TM][TN][4];
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) UNROLL
  for (int r = 0; r < 4; r++) sums[i][j][r] = 0;
  for (int i = THREAD; i < BM; i += N_THREADS) rows[i] = find_row(&a, &t, t.row + i);
  WAIT_FOR_INPUTS();
  SYNC();
  load_x(&a, rows, x, 0, x_tiles);
  load_w(&a, &t, w, 0, w_tiles);
  COMMIT_COPIES();
  for (int64_t k0 = 0, step = 0; k0 < a.k; k0 += BK, step++) {
    const int now = (int)(step % STAGES), next = 1 - now;
    WAIT_COPIES(0);
    SYNC();
    if (k0 + BK < a.k) {
      load_x(&a, rows, x, k0 + BK, x_tiles + next * BM * BK);
      load_w(&a, &t, w, k0 + BK, w_tiles + next * BN * BK);
    }
    COMMIT_COPIES();
    multiply(sums, x_tiles + now * BM * BK, w_tiles + now * BN * BK, down, right);
  }
  LAUNCH_NEXT();
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) UNROLL
  for (int r = 0; r < 4; r++)
    finish_sum(&a, &t, t.row + down + i * 16 + LANE / 4 + r / 2 * 8,
           t.column + right + j * 8 + 2 * (LANE % 4) + r % 2, sums[i][j][r]);
}
