// Products on 8-bit integers by the tensor cores' mma.sync: sums of bytes, exact modulo 2^32, and
// from them what the zero points make of them.
//
//   sum (x - zx) (w - zw) = sum x w - zx sum (w - zw) - zw sum x
//
// Of constant weights the second sum is known before (with a zero point of x that is known, it is
// part of `start`); else both are made by tensor cores as well, of a matrix of ones. Where windows
// reach out of the image, x is its zero point.
//
// Options besides those of int8_product.h: BM x BN, the tile; WM x WN, its warps; X_PIECE: so many
// terms of a row lie side by side (of one tap, with CONV), at a multiple of so many bytes: 16, 8, 4
// or 1; W_PIECE likewise, of a column; 1: W_ALONG_K 0: neighbouring columns lie side by side;
// W_KNOWN 1: weights are constants; W_ZEROS 1: they have zero points; W_TYPE: int8_t or uint8_t.
#include "int8_product.h"

#define N_THREADS (32 * WM * WN)
#define TM (BM / WM / 16)  // matrices of 16 x 8 that a warp makes
#define TN (BN / WN / 8)
#define BK 128  // terms of a step: rows of 128 bytes
#define WORDS (BK / 4)
#define STAGES 2
#define TAKEN 32  // terms that an instruction takes
#define X_SUMS (!W_KNOWN || W_ZEROS)

#if IS_SIGNED(X_TYPE) && IS_SIGNED(W_TYPE)
#define MMA mma_s8
#elif IS_SIGNED(X_TYPE)
#define MMA mma_s8u8
#elif IS_SIGNED(W_TYPE)
#define MMA mma_u8s8
#else
#define MMA mma_u8
#endif

// Rows of 128 bytes; their pieces of 16 bytes change places by the row, so that eight rows lie in
// different banks.
DEVICE int place(int row, int piece) { return row * WORDS + (piece ^ (row & 7)) * 4; }
DEVICE int word_place(int row, int word) { return place(row, word / 4) + word % 4; }

DEVICE uint32_t four_times(int32_t x) { return (uint32_t)(x & 255) * 0x01010101u; }

#if X_PIECE > 1
#define COPY JOINED(copy_, X_PIECE)

// A thread brings the same terms of several rows. Those that no product takes stay away.
DEVICE void load_x(const product_args_t* a, const row_t* rows, int64_t k0, uint32_t zeros,
                   uint32_t* to) {
  enum { ACROSS = BK / X_PIECE, DOWN = N_THREADS / ACROSS, PIECE_WORDS = X_PIECE / 4 };
  const uint8_t* x = GLOBAL(const uint8_t, a->x);
  const int across = THREAD % ACROSS;
  const int64_t k = k0 + across * X_PIECE, taken = (a->k - k0 + TAKEN - 1) / TAKEN * TAKEN;
  const term_t term = term_at(a, k < a->k ? k : 0);
  if (across * X_PIECE >= taken) return;
  UNROLL
  for (int row = THREAD / ACROSS; row < BM; row += DOWN) {
    const int64_t at = k < a->k ? element_of(a, &rows[row], &term) : -1;
    uint32_t* piece = to + word_place(row, across * PIECE_WORDS);
    if (CONV && k < a->k && at < 0) {
      UNROLL
      for (int i = 0; i < PIECE_WORDS; i++) piece[i] = zeros;
    } else {
      COPY(piece, x + (at < 0 ? 0 : at), at < 0 ? 0 : X_PIECE);
    }
  }
}
#else
// Terms from k on; what is no term is 0, also in sums of x.
DEVICE void load_x(const product_args_t* a, const row_t* rows, int64_t k0, uint32_t zeros,
                   uint32_t* to) {
  const uint8_t* x = GLOBAL(const uint8_t, a->x);
  ROLLED
  for (int i = THREAD; i < BM * WORDS; i += N_THREADS) {
    const row_t* row = &rows[i / WORDS];
    const int64_t k = k0 + i % WORDS * 4;
    uint32_t word = 0;
    ROLLED
    for (int b = 0; b < 4 && k + b < a->k; b++) {
      const int64_t at = find_term(a, row, k + b);
      const uint32_t byte = at < 0 ? zeros & 255 : x[at];
      word |= byte << (8 * b);
    }
    to[word_place(i / WORDS, i % WORDS)] = word;
  }
}
#endif

DEVICE void load_w(const product_args_t* a, const tile_t* t, int64_t k0, uint32_t* to) {
  const uint8_t* w = GLOBAL(const uint8_t, a->w);
#if W_PIECE == 16
  const int64_t k = k0 + THREAD % 8 * 16;
  const int64_t first = t->w + t->column * a->w_column + k;
  const int columns = k >= a->k ? 0 : a->n - t->column < BN ? (int)(a->n - t->column) : BN;
  UNROLL
  for (int i = THREAD; i < BN * 8; i += N_THREADS) {
    const bool inside = i / 8 < columns;
    copy_16(to + place(i / 8, i % 8), w + (inside ? first + i / 8 * a->w_column : 0),
            inside ? 16 : 0);
  }
#else
  ROLLED
  for (int i = THREAD; i < BN * WORDS; i += N_THREADS) {
    const int column = W_ALONG_K ? i / WORDS : i % BN, place = W_ALONG_K ? i % WORDS : i / BN;
    const int64_t k = k0 + place * 4;
    const uint8_t* from = w + t->w + (t->column + column) * a->w_column + k * a->w_k;
    const int64_t left = t->column + column < a->n ? a->k - k : 0;
    uint32_t word = 0;
    UNROLL
    for (int b = 0; b < 4; b++)
      if (b < left) word |= (uint32_t)from[b * a->w_k] << (8 * b);
    to[word_place(column, place)] = word;
  }
#endif
}

typedef struct sums {
  int32_t both[TM][TN][4];
#if X_SUMS
  int32_t x[TM][4];
#endif
#if !W_KNOWN
  int32_t w[TN][4];
#endif
} sums_t;

DEVICE void multiply(sums_t* s, const uint32_t* x, const uint32_t* w, int down, int right,
                     int left) {
  const uint32_t ones[4] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};
  (void)ones;
  UNROLL
  for (int k = 0; k < BK / TAKEN; k++) {
    uint32_t u[TM][4], v[TN][2];
    if (k * TAKEN >= left) break;
    UNROLL
    for (int i = 0; i < TM; i++)
      load_matrices(u[i], x + place(down + i * 16 + LANE % 16, k * 2 + LANE / 16));
    UNROLL
    for (int j = 0; j < TN; j += 2) {
      uint32_t r[4];
      load_matrices(r, w + place(right + j * 8 + LANE % 8 + LANE / 16 * 8, k * 2 + LANE / 8 % 2));
      v[j][0] = r[0];
      v[j][1] = r[1];
      v[j + 1][0] = r[2];
      v[j + 1][1] = r[3];
    }
    UNROLL
    for (int i = 0; i < TM; i++) {
      UNROLL
      for (int j = 0; j < TN; j++) MMA(s->both[i][j], u[i], v[j]);
#if X_SUMS
      MMA(s->x[i], u[i], ones);
#endif
    }
#if !W_KNOWN
    UNROLL
    for (int j = 0; j < TN; j++) MMA(s->w[j], ones, v[j]);
#endif
  }
}

DEVICE void clear(sums_t* s) {
  UNROLL
  for (int r = 0; r < 4; r++) {
    UNROLL
    for (int i = 0; i < TM; i++) {
      UNROLL
      for (int j = 0; j < TN; j++) s->both[i][j][r] = 0;
#if X_SUMS
      s->x[i][r] = 0;
#endif
    }
#if !W_KNOWN
    UNROLL
    for (int j = 0; j < TN; j++) s->w[j][r] = 0;
#endif
  }
}

// What zero points make of a sum, as far as that is not known before. column: of those of all
// matrices; -1: past the last.
DEVICE uint32_t exact(const int8_product_args_t* a, int64_t column, int32_t zero_x, const sums_t* s,
                      int i, int j, int r) {
  uint32_t sum = (uint32_t)s->both[i][j][r];
  const bool inside = column >= 0;
  (void)a, (void)zero_x, (void)inside;
#if !W_KNOWN
  const uint32_t rest = (uint32_t)s->x[i][r] - (uint32_t)zero_x * (uint32_t)a->product.k;
  sum -= (uint32_t)zero_x * (uint32_t)s->w[j][r] + (uint32_t)a->zero_w * rest;
#else
#if W_ZEROS
  if (inside) sum -= GLOBAL(const uint32_t, a->zeros)[column] * (uint32_t)s->x[i][r];
#endif
#endif
  return sum;
}

// Where a sum lies between the two parts of the kernel.
#define SUM_AT(row, column) ((row)*BN + ((column) ^ ((row)&7) * 8))
#include "int8_rows.h"

LARGE_KERNEL(int8_mma, int8_product_args_t, N_THREADS) {
  DYNAMIC(uint32_t, stages);
  SHARED row_t rows[BM];
  const product_args_t* p = &a.product;
  uint32_t* x_tiles = stages;
  uint32_t* w_tiles = stages + STAGES * BM * WORDS;
  const tile_t t = find_tile(p, BM, BN);
  const int warp = THREAD / 32, down = warp / WN * (BM / WM), right = warp % WN * (BN / WN);
  sums_t sums;
  clear(&sums);
  for (int i = THREAD; i < BM; i += N_THREADS) rows[i] = find_row(p, &t, t.row + i);
  WAIT_FOR_INPUTS();
  const int32_t zero_x = find_zero(&a);
  SYNC();
  load_x(p, rows, 0, four_times(zero_x), x_tiles);
  load_w(p, &t, 0, w_tiles);
  COMMIT_COPIES();
  for (int64_t k0 = 0, step = 0; k0 < p->k; k0 += BK, step++) {
    const int now = (int)(step % STAGES), next = 1 - now;
    WAIT_COPIES(0);
    SYNC();
    if (k0 + BK < p->k) {
      load_x(p, rows, k0 + BK, four_times(zero_x), x_tiles + next * BM * WORDS);
      load_w(p, &t, k0 + BK, w_tiles + next * BN * WORDS);
    }
    COMMIT_COPIES();
    multiply(&sums, x_tiles + now * BM * WORDS, w_tiles + now * BN * WORDS, down, right,
             p->k - k0 < BK ? (int)(p->k - k0) : BK);
  }
  LAUNCH_NEXT();
  WAIT_COPIES(0);
  SYNC();
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) UNROLL
  for (int r = 0; r < 4; r++) {
    const int row = down + i * 16 + LANE / 4 + r / 2 * 8;
    const int column = right + j * 8 + 2 * (LANE % 4) + r % 2;
    const int64_t at = t.column + column < p->n ? t.matrix * a.step + t.column + column : -1;
    stages[SUM_AT(row, column)] = exact(&a, at, zero_x, &sums, i, j, r);
  }
  SYNC();
  columns_t c = find_columns(&a, &t);
  rows_t r = find_rows(&a, &t, &c);
  finish_rows(&a, &t, &c, &r, zero_x, stages);
}
