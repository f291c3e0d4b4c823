// What becomes of a tile's sums, which lie in shared memory, where they are floats (OUT). Options:
// those of product.h; the kernel says BM x BN, the tile, and N_THREADS; all of them finish it,
// unless it says how many (FINISH_THREADS), and all of its columns, unless it says of how many sums
// lie there at a time (FINISH_COLUMNS). BIAS_BEHIND: the bias is one more row behind those,
// where it is sooner had. FINISH_SYNC: how all that finish a tile meet, where the kernel may have a
// list of what they leave open. MEET_BEFORE: how they meet before they read sums, where these are
// not there yet.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_

#include "product.h"

#ifndef FINISH_THREADS
#define FINISH_THREADS N_THREADS
#endif
#ifndef FINISH_COLUMNS
#define FINISH_COLUMNS BN
#endif
#ifndef MEET_BEFORE
#define MEET_BEFORE()
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
#if PROGRAM_IS_ROUGH
#if BM * TOGETHER <= 32 * ROWS_AT_ONCE
#define OPEN_BITS 32
typedef uint32_t open_bits_t;
#endif
#endif
#ifndef OPEN_BITS
#define OPEN_BITS 64
typedef uint64_t open_bits_t;
#endif
#define OPEN_WORDS (BM * TOGETHER <= OPEN_BITS * ROWS_AT_ONCE ? 1 : 2)

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
  const bool any = first < rows && left > 0;
  if (any) take_halves_of_bias(a, column, n, bias);
  MEET_BEFORE();
  if (!any) return;
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
DEVICE bool has_open(const open_bits_t* open) { return open[0] || open[OPEN_WORDS - 1]; }

// Takes a thread's first open sum: its row and column in the tile.
DEVICE int take_open(open_bits_t* open, int thread, int* column) {
  const int threads = FINISH_COLUMNS / TOGETHER;
  int i;
  if (OPEN_WORDS > 1 && !open[0]) {
    i = OPEN_BITS + lowest_bit(open[OPEN_WORDS - 1]);
    open[OPEN_WORDS - 1] &= open[OPEN_WORDS - 1] - 1;
  } else {
    i = lowest_bit(open[0]);
    open[0] &= open[0] - 1;
  }
  *column = thread % threads * TOGETHER + i % TOGETHER;
  return thread / threads + i / TOGETHER * ROWS_AT_ONCE;
}

// Lanes take one each at a time, wherever it is.
DEVICE void finish_all_open(const product_args_t* a, const tile_t* t, const ending_t* e,
                            const float* sums, int thread, open_bits_t* open) {
  ROLLED
  while (has_open(open)) {
    int column;
    const int row = take_open(open, thread, &column);
    float bias = 0;
    if (a->bias) bias = GLOBAL(const float, a->bias)[t->matrix * a->bias_step + t->column + column];
    finish_open(a, e, t->row + row, t->column + column, sums[row * SUM_STEP + column], bias);
  }
}
#else
DEVICE void finish_all_open(const product_args_t* a, const tile_t* t, const ending_t* e,
                            const float* sums, int thread, open_bits_t* open) {
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

// What becomes of a thread's sums: the same columns of several rows. open: those that are left
// open.
#if EPILOGUE && PROGRAM_VECTOR > 1
DEVICE void finish_rows(const product_args_t* a, const tile_t* t, const ending_t* e,
                        const float* sums, int first, int across, const float* bias,
                        open_bits_t* open) {
  const int64_t below = a->m - t->row, place = e->place + t->column + across;
  const int end = below < BM ? (int)below : BM, n = columns_left(a, t->column + across);
  const bool whole = are_whole(a, place, n);
  int64_t line = e->line + t->row + first;
  product_word_t* y = find_sums(a, line, place);
  sums += first * SUM_STEP + across;
  FINISH
  for (int row = first, i = 0; row < end; row += ROWS_AT_ONCE, i += TOGETHER) {
    float together[TOGETHER];
    UNROLL
    for (int j = 0; j < TOGETHER; j += 4) read_four(sums + j, together + j);
    if (a->bias) UNROLL
    for (int j = 0; j < TOGETHER; j++) together[j] += bias[j];
    const open_bits_t left = store_at(a, y, line, place, n, whole, together);
    if (OPEN_WORDS > 1 && i >= OPEN_BITS)
      open[OPEN_WORDS - 1] |= left << i % OPEN_BITS;
    else
      open[0] |= left << i % OPEN_BITS;
    line += ROWS_AT_ONCE;
    y += ROWS_AT_ONCE * a->y_row;
    sums += ROWS_AT_ONCE * SUM_STEP;
  }
}
#else
DEVICE void finish_rows(const product_args_t* a, const tile_t* t, const ending_t* e,
                        const float* sums, int first, int across, const float* bias,
                        open_bits_t* open) {
  FINISH
  for (int row = first; row < BM; row += ROWS_AT_ONCE) {
    float together[TOGETHER];
    UNROLL
    for (int j = 0; j < TOGETHER; j += 4)
      read_four(sums + row * SUM_STEP + across + j, together + j);
    (void)finish_together(a, e, t->row + row, t->column + across, bias, together);
  }
  (void)open;
}
#endif

// The tile but for what is left open. The bias is on its way while threads meet.
DEVICE void finish_most(const product_args_t* a, const tile_t* t, const ending_t* e,
                        const float* sums, int thread, open_bits_t* open) {
  const int threads = FINISH_COLUMNS / TOGETHER;
  const int first = thread / threads, across = thread % threads * TOGETHER;
  const int64_t column = t->column + across;
  float bias[TOGETHER] = {0};
  const bool any = first < ROWS_AT_ONCE && column < a->n;
#ifdef BIAS_BEHIND
  UNROLL
  for (int j = 0; j < TOGETHER && any; j += 4)
    read_four(sums + BM * SUM_STEP + across + j, bias + j);
#else
  if (any) take_bias(a, t, column, columns_left(a, column), bias);
#endif
  MEET_BEFORE();
#if !EPILOGUE
  if (a->y_row % 2) {
    finish_each(a, t, sums, thread);
    return;
  }
#endif
  if (any) finish_rows(a, t, e, sums, first, across, bias, open);
}

// `thread` of those that finish it.
DEVICE void finish_tile(const product_args_t* a, const tile_t* t, const float* sums, int thread) {
  const ending_t e = find_ending(a, t);
  open_bits_t open[OPEN_WORDS] = {0};
  finish_most(a, t, &e, sums, thread, open);
  finish_all_open(a, t, &e, sums, thread, open);
}

#endif  // GATE

// ---- a list of open sums ------------------------------------------------------------------------

#ifdef FINISH_SYNC
#define SUMS_BYTES (BM * SUM_STEP * 4)

#if PROGRAM_IS_ROUGH
// In shared memory behind sums: those of any tiles of the product's only matrix that are open, with
// their places in the output. A thread takes one each at a time: in as few rounds as there may be.
typedef struct open_sum {
  float sum;
  index_t place;
} open_sum_t;
enum { OPEN_ROOM = (PRODUCT_OPEN_BYTES - 16) / sizeof(open_sum_t), OPEN_ENOUGH = OPEN_ROOM / 2 };
typedef struct open_list {
  uint32_t count;  // that were to be put there
  uint32_t unused[3];
  open_sum_t sums[OPEN_ROOM];
} open_list_t;

DEVICE open_list_t* list_behind(char* sums) { return (open_list_t*)(void*)(sums + SUMS_BYTES); }

// Whether there is room for a list in so many bytes.
DEVICE bool has_list(int bytes) { return bytes >= SUMS_BYTES + PRODUCT_OPEN_BYTES; }

// By all, before they meet for the first time.
DEVICE void begin_list(char* sums, int thread) {
  if (thread == 0) list_behind(sums)->count = 0;
}

// What finds no room keeps its bit.
DEVICE void put_open(const product_args_t* a, const tile_t* t, const float* sums, int thread,
                     open_bits_t* open, open_list_t* list) {
  ROLLED
  while (has_open(open)) {
    const uint32_t at = atomic_add_u32(&list->count, 1);
    if (at >= OPEN_ROOM) return;
    int column;
    const int row = take_open(open, thread, &column);
    list->sums[at].sum = sums[row * SUM_STEP + column];
    list->sums[at].place = (index_t)((t->row + row) * a->y_row + t->column + column);
  }
}

// Behind a meeting of all that put sums there; it ends with one.
DEVICE void finish_list(const product_args_t* a, open_list_t* list, uint32_t count, int thread) {
  const ending_t e = {0, 0};
  const uint32_t n = count < OPEN_ROOM ? count : OPEN_ROOM;
  ROLLED
  for (uint32_t i = (uint32_t)thread; i < n; i += FINISH_THREADS) {
    const open_sum_t open = list->sums[i];
    const index_t row = open.place / (index_t)a->y_row;
    const index_t column = open.place - row * (index_t)a->y_row;
    const float bias = a->bias ? GLOBAL(const float, a->bias)[column] : 0;
    finish_open(a, &e, (int64_t)row, (int64_t)column, open.sum, bias);
  }
  FINISH_SYNC();
  if (thread == 0) list->count = 0;
  FINISH_SYNC();
}

// All that are left.
DEVICE void end_list(const product_args_t* a, char* sums, int thread) {
  FINISH_SYNC();
  const uint32_t count = list_behind(sums)->count;
  if (count) finish_list(a, list_behind(sums), count, thread);
}

// A tile of the only matrix, as finish_tile. Open sums go to the list; where it is half full, or
// these are the last ones, all that finish the tile take what is there, until all have found room.
// They all come here, and have met at the end.
DEVICE void finish_and_list(const product_args_t* a, const tile_t* t, char* sums, int thread,
                            bool last) {
  const ending_t e = {0, 0};
  open_list_t* list = list_behind(sums);
  open_bits_t open[OPEN_WORDS] = {0};
  uint32_t count;
  finish_most(a, t, &e, (const float*)(void*)sums, thread, open);
  do {
    put_open(a, t, (const float*)(void*)sums, thread, open, list);
    FINISH_SYNC();
    count = list->count;
    if (count > (last ? 0 : OPEN_ENOUGH)) finish_list(a, list, count, thread);
  } while (count > OPEN_ROOM);
}
#else
DEVICE bool has_list(int bytes) {
  (void)bytes;
  return false;
}
DEVICE void begin_list(char* sums, int thread) { (void)sums, (void)thread; }
DEVICE void end_list(const product_args_t* a, char* sums, int thread) {
  (void)a, (void)sums, (void)thread;
}
DEVICE void finish_and_list(const product_args_t* a, const tile_t* t, char* sums, int thread,
                            bool last) {
  (void)last;
  finish_tile(a, t, (const float*)(void*)sums, thread);
  FINISH_SYNC();
}
#endif
#endif
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SUMS_H_
