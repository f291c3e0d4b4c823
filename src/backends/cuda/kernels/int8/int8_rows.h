// What becomes of a tile's sums on 8-bit integers, which lie in shared memory. Options: those of
// int8_product.h; the kernel says BM x BN, the tile; N_THREADS, which all finish it; SUM_AT(row,
// column), the place of a sum, INT8_TOGETHER of which lie side by side at a multiple of 16 bytes;
// and SPLIT, the blocks of a cluster whose sums it is the sum of, where they are several.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_ROWS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_ROWS_H_

#include "int8_product.h"

#ifndef SPLIT
#define SPLIT 1
#endif
#define FINISH_ROWS (BM / SPLIT)  // of a block

// Threads that have the rows' sums of all columns, and rows that they have at once: a power of 2,
// so that each thread has as many.
#define ROW_THREADS (BN / INT8_TOGETHER)
#define ROWS_FITTING (N_THREADS / ROW_THREADS)
#define ROWS_AT_ONCE         \
  (ROWS_FITTING >= 32   ? 32 \
   : ROWS_FITTING >= 16 ? 16 \
   : ROWS_FITTING >= 8  ? 8  \
   : ROWS_FITTING >= 4  ? 4  \
   : ROWS_FITTING >= 2  ? 2  \
                        : 1)
// So many rows of a thread are on their way at once: else all that a row takes waits for itself
// where few warps have a tile. A function behind sums is long, and is there once.
#if END && defined(INT8_HAS_STEPS) && !HAS_CELLS
#define ROWS_HAVE_STEPS 1
#define ROWS_ON_THEIR_WAY 1
#else
#define ROWS_HAVE_STEPS 0
#define ROWS_ON_THEIR_WAY \
  (FINISH_ROWS >= 4 * ROWS_AT_ONCE ? 4 : FINISH_ROWS >= 2 * ROWS_AT_ONCE ? 2 : 1)
#endif

#if !END
typedef int64_t index_t;
typedef struct int8_words {
  uint32_t none;
} int8_words_t;
#endif

// INT8_TOGETHER columns of a tile, whose numbers a thread keeps for its rows.
typedef struct columns {
  int first, n;  // in the tile; how many of them are there
  uint32_t start[INT8_TOGETHER];
#if END
  uint32_t factor[INT8_TOGETHER], shift[INT8_TOGETHER];  // bits
#endif
} columns_t;

// The numbers of n of INT8_TOGETHER columns; 0 of others, and where there are none.
DEVICE void read_numbers(address_t from, int64_t at, int n, uint32_t* to) {
  const uint32_t* p = GLOBAL(const uint32_t, from) + (from ? at : 0);
  if (from && n == INT8_TOGETHER && (from + (address_t)at * sizeof *p) % 16 == 0) {
    READ_16(p, to);
    return;
  }
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) to[i] = from && i < n ? p[i] : 0;
}

// All that is constant, so that it is there before the sums are.
DEVICE columns_t find_columns(const int8_product_args_t* a, const tile_t* t) {
  const product_args_t* p = &a->product;
  columns_t c;
  c.first = THREAD % ROW_THREADS * INT8_TOGETHER;
  const int64_t column = t->column + c.first, left = p->n - column;
  c.n = left < 0 ? 0 : left < INT8_TOGETHER ? (int)left : INT8_TOGETHER;
  read_numbers(a->start, t->matrix * a->step + column, c.n, c.start);
#if END
  const int64_t channel = t->matrix * p->bias_step + column;
  read_numbers(a->end.factor, channel, c.n, c.factor);
  read_numbers(a->end.shift, channel, c.n, c.shift);
#endif
  return c;
}

// Takes off what is due for x's zero point where that is read.
DEVICE void take_due(const int8_product_args_t* a, const tile_t* t, int32_t zero_x, columns_t* c) {
#if ZERO_READ
  uint32_t due[INT8_TOGETHER];
  read_numbers(a->due, t->matrix * a->step + t->column + c->first, c->n, due);
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) c->start[i] -= (uint32_t)zero_x * due[i];
#else
  (void)a, (void)t, (void)zero_x, (void)c;
#endif
}

// Whether all columns are there, and whatever belongs to them is read and stored at once.
DEVICE bool are_together(const int8_product_args_t* a, const tile_t* t, const columns_t* c) {
  const product_args_t* p = &a->product;
#if END
  const bool aligned = int8_is_aligned(&a->end, p->y);
#else
  const bool aligned = p->y % 16 == 0;
#endif
  return aligned && c->n == INT8_TOGETHER && (p->y_row | t->y) % INT8_TOGETHER == 0;
}

// The rows of a thread, of the same columns: from the first one on every ROWS_AT_ONCE-th.
typedef struct rows {
  int first, limit;
  bool together;
  int8_words_t words[ROWS_ON_THEIR_WAY];  // of the next ones; with ROWS_AHEAD
} rows_t;

// Whether what rows read besides their sums is asked for while those before become what they
// become; and the first of it before sums are there: where that takes few registers.
#define ROWS_AHEAD (!ROWS_HAVE_STEPS)
#define ROWS_EARLY (ROWS_AHEAD && BN <= 96)
// The same of what belongs to columns; all of it is constant.
#define COLUMNS_EARLY (BM * BN != 128 * 128)

// Of this row on. Behind the last row it comes again, and becomes what it did.
DEVICE void find_places(const int8_product_args_t* a, const tile_t* t, const columns_t* c,
                        const rows_t* r, int row, int* of, index_t* at) {
  const product_args_t* p = &a->product;
  const index_t from = (index_t)(t->y + t->row * p->y_row + t->column + c->first);
  UNROLL
  for (int i = 0; i < ROWS_ON_THEIR_WAY; i++) {
    of[i] = row + i * ROWS_AT_ONCE < r->limit ? row + i * ROWS_AT_ONCE : row;
    at[i] = from + (index_t)of[i] * (index_t)p->y_row;
  }
}

DEVICE void read_words(const int8_product_args_t* a, const index_t* at, int8_words_t* words) {
  UNROLL
  for (int i = 0; i < ROWS_ON_THEIR_WAY; i++) {
#if END
    int8_read(at[i], &a->end, &words[i]);
#else
    (void)a, (void)at;
    words[i].none = 0;
#endif
  }
}

// Behind WAIT_FOR_INPUTS.
DEVICE rows_t find_rows(const int8_product_args_t* a, const tile_t* t, const columns_t* c) {
  const int begin = SPLIT > 1 ? (int)CLUSTER_RANK * FINISH_ROWS : 0, end = begin + FINISH_ROWS;
  rows_t r;
  r.first = begin + THREAD / ROW_THREADS;
  r.limit = a->product.m - t->row < end ? (int)(a->product.m - t->row) : end;
  if (r.first >= begin + ROWS_AT_ONCE || c->n == 0) r.limit = 0;
  r.together = are_together(a, t, c);
  if (ROWS_AHEAD && r.together && r.first < r.limit) {
    int of[ROWS_ON_THEIR_WAY];
    index_t at[ROWS_ON_THEIR_WAY];
    find_places(a, t, c, &r, r.first, of, at);
    read_words(a, at, r.words);
  }
  return r;
}

// Sums of INT8_TOGETHER columns.
DEVICE void read_sums(const uint32_t* sums, int row, int column, uint32_t* to) {
  const uint32_t* at = sums + SUM_AT(row, column);
#if SPLIT > 1
  uint32_t parts[SPLIT][INT8_TOGETHER];
  UNROLL
  for (uint32_t i = 0; i < SPLIT; i++) READ_16_OF(i, at, parts[i]);
  UNROLL
  for (int k = 0; k < INT8_TOGETHER; k++) {
    to[k] = parts[0][k];
    UNROLL
    for (int i = 1; i < SPLIT; i++) to[k] += parts[i][k];
  }
#else
  READ_16(at, to);
#endif
}

// As finish_integer, of sums that lie together.
DEVICE void finish_places(const int8_product_args_t* a, const tile_t* t, const columns_t* c,
                          const uint32_t* sums, const int8_words_t* words, const index_t* at) {
  const product_args_t* p = &a->product;
#if END
  const index_t channel = (index_t)(t->matrix * p->bias_step + t->column + c->first);
  float f[ROWS_ON_THEIR_WAY * INT8_TOGETHER];
  UNROLL
  for (int i = 0; i < ROWS_ON_THEIR_WAY * INT8_TOGETHER; i++) {
    const int k = i % INT8_TOGETHER;
    f[i] = (float)(int32_t)(sums[i] + c->start[k]) * float_of(c->factor[k]) + float_of(c->shift[k]);
  }
  int8_finish_places(f, words, at, ROWS_ON_THEIR_WAY, channel, &a->end, p->y);
#else
  (void)t, (void)words;
  UNROLL
  for (int i = 0; i < ROWS_ON_THEIR_WAY; i++) {
    uint32_t made[INT8_TOGETHER];
    UNROLL
    for (int k = 0; k < INT8_TOGETHER; k++) made[k] = sums[i * INT8_TOGETHER + k] + c->start[k];
    STORE_16(GLOBAL(uint32_t, p->y) + at[i], made);
  }
#endif
}

DEVICE void finish_each(const int8_product_args_t* a, const tile_t* t, const columns_t* c,
                        int32_t zero_x, const uint32_t* sums, int row, int limit) {
  ROLLED
  for (; row < limit; row += ROWS_AT_ONCE) {
    uint32_t read[INT8_TOGETHER];
    read_sums(sums, row, c->first, read);
    ROLLED
    for (int i = 0; i < c->n; i++) {
      uint32_t sum = read[0];
      UNROLL
      for (int k = 1; k < INT8_TOGETHER; k++) sum = k == i ? read[k] : sum;
      finish_integer(a, t, t->row + row, t->column + c->first + i, zero_x, sum);
    }
  }
}

DEVICE void finish_rows(const int8_product_args_t* a, const tile_t* t, columns_t* c, rows_t* r,
                        int32_t zero_x, const uint32_t* sums) {
  enum { STEP = ROWS_AT_ONCE * ROWS_ON_THEIR_WAY };
  if (!r->together) {
    finish_each(a, t, c, zero_x, sums, r->first, r->limit);
    return;
  }
  take_due(a, t, zero_x, c);
  ROLLED
  for (int row = r->first; row < r->limit; row += STEP) {
    int of[ROWS_ON_THEIR_WAY];
    index_t at[ROWS_ON_THEIR_WAY];
    uint32_t read[ROWS_ON_THEIR_WAY * INT8_TOGETHER];
    int8_words_t words[ROWS_ON_THEIR_WAY];
    find_places(a, t, c, r, row, of, at);
    UNROLL
    for (int i = 0; i < ROWS_ON_THEIR_WAY; i++) {
      words[i] = r->words[i];
      read_sums(sums, of[i], c->first, read + i * INT8_TOGETHER);
    }
    if (!ROWS_AHEAD) {
      read_words(a, at, words);
    } else if (row + STEP < r->limit) {
      int next[ROWS_ON_THEIR_WAY];
      index_t next_at[ROWS_ON_THEIR_WAY];
      find_places(a, t, c, r, row + STEP, next, next_at);
      read_words(a, next_at, r->words);
    }
    finish_places(a, t, c, read, words, at);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_ROWS_H_
