// Boxes of elements, copied as words of BITS bits (8 to 128).
//
// copy_boxes: several boxes at once, each by blocks of its own, word by word of the output.
// copy_matrix: a box that is transposed, by way of shared memory.
#include "block_words.h"
#include "copy_args.h"

// The places of word i in both tensors, where `last` dimensions are left out.
DEVICE void places(const copy_box_t* b, INDEX i, int last, int64_t* from, int64_t* to) {
  *from = *to = 0;
  for (int d = (int)b->rank - 1 - last; d >= 0; d--) {
    const INDEX n = (INDEX)b->dims[d], rest = d ? i / n : 0, k = i - rest * n;
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
  const int64_t step = (end - b->first_block) * THREADS;
  const word_t* x = b->from ? GLOBAL(const word_t, b->from) : 0;
  word_t* y = GLOBAL(word_t, b->to);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = (BLOCK - b->first_block) * THREADS + THREAD; i < b->size; i += step) {
    int64_t from, to;
    places(b, (INDEX)i, 0, &from, &to);
    put_word(y + to, x ? word_at(x + from) : word_of(a.value));
  }
}

enum { SIDE = 32, ROWS_AT_ONCE = 8 };

// The input runs along rows, the output along columns.
KERNEL(copy_matrix, matrix_args_t, 256) {
  SHARED word_t tile[SIDE][SIDE + 1];
  const int m = (int)a.box.rank - 2, n = m + 1;
  const word_t* x = GLOBAL(const word_t, a.box.from);
  word_t* y = GLOBAL(word_t, a.box.to);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t t = BLOCK; t < a.tiles; t += BLOCKS) {
    const int64_t matrix = t / (a.row_tiles * a.column_tiles);
    const int64_t rest = t - matrix * (a.row_tiles * a.column_tiles);
    const int64_t row = rest / a.column_tiles * SIDE, column = rest % a.column_tiles * SIDE;
    const int across = THREAD % SIDE, down = THREAD / SIDE;
    int64_t from, to;
    places(&a.box, (INDEX)matrix, 2, &from, &to);
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
