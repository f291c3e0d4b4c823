// What becomes of a tile's sums on 8-bit integers, which lie in shared memory. Options: those of
// int8_product.h; the kernel says BM x BN, the tile; N_THREADS, which all finish it; and
// SUM_AT(row, column), the place of a sum, INT8_TOGETHER of which lie side by side at a multiple of
// 16 bytes.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_ROWS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_ROWS_H_

#include "int8_product.h"

// So many rows' operands are on their way at once. A function behind sums is long, and is there
// once.
#if END && defined(INT8_HAS_STEPS)
#define ROWS_ON_THEIR_WAY 1
#else
#define ROWS_ON_THEIR_WAY 4
#endif

// INT8_TOGETHER columns of a tile, whose numbers a thread keeps for its rows.
typedef struct columns {
  int64_t at;     // the first one
  int n;          // of them that are there
  bool together;  // all are, and whatever belongs to them is read and stored at once
  uint32_t start[INT8_TOGETHER];
#if END
  float factor[INT8_TOGETHER], shift[INT8_TOGETHER];
#endif
} columns_t;

DEVICE columns_t find_columns(const int8_product_args_t* a, const tile_t* t, int64_t column,
                              int32_t zero_x) {
  enum { STORED = 16 };  // bytes
  const product_args_t* p = &a->product;
  const int64_t left = p->n - column;
  columns_t c;
  c.at = column;
  c.n = left < 0 ? 0 : left < INT8_TOGETHER ? (int)left : INT8_TOGETHER;
  c.together = left >= INT8_TOGETHER && (p->y_row | t->y) % INT8_TOGETHER == 0;
#if END
  c.together &= int8_is_aligned(&a->end, p->y);
#else
  c.together &= p->y % STORED == 0;
#endif
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) {
    const bool there = i < c.n;
    c.start[i] = there ? find_start(a, t, column + i, zero_x) : 0;
#if END
    const int64_t channel = t->matrix * p->bias_step + column + i;
    c.factor[i] = there ? GLOBAL(const float, a->end.factor)[channel] : 0;
    c.shift[i] = there ? GLOBAL(const float, a->end.shift)[channel] : 0;
#endif
  }
  return c;
}

// The rest is of columns that are together.
DEVICE int64_t place_of(const int8_product_args_t* a, const tile_t* t, const columns_t* c,
                        int row) {
  return t->y + (t->row + row) * a->product.y_row + c->at;
}

#if !END
typedef struct int8_words {
  uint32_t none;
} int8_words_t;
#endif
// What belongs to a row besides its sums.
DEVICE void read_row(const int8_product_args_t* a, const tile_t* t, const columns_t* c, int row,
                     int8_words_t* words) {
#if END
  int8_read((index_t)place_of(a, t, c, row), &a->end, words);
#else
  (void)a, (void)t, (void)c, (void)row;
  words->none = 0;
#endif
}

// As finish_integer.
DEVICE void finish_row(const int8_product_args_t* a, const tile_t* t, const columns_t* c, int row,
                       const uint32_t* from, const int8_words_t* words) {
  const product_args_t* p = &a->product;
  const int64_t at = place_of(a, t, c, row);
  uint32_t sums[INT8_TOGETHER];
  READ_16(from, sums);
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) sums[i] += c->start[i];
#if END
  const index_t channel = (index_t)(t->matrix * p->bias_step + c->at);
  float f[INT8_TOGETHER];
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++)
    f[i] = (float)(int32_t)sums[i] * c->factor[i] + c->shift[i];
  int8_finish_all(f, words, (index_t)at, channel, &a->end, p->y);
#else
  (void)words;
  STORE_16(GLOBAL(uint32_t, p->y) + at, sums);
#endif
}

DEVICE void finish_rows(const int8_product_args_t* a, const tile_t* t, int32_t zero_x,
                        const uint32_t* sums) {
  // A thread has the same columns of several rows.
  const int threads = BN / INT8_TOGETHER, rows = N_THREADS / threads;
  const int first = THREAD / threads, across = THREAD % threads * INT8_TOGETHER;
  const int limit = a->product.m - t->row < BM ? (int)(a->product.m - t->row) : BM;
  if (first >= rows || t->column + across >= a->product.n) return;
  const columns_t c = find_columns(a, t, t->column + across, zero_x);
  if (!c.together) {
    ROLLED
    for (int row = first; row < limit; row += rows)
      ROLLED for (int i = 0; i < c.n; i++)
          finish_integer(a, t, t->row + row, c.at + i, zero_x, sums[SUM_AT(row, across + i)]);
    return;
  }
  ROLLED
  for (int row = first; row < limit; row += rows * ROWS_ON_THEIR_WAY) {
    int8_words_t words[ROWS_ON_THEIR_WAY];
    UNROLL
    for (int i = 0; i < ROWS_ON_THEIR_WAY; i++)
      read_row(a, t, &c, row + i * rows < limit ? row + i * rows : row, &words[i]);
    UNROLL
    for (int i = 0; i < ROWS_ON_THEIR_WAY; i++)
      if (row + i * rows < limit)
        finish_row(a, t, &c, row + i * rows, sums + SUM_AT(row + i * rows, across), &words[i]);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_ROWS_H_
