// Reductions of rows (rows.h) of whole numbers of C's type T, modulo 2^64 and then to T; and the
// places of the largest or smallest terms of rows, of whole numbers or, with FLOATS, of type T of
// elements.h. UNSIGNED: T is uint64_t. VEC is 1.
#include "rows.h"

#ifdef ARGUMENT

typedef struct place {
  uint64_t key;  // the largest wins
  uint32_t index;
} place_t;

// Numbers by value, -0 as 0; NaN above all.
#ifdef FLOATS
DEVICE uint64_t key_at(const reduce_args_t* a, int64_t i) {
  const uint32_t b = bits_of(LOAD(T)(GLOBAL(const ELEMENT(T), a->x), i));
  const uint32_t size = b & 0x7fffffffu;
  if (size > 0x7f800000u) return 0xffffffffu;
  const uint32_t key = b >> 31 ? 0x80000000u - size : 0x80000000u + size;
  return SMALLEST ? 0xffffffffu - key : key;
}
#else
DEVICE uint64_t key_at(const reduce_args_t* a, int64_t i) {
  const uint64_t x = (uint64_t)(GLOBAL(const T, a->x)[i]);
#ifdef UNSIGNED
  const uint64_t key = x;
#else
  const uint64_t key = x ^ (uint64_t)1 << 63;
#endif
  return SMALLEST ? ~key : key;
}
#endif

#ifdef LAST
#define BEFORE(i, j) ((i) > (j))
#define NO_INDEX 0
#else
#define BEFORE(i, j) ((i) < (j))
#define NO_INDEX 0xffffffffu
#endif

DEVICE place_t better(place_t x, place_t y) {
  return x.key > y.key || (x.key == y.key && BEFORE(x.index, y.index)) ? x : y;
}
DEVICE place_t shuffle_place(place_t x, int by) {
  const place_t y = {shuffle_xor_u64(x.key, by), shuffle_xor_u32(x.index, by)};
  return y;
}
JOIN_ROW(better, place_t, shuffle_place)

KERNEL(reduce_places, reduce_args_t, ROW_THREADS) {
  SHARED place_t joined[JOINED_PLACES];
  const int64_t row = ROW_OF_BLOCKS, first = row_place(&a.g, a.g.row_from, row);
  const int n = row < a.g.rows ? a.g.terms : 0;
  place_t best = {0, NO_INDEX};
  WAIT_FOR_INPUTS();
  EACH_OF_ROW(v, n) {
    const place_t x = {key_at(&a, first + term_place(&a.g, (uint32_t)v)), (uint32_t)v};
    best = better(best, x);
  }
  best = better_of_row(best, joined);
  if (FIRST_VECTOR || !n) return;
  GLOBAL(int64_t, a.y)[row_place(&a.g, a.g.row_to, row)] = (int64_t)best.index;
}

#else

typedef uint64_t whole_t;
#ifdef UNSIGNED
#define ORDERED(x) (x)
#define SIGN(x) 0
#else
#define ORDERED(x) ((int64_t)(x))
#define SIGN(x) ((x) >> 63)
#endif

DEVICE whole_t itself(whole_t x) { return x; }
DEVICE whole_t magnitude(whole_t x) { return SIGN(x) ? 0 - x : x; }
DEVICE whole_t square(whole_t x) { return x * x; }
DEVICE whole_t whole_sum(whole_t x, whole_t y) { return x + y; }
DEVICE whole_t whole_product(whole_t x, whole_t y) { return x * y; }
DEVICE whole_t whole_larger(whole_t x, whole_t y) { return ORDERED(x) > ORDERED(y) ? x : y; }
DEVICE whole_t whole_smaller(whole_t x, whole_t y) { return ORDERED(x) < ORDERED(y) ? x : y; }
DEVICE whole_t end_itself(whole_t x, int64_t count) { return (void)count, x; }
// Towards zero.
DEVICE whole_t end_mean(whole_t x, int64_t count) {
#ifdef UNSIGNED
  return x / (uint64_t)count;
#else
  return (whole_t)((int64_t)x / count);
#endif
}

#define NEUTRAL(join) JOINED(neutral_, join)
#define neutral_whole_sum 0
#define neutral_whole_product 1
#ifdef UNSIGNED
#define neutral_whole_larger 0
#define neutral_whole_smaller (~(whole_t)0)
#else
#define neutral_whole_larger ((whole_t)1 << 63)
#define neutral_whole_smaller (((whole_t)1 << 63) - 1)
#endif

#define JOIN_WHOLE(join) JOIN_ROW(join, whole_t, shuffle_xor_u64)
JOIN_WHOLE(JOIN)

KERNEL(reduce_whole, reduce_args_t, ROW_THREADS) {
  SHARED whole_t joined[JOINED_PLACES];
  const int64_t row = ROW_OF_BLOCKS, first = row_place(&a.g, a.g.row_from, row);
  const int n = row < a.g.rows ? a.g.terms : 0;
  const T* x = GLOBAL(const T, a.x);
  whole_t s = NEUTRAL(JOIN);
  WAIT_FOR_INPUTS();
  EACH_OF_ROW(v, n) {
    s = JOIN(s, OF((whole_t)x[first + term_place(&a.g, (uint32_t)v)]));
  }
  s = JOINED(JOIN, _of_row)(s, joined);
  if (FIRST_VECTOR || !n) return;
  GLOBAL(T, a.y)[row_place(&a.g, a.g.row_to, row)] = (T)JOINED(end_, END)(s, a.whole_count);
}
#endif
