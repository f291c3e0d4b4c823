// Pointwise nodes on 8-bit integers: layers without a product.
//
// Options: READS: what f is made of: 0: there is no f; 1: x less its zero point, scaled by channel;
// 2: x, a float. X_TYPE: of its elements. TOGETHER 1: INT8_TOGETHER elements are read and stored at
// once, of as many channels that lie side by side, or of numbers that no channel has a say in.
#include "program.h"
#include "int8_finish.h"

// So many pieces are on their way at once. A function is long, and is there once.
#ifdef INT8_HAS_STEPS
#define PIECES 1
#else
#define PIECES 4
#endif

// What INT8_TOGETHER elements are made of.
typedef struct piece {
  int8_words_t words;
#if READS == 1
  uint32_t x;
#elif READS == 2
  uint32_t x[INT8_TOGETHER];
#endif
} piece_t;

DEVICE void read_piece(const int8_pointwise_args_t* a, index_t at, piece_t* p) {
  int8_read(at, &a->end, &p->words);
#if READS == 1
  p->x = int8_word(a->x, at);
#elif READS == 2
  READ_16(GLOBAL(const float, a->x) + at, p->x);
#endif
}

DEVICE void make_piece(const int8_pointwise_args_t* a, index_t at, const piece_t* p) {
  const index_t channel = at % (index_t)a->channels;
  float f[INT8_TOGETHER];
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) {
#if READS == 1
    f[i] = int8_result(&a->end, (int32_t)(X_TYPE)(p->x >> (8 * i) & 255) - a->zero_x,
                       channel + (index_t)i);
#elif READS == 2
    f[i] = float_of(p->x[i]);
#else
    f[i] = 0;
#endif
  }
  int8_finish_all(f, &p->words, at, channel, &a->end, a->y);
}

DEVICE void make_one(const int8_pointwise_args_t* a, index_t at) {
  const index_t channel = at % (index_t)a->channels;
#if READS == 1
  const float f =
      int8_result(&a->end, (int32_t)GLOBAL(const X_TYPE, a->x)[at] - a->zero_x, channel);
#elif READS == 2
  const float f = GLOBAL(const float, a->x)[at];
#else
  const float f = 0;
#endif
  int8_store(&a->end, a->y, at, int8_value(f, at, channel, &a->end));
}

KERNEL(int8_pointwise, int8_pointwise_args_t, 256) {
  const int64_t first = BLOCK * THREADS + THREAD, all = BLOCKS * THREADS;
  // Where addresses are multiples of 16: those that are wholly there.
  const int64_t pieces = TOGETHER && (a.x | a.y) % 16 == 0 ? a.size / INT8_TOGETHER : 0;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = first; i < pieces; i += all * PIECES) {
    piece_t p[PIECES];
    UNROLL
    for (int k = 0; k < PIECES; k++)
      read_piece(&a, (index_t)((i + k * all < pieces ? i + k * all : i) * INT8_TOGETHER), &p[k]);
    UNROLL
    for (int k = 0; k < PIECES; k++)
      if (i + k * all < pieces) make_piece(&a, (index_t)((i + k * all) * INT8_TOGETHER), &p[k]);
  }
  for (int64_t i = pieces * INT8_TOGETHER + first; i < a.size; i += all) make_one(&a, (index_t)i);
}
