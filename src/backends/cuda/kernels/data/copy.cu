// Boxes of elements, copied as words of BITS bits (8 to 128).
//
// copy_boxes: several boxes at once, each by blocks of its own, word by word of the output.
// copy_matrix: a box that is transposed, by way of shared memory.
// Boxes have RANK dimensions. LONG: some have more words than numbers of 32 bits can count.
#include "block_words.h"
#include "copy_args.h"

#if LONG
typedef int64_t index_t;
#define QUOTIENT(i, size, divisor) ((i) / (size))
#else
typedef uint32_t index_t;
#define QUOTIENT(i, size, divisor) DIVIDED(i, divisor)
#endif

// The places of word i in both tensors, where `last` dimensions are left out.
DEVICE void places(const copy_box_t* b, index_t i, int last, int64_t* from, int64_t* to) {
  *from = *to = 0;
  UNROLL for (int d = RANK - 1 - last; d >= 0; d--) {
    const index_t rest = d ? QUOTIENT(i, b->dims[d], b->divisors[d]) : 0;
    const index_t k = d ? i - rest * (index_t)b->dims[d] : i;
    *from += (int64_t)k * b->from_strides[d];
    *to += (int64_t)k * b->to_strides[d];
    i = rest;
  }
}

KERNEL(copy_boxes, copy_args_t, 256) {
  int64_t n = 0;
  while (n + 1 < a.n && BLOCK >= a.boxes[n + 1].first_block) n++;
  const copy_box_t* b = &a.boxes[n];
  const int64_t end = n + 1 < a.n ? a.boxes[n + 1].first_block : BLOCKS;
  const index_t step = (index_t)(end - b->first_block) * (index_t)THREADS;
  const word_t* x = b->from ? GLOBAL(const word_t, b->from) : 0;
  word_t* y = GLOBAL(word_t, b->to);
  index_t i = (index_t)(BLOCK - b->first_block) * (index_t)THREADS + (index_t)THREAD;
  int64_t from, to;
  places(b, i, 0, &from, &to);  // while the kernel before may still run
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  while (i < (index_t)b->size) {
    put_word(y + to, x ? word_at(x + from) : word_of(a.value));
    i += step;
    places(b, i, 0, &from, &to);
  }
}

enum { SIDE = 32, ROWS_AT_ONCE = 8 };

// The input runs along rows, the output along columns.
KERNEL(copy_matrix, matrix_args_t, 256) {
  SHARED word_t tile[SIDE][SIDE + 1];
  const int m = RANK - 2, n = m + 1;
  const word_t* x = GLOBAL(const word_t, a.box.from);
  word_t* y = GLOBAL(word_t, a.box.to);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (index_t t = (index_t)BLOCK; t < (index_t)a.tiles; t += (index_t)BLOCKS) {
    const index_t by_columns = QUOTIENT(t, a.column_tiles, a.by_columns);
    const index_t matrix = QUOTIENT(by_columns, a.row_tiles, a.by_rows);
    const int64_t row = (int64_t)(by_columns - matrix * (index_t)a.row_tiles) * SIDE;
    const int64_t column = (int64_t)(t - by_columns * (index_t)a.column_tiles) * SIDE;
    const int across = THREAD % SIDE, down = THREAD / SIDE;
    int64_t from, to;
    places(&a.box, matrix, 2, &from, &to);
    for (int i = down; i < SIDE; i += ROWS_AT_ONCE)
      if (row + across < a.box.dims[m] && column + i < a.box.dims[n])
        tile[i][across] = word_at(x + from + row + across + (column + i) * a.box.from_strides[n]);
    SYNC();
    for (int i = down; i < SIDE; i += ROWS_AT_ONCE)
      if (row + i < a.box.dims[m] && column + across < a.box.dims[n])
        put_word(y + to + (row + i) * a.box.to_strides[m] + column + across, tile[across][i]);
    SYNC();
  }
}
