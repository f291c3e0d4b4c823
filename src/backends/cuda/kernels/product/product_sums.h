// What becomes of a tile's sums, which lie in shared memory, where they are floats (OUT). Options:
// those of product.h; the kernel says BM x BN, the tile, and N_THREADS; all of them finish it,
// unless it says how many (FINISH_THREADS), and all of its columns, unless it says of how many sums
// lie there at a time (FINISH_COLUMNS). BIAS_BEHIND: the bias is one more row behind those,
// where it is sooner had.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_

#include "product.h"

#ifndef FINISH_THREADS
#define FINISH_THREADS N_THREADS
#endif
#ifndef FINISH_COLUMNS
#define FINISH_COLUMNS BN
#endif

// Sums of a row, and as many that nobody has as keep the pairs of eight rows in different banks.
#define SUM_STEP (FINISH_COLUMNS + 8)
// Two sums that lie side by side, from an even column on, by their bits.
DEVICE void put_words(void* tile, int row, int column, uint32_t low, uint32_t high) {
  const uint32_t words[2] = {low, high};
  WRITE_8((uint32_t*)tile + row * SUM_STEP + column, words);
}
DEVICE void put_sums(float* tile, int row, int column, float low, float high) {
  put_words(tile, row, column, bits_of(low), bits_of(high));
}

#ifdef OUT  // sums are floats

// What comes after sums may be long: it is there once, and not for each sum of a thread, which the
// kernel has put into shared memory (put_sums). Where it is short, more of them are on their way.
#if EPILOGUE && !PROGRAM_IS_SHORT
#define FINISH ROLLED
#else
#define FINISH UNROLL_4
#endif

// Words of bits, TOGETHER a row, of what a thread finishes: one where that is enough, as registers
// have no numbers.
#define ROWS_AT_ONCE (FINISH_THREADS / (FINISH_COLUMNS / TOGETHER))
#define OPEN_WORDS (BM * TOGETHER <= 64 * ROWS_AT_ONCE ? 1 : 2)

#ifdef GATE
// Of so many columns of either half, from one of the output on.
DEVICE void take_halves_of_bias(const product_args_t* a, int64_t column, int n, float* bias) {
  const float* from = GLOBAL(const float, a->bias) + column;
  if (!a->bias) return;
  UNROLL
  for (int i = 0; i < TOGETHER; i++) {
    if (i >= n) continue;
    bias[i] = from[i];
    bias[TOGETHER + i] = from[a->y_row + i];
  }
}

// `thread` of those that finish it. The product is one matrix.
DEVICE void finish_tile(const product_args_t* a, const tile_t* t, const float* sums, int thread) {
  // A thread has the same columns of several rows.
  const int threads = FINISH_COLUMNS / 2 / TOGETHER, rows = FINISH_THREADS / threads;
  const int first = thread / threads, across = thread % threads * TOGETHER;
  const int64_t column = t->column / 2 + across, left = a->y_row - column;
  const int n = left < TOGETHER ? (int)left : TOGETHER;
  float bias[2 * TOGETHER] = {0};
  if (first >= rows || left <= 0) return;
  take_halves_of_bias(a, column, n, bias);
  sums += across / PRODUCT_GATED * 2 * PRODUCT_GATED + across % PRODUCT_GATED;
  FINISH
  for (int row = first; row < BM; row += rows) {
    float halves[2 * TOGETHER];
    if (t->row + row >= a->m) continue;
    UNROLL
    for (int i = 0; i < 2 * TOGETHER; i += 4)
      read_four(sums + row * SUM_STEP + i / TOGETHER * PRODUCT_GATED + i % TOGETHER, halves + i);
    UNROLL
    for (int i = 0; i < 2 * TOGETHER; i++)
      halves[i] = ROUND(GATE)(a->bias ? halves[i] + bias[i] : halves[i]);
    store_sums(a, t->row + row, column, n, halves);
  }
}
#else
#if PROGRAM_IS_ROUGH
#if BM * FINISH_COLUMNS > \
    128 * (FINISH_THREADS / (FINISH_COLUMNS / TOGETHER)) * (FINISH_COLUMNS / TOGETHER)
#error "a thread has more sums than bits"
#endif
// Lanes take one each at a time, wherever it is.
DEVICE void finish_all_open(const product_args_t* a, const tile_t* t, const ending_t* e,
                            const float* sums, int thread, uint64_t* open) {
  const int threads = FINISH_COLUMNS / TOGETHER, rows = FINISH_THREADS / threads;
  const int first = thread / threads, across = thread % threads * TOGETHER;
  ROLLED
  for (int word = 0; word < OPEN_WORDS; word++)
    while (open[word]) {
      const int i = word * 64 + lowest_bit(open[word]);
      const int row = first + i / TOGETHER * rows, column = across + i % TOGETHER;
      float bias = 0;
      open[word] &= open[word] - 1;
      if (a->bias)
        bias = GLOBAL(const float, a->bias)[t->matrix * a->bias_step + t->column + column];
      finish_open(a, e, t->row + row, t->column + column, sums[row * SUM_STEP + column], bias);
    }
}
#else
DEVICE void finish_all_open(const product_args_t* a, const tile_t* t, const ending_t* e,
                            const float* sums, int thread, uint64_t* open) {
  (void)a, (void)t, (void)e, (void)sums, (void)thread, (void)open;
}
#endif

#if !EPILOGUE
// Rows of which no two begin at vectors of their own: lanes write what lies side by side.
DEVICE void finish_each(const product_args_t* a, const tile_t* t, const float* sums, int thread) {
  enum { OF_LANE = (FINISH_COLUMNS + WARP - 1) / WARP };
  const int64_t left = a->n - t->column;
  float bias[OF_LANE];
  UNROLL
  for (int i = 0; i < OF_LANE; i++) {
    const int64_t column = i * WARP + LANE;
    bias[i] = a->bias && column < left
                  ? GLOBAL(const float, a->bias)[t->matrix * a->bias_step + t->column + column]
                  : 0;
  }
  ROLLED
  for (int row = thread / WARP; row < BM && t->row + row < a->m; row += FINISH_THREADS / WARP) {
    ELEMENT(OUT)* y = GLOBAL(ELEMENT(OUT), a->y) + (t->y + (t->row + row) * a->y_row + t->column);
    UNROLL
    for (int i = 0; i < OF_LANE; i++) {
      const int column = i * WARP + LANE;
      if (column >= FINISH_COLUMNS || column >= left) continue;
      const float sum = sums[row * SUM_STEP + column];
      STORE(OUT)(y, column, ROUNDED(a->bias ? sum + bias[i] : sum));
    }
  }
}
#endif

// `thread` of those that finish it.
DEVICE void finish_tile(const product_args_t* a, const tile_t* t, const float* sums, int thread) {
  const ending_t e = find_ending(a, t);
  // A thread has the same columns of several rows.
  const int threads = FINISH_COLUMNS / TOGETHER, rows = FINISH_THREADS / threads;
  const int first = thread / threads, across = thread % threads * TOGETHER;
  const int64_t column = t->column + across;
  float bias[TOGETHER] = {0};
  uint64_t open[OPEN_WORDS] = {0};
#if !EPILOGUE
  if (a->y_row % 2) {
    finish_each(a, t, sums, thread);
    return;
  }
#endif
  if (first >= rows || column >= a->n) return;
#ifdef BIAS_BEHIND
  UNROLL
  for (int j = 0; j < TOGETHER; j += 4) read_four(sums + BM * SUM_STEP + across + j, bias + j);
#else
  take_bias(a, t, column, columns_left(a, column), bias);
#endif
  FINISH
  for (int row = first, i = 0; row < BM; row += rows, i += TOGETHER) {
    float together[TOGETHER];
    UNROLL
    for (int j = 0; j < TOGETHER; j += 4)
      read_four(sums + row * SUM_STEP + across + j, together + j);
    const uint64_t left = finish_together(a, &e, t->row + row, column, bias, together);
    open[OPEN_WORDS > 1 && i >= 64] |= left << (i & 63);
  }
  finish_all_open(a, t, &e, sums, thread, open);
}
#endif  // GATE
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
