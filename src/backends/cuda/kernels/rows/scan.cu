// Running sums, or with PRODUCT products, along an axis, one term after the other: of floats (-DFLOATS, -DT=f16)
// in float32, of whole numbers (-DT=int32_t) modulo 2^64 and then to T. Y: what floats become.
#include "elements.h"
#include "scan_args.h"

#ifdef PRODUCT
#define START 1
#define OP *
#else
#define START 0
#define OP +
#endif

#ifdef FLOATS
typedef float number_t;
#define ITEM ELEMENT(T)
#define RESULT ELEMENT(Y)
#define ITEM_AT(p, i) LOAD(T)(p, i)
#define PUT_ITEM(p, i, x) STORE(Y)(p, i, x)
DEVICE number_t number_of_lane(number_t x, int lane) { return shuffle_f32(x, lane); }
#else
typedef uint64_t number_t;
#define ITEM T
#define RESULT T
#define ITEM_AT(p, i) ((number_t)(p)[i])
#define PUT_ITEM(p, i, x) ((p)[i] = (T)(x))
DEVICE number_t number_of_lane(number_t x, int lane) {
  const uint32_t low = shuffle_u32((uint32_t)x, lane);
  return (number_t)shuffle_u32((uint32_t)(x >> 32), lane) << 32 | low;
}
#endif

// The i-th term of a line on the way, and where it is.
DEVICE int64_t place(const scan_args_t* a, int64_t first, int64_t i) {
  return first + (a->reverse ? a->n - 1 - i : i) * a->inner;
}
DEVICE number_t term(const scan_args_t* a, int64_t first, int64_t i) {
  const ITEM* x = GLOBAL(const ITEM, a->x);
  if (a->exclusive && i == 0) return START;
  return ITEM_AT(x, place(a, first, a->exclusive ? i - 1 : i));
}

// A thread a line: those beside each other read neighbours.
KERNEL(scan_columns, scan_args_t, 128) {
  WAIT_FOR_INPUTS();
  for (int64_t l = BLOCK * THREADS + THREAD; l < a.lines; l += BLOCKS * THREADS) {
    const int64_t first = l / a.inner * a.n * a.inner + l % a.inner;
    RESULT* y = GLOBAL(RESULT, a.y);
    number_t s = START;
    for (int64_t i = 0; i < a.n; i++) {
      s = s OP term(&a, first, i);
      PUT_ITEM(y, place(&a, first, i), s);
    }
  }
}

// A warp a line whose elements are neighbours: it reads WARP of them at once.
KERNEL(scan_lines, scan_args_t, 128) {
  const int warps = THREADS / WARP;
  WAIT_FOR_INPUTS();
  for (int64_t l = BLOCK * warps + THREAD / WARP; l < a.lines; l += BLOCKS * warps) {
    RESULT* y = GLOBAL(RESULT, a.y);
    number_t s = START;
    for (int64_t i = 0; i < a.n; i += WARP) {
      const int64_t at = i + LANE;
      const number_t x = at < a.n ? term(&a, l * a.n, at) : START;
      number_t own = s;
      for (int lane = 0; lane < WARP; lane++) {
        s = s OP number_of_lane(x, lane);
        if (lane == LANE) own = s;
      }
      if (at < a.n) PUT_ITEM(y, place(&a, l * a.n, at), own);
    }
  }
}
