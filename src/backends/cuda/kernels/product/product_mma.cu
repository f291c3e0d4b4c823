// Products by the tensor cores' mma.sync: each sum is one accumulator of float32 over steps of 16
// terms (8 of tf32) in ascending order, whatever the tile is.
//
// Options besides those of product_tiles.h: IN f16, bf16, or f32 (which is rounded to tf32); BM x BN,
// the tile; WM x WN, its warps; STAGES, steps that shared memory has, so that copies of the next
// ones are under way; W_CONSTANT 1: no layer before this one writes the weights.
#include "product.h"

#define N_THREADS (32 * WM * WN)
#define TM (BM / WM / 16)  // matrices of 16 x 8 that a warp makes
#define TN (BN / WN / 8)
#define BK (IN_IS_F32 ? 32 : 64)  // terms of a step: rows of 128 bytes
#define PIECE (IN_IS_F32 ? 4 : 8)

// Rows of 128 bytes; their pieces of 16 bytes change places by the row, so that eight rows lie in
// different banks.
DEVICE int place(int row, int piece) { return row * BK + (piece ^ (row & 7)) * PIECE; }
// The same in rows of BN elements, which have eight pieces at least.
#if W_FAST == 2 && BN < (IN_IS_F32 ? 32 : 64)
#error "rows of columns are too short to change the places of their pieces"
#endif
DEVICE int wide_place(int row, int piece) { return row * BN + (piece ^ (row & 7)) * PIECE; }

#include "product_tiles.h"

// ---- a step's sums ------------------------------------------------------------------------------

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
// What a warp multiplies at once: 16 terms.
typedef struct fragments {
  uint32_t x[TM][4], w[TN][2];
} fragments_t;

DEVICE void load_fragments(const element_t* x, const element_t* w, int down, int right, int k,
                           fragments_t* f) {
  UNROLL
  for (int i = 0; i < TM; i++)
    load_matrices(f->x[i], x + place(down + i * 16 + LANE % 16, k * 2 + LANE / 16));
  UNROLL
  for (int j = 0; j < TN; j += 2) {
    uint32_t r[4];
#if W_FAST == 2
    load_matrices_transposed(
        r, w + wide_place(k * 16 + LANE % 8 + LANE / 8 % 2 * 8, (right + j * 8) / 8 + LANE / 16));
#else
    load_matrices(r, w + place(right + j * 8 + LANE % 8 + LANE / 16 * 8, k * 2 + LANE / 8 % 2));
#endif
    f->w[j][0] = r[0];
    f->w[j][1] = r[1];
    f->w[j + 1][0] = r[2];
    f->w[j + 1][1] = r[3];
  }
}

// The next terms are read while these are multiplied.
DEVICE void multiply(float (*sums)[TN][4], const element_t* x, const element_t* w, int down,
                     int right) {
  fragments_t f[2];
  load_fragments(x, w, down, right, 0, &f[0]);
  UNROLL
  for (int k = 0; k < BK / 16; k++) {
    if (k + 1 < BK / 16) load_fragments(x, w, down, right, k + 1, &f[(k + 1) % 2]);
    UNROLL
    for (int i = 0; i < TM; i++) UNROLL
    for (int j = 0; j < TN; j++) JOINED(MMA_, IN)(sums[i][j], f[k % 2].x[i], f[k % 2].w[j]);
  }
}
#endif

LARGE_KERNEL(product_mma, product_args_t, N_THREADS) {
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
  left_t of_x;
  right_t of_w;
  aim_right(&a, &t, w, 0, &of_w);
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
    multiply(sums, x_tiles + now * BM * BK, w_tiles + now * BN * BK, down, right);
    now = now == STAGES - 1 ? 0 : now + 1;
    to = to == STAGES - 1 ? 0 : to + 1;
  }
  WAIT_COPIES(0);  // of steps past the last one
  // Sums lie where the steps were.
  float* tile = (float*)(void*)stages;
  SYNC();
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) UNROLL
  for (int r = 0; r < 4; r += 2)
    put_sums(tile, down + i * 16 + LANE / 4 + r * 4, right + j * 8 + 2 * (LANE % 4), sums[i][j][r],
             sums[i][j][r + 1]);
  SYNC();
  finish_tile(&a, &t, tile, THREAD);
}
