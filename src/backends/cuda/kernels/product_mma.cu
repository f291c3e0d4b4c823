// Products by the tensor cores' mma.sync: each sum is one accumulator of float32 over steps of 16
// terms (8 of tf32) in ascending order, whatever the tile is.
//
// Options besides those of product.h: IN f16, bf16, or f32 (which is rounded to tf32); BM x BN, the
// tile; WM x WN, its warps; X_FAST 1: rows of the left side begin at multiples of 16 bytes, and
// eight terms lie side by side (of one tap, with CONV), four of f32; W_FAST 1: so do terms of a
// column, 2: so do columns of a term, 0: neither; STAGES, steps that shared memory has, so that
// copies of the next ones are under way; W_CONSTANT 1: no layer before this one writes the weights.
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

typedef ELEMENT(IN) element_t;

// The piece of 16 bytes of each row that a thread copies, or the term: the same one in all rows.
#if X_FAST
#define X_WIDTH 8
#define X_TERMS PIECE
#else
#define X_WIDTH BK
#define X_TERMS 1
#define LOADS (BM * BK / N_THREADS)
#define AT_ONCE (LOADS < 8 ? LOADS : 8)  // loads of a thread under way
#endif
#if N_THREADS % X_WIDTH || (!X_FAST && LOADS % AT_ONCE)
#error "threads do not share the left side out evenly"
#endif

// The left side of a step: `term` is the thread's.
DEVICE void load_x(const product_args_t* a, const row_t* rows, const term_t* term, bool inside,
                   const element_t* x, element_t* to) {
  const int place_in = THREAD % X_WIDTH;
#if X_FAST
  UNROLL
  for (int row = THREAD / X_WIDTH; row < BM; row += N_THREADS / X_WIDTH) {
    const int64_t at = inside ? element_of(a, &rows[row], term) : -1;
    copy_16(to + place(row, place_in), x + (at < 0 ? 0 : at), at < 0 ? 0 : 16);
  }
#else
  for (int i = THREAD; i < BM * BK; i += N_THREADS * AT_ONCE) {
    element_t loaded[AT_ONCE];
    UNROLL
    for (int j = 0; j < AT_ONCE; j++) {
      const int row = (i + j * N_THREADS) / BK;
      const int64_t at = inside ? element_of(a, &rows[row], term) : -1;
      loaded[j] = at < 0 ? (element_t)0 : x[at];
    }
    UNROLL
    for (int j = 0; j < AT_ONCE; j++)
      to[place((i + j * N_THREADS) / BK, place_in / PIECE) + place_in % PIECE] = loaded[j];
  }
#endif
}

DEVICE void load_w(const product_args_t* a, const tile_t* t, const element_t* w, int64_t k0,
                   element_t* to) {
#if W_FAST == 1
  const int64_t k = k0 + THREAD % 8 * PIECE;
  UNROLL
  for (int row = THREAD / 8; row < BN; row += N_THREADS / 8) {
    const int64_t column = t->column + row;
    const bool inside = k < a->k && column < a->n;
    copy_16(to + place(row, THREAD % 8), w + (inside ? t->w + column * a->w_column + k : 0),
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
#if W_CONSTANT
  UNROLL
  for (int s = 0; s < STAGES - 1; s++) load_w(&a, &t, w, s * BK, w_tiles + s * BN * BK);
#endif
  SYNC();
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  // Steps are loaded STAGES - 1 before they are multiplied.
  int64_t loaded = 0;
  int to = 0, now = 0;
  term_t term = term_at(&a, THREAD % X_WIDTH * X_TERMS);
  int64_t k = THREAD % X_WIDTH * X_TERMS;  // of the term
  for (int s = 0; s < STAGES - 1; s++) {
    load_x(&a, rows, &term, k < a.k, x, x_tiles + to * BM * BK);
    if (!W_CONSTANT) load_w(&a, &t, w, loaded, w_tiles + to * BN * BK);
    COMMIT_COPIES();
    next_term(&a, &term, BK);
    k += BK, loaded += BK, to++;
  }
  for (int64_t k0 = 0; k0 < a.k; k0 += BK) {
    WAIT_COPIES(STAGES - 2);
    SYNC();
    if (loaded < a.k) {
      load_x(&a, rows, &term, k < a.k, x, x_tiles + to * BM * BK);
      load_w(&a, &t, w, loaded, w_tiles + to * BN * BK);
      next_term(&a, &term, BK);
      k += BK, loaded += BK;
      to = to == STAGES - 1 ? 0 : to + 1;
    }
    COMMIT_COPIES();
    multiply(sums, x_tiles + now * BM * BK, w_tiles + now * BN * BK, down, right);
    now = now == STAGES - 1 ? 0 : now + 1;
  }
  WAIT_COPIES(0);  // of steps past the last one
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) UNROLL
  for (int r = 0; r < 4; r++)
    finish_sum(&a, &t, t.row + down + i * 16 + LANE / 4 + r / 2 * 8,
           t.column + right + j * 8 + 2 * (LANE % 4) + r % 2, sums[i][j][r]);
}
