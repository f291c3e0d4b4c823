// The first k elements of lines, in order: by value, -0 equal to 0, NaN above all numbers, those
// that are equal by index; LARGEST 1: the largest first. Of floats (-DFLOATS -DT=f16 -DTO=f16, the
// type of results) and of whole numbers (-DT=int32_t; -DUNSIGNED, -DWIDE of those of 64 bits).
//
// An element becomes a key of 64 bits, or twice as many: its value's place in the order, then its
// index. So no two keys are equal, and the result is one whatever sorts them. SIZE keys are sorted in a block's
// shared memory by a bitonic network (K. E. Batcher, Sorting networks and their applications, AFIPS
// 1968); lines that are longer by the same network in several launches, or, where few are asked
// for, by taking the first of each SIZE and sorting those.
#include "elements.h"
#include "sort_args.h"

#ifdef WIDE
#define KEY sort_key_t
#define ORDER uint64_t
typedef struct sort_key {
  uint64_t order, index;
} sort_key_t;
DEVICE KEY join_key(ORDER order, int64_t i) {
  const KEY key = {order, (uint64_t)i};
  return key;
}
DEVICE KEY no_key(void) { return join_key(~(ORDER)0, -1); }
DEVICE int64_t index_of(KEY key) { return (int64_t)key.index; }
DEVICE int is_above(KEY x, KEY y) {
  return x.order > y.order || (x.order == y.order && x.index > y.index);
}
#else
#define KEY uint64_t
#define ORDER uint32_t
DEVICE KEY join_key(ORDER order, int64_t i) { return (uint64_t)order << 32 | (uint32_t)i; }
DEVICE KEY no_key(void) { return ~(uint64_t)0; }
DEVICE int64_t index_of(KEY key) { return (int64_t)(uint32_t)key; }
DEVICE int is_above(KEY x, KEY y) { return x > y; }
#endif

#ifdef FLOATS
#define ITEM ELEMENT(T)
#define RESULT ELEMENT(TO)
#define PUT_ITEM(p, i, x) STORE(TO)(p, i, LOAD(T)(x, 0))
DEVICE ORDER order_of(ITEM item) {
  const uint32_t b = bits_of(LOAD(T)(&item, 0)), size = b & 0x7fffffffu;
  if (size > 0x7f800000u) return 0xffffffffu;
  return b >> 31 ? 0x80000000u - size : 0x80000000u + size;
}
#else
#define ITEM T
#define RESULT T
#define PUT_ITEM(p, i, x) ((p)[i] = *(x))
DEVICE ORDER order_of(ITEM item) {
#if defined UNSIGNED
  return (ORDER)item;
#elif defined WIDE
  return (ORDER)item ^ (ORDER)1 << 63;
#else
  return (uint32_t)(int32_t)item ^ 0x80000000u;
#endif
}
#endif

DEVICE int64_t line_place(const sort_args_t* a, int64_t line, int64_t n, int64_t i) {
  return line / a->inner * n * a->inner + line % a->inner + i * a->inner;
}

DEVICE KEY key_of(const sort_args_t* a, int64_t line, int64_t i) {
  const ORDER order = order_of(GLOBAL(const ITEM, a->x)[line_place(a, line, a->n, i)]);
  return join_key(LARGEST ? ~order : order, i);
}

// Result i of a line.
DEVICE void put_result(const sort_args_t* a, int64_t line, int64_t i, KEY key) {
  const int64_t index = index_of(key), at = line_place(a, line, a->k, i);
  if (a->values) {
    const ITEM* x = GLOBAL(const ITEM, a->x) + line_place(a, line, a->n, index);
    PUT_ITEM(GLOBAL(RESULT, a->values), at, x);
  }
  if (a->indices) GLOBAL(int64_t, a->indices)[at] = index;
}

// One step: pairs that are `stride` apart; up: the smaller key first.
DEVICE void exchange(KEY* x, KEY* y, int up) {
  const KEY one = *x, other = *y;
  if (is_above(one, other) == up) {
    *x = other;
    *y = one;
  }
}
DEVICE void step_in_block(KEY* keys, int stride, int size, int up) {
  for (int i = THREAD; i < SIZE / 2; i += THREADS) {
    const int at = i / stride * 2 * stride + i % stride;
    exchange(&keys[at], &keys[at + stride], ((at & size) == 0) == up);
  }
  SYNC();
}

// Sorts the block's keys and passes on the first of them.
DEVICE void sort_block(const sort_args_t* a, KEY* keys, int64_t line, int64_t chunk) {
  const int up = !(a->alternate && chunk % 2);
  SYNC();
  for (int size = 2; size <= SIZE; size *= 2)
    for (int stride = size / 2; stride; stride /= 2)
      step_in_block(keys, stride, size == SIZE ? 0 : size, up);
  for (int i = THREAD; i < a->taken; i += THREADS) {
    if (a->to)
      GLOBAL(KEY, a->to)[(line * a->chunks + chunk) * a->taken + i] = keys[i];
    else
      put_result(a, line, i, keys[i]);
  }
}

KERNEL(sort_elements, sort_args_t, 512) {
  SHARED KEY keys[SIZE];
  const int64_t line = BLOCK / a.chunks, chunk = BLOCK % a.chunks;
  WAIT_FOR_INPUTS();
  for (int i = THREAD; i < SIZE; i += THREADS) {
    const int64_t at = chunk * SIZE + i;
    keys[i] = at < a.n ? key_of(&a, line, at) : no_key();
  }
  sort_block(&a, keys, line, chunk);
}

KERNEL(sort_keys, sort_args_t, 512) {
  SHARED KEY keys[SIZE];
  const int64_t line = BLOCK / a.chunks, chunk = BLOCK % a.chunks;
  WAIT_FOR_INPUTS();
  for (int i = THREAD; i < SIZE; i += THREADS) {
    const int64_t at = chunk * SIZE + i;
    keys[i] = at < a.keys ? GLOBAL(const KEY, a.from)[line * a.keys + at] : no_key();
  }
  sort_block(&a, keys, line, chunk);
}

// A step over lines in global memory, of `keys` each.
KERNEL(sort_step, sort_args_t, 256) {
  KEY* all = GLOBAL(KEY, a.from);
  const int64_t pairs = a.lines * (a.keys / 2);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < pairs; i += BLOCKS * THREADS) {
    const int64_t line = i / (a.keys / 2), pair = i % (a.keys / 2);
    const int64_t at = pair / a.stride * 2 * a.stride + pair % a.stride;
    KEY* x = all + line * a.keys + at;
    exchange(x, x + a.stride, (at & a.size) == 0);
  }
}

// The steps of a size that stay within SIZE keys, in place.
KERNEL(sort_merge, sort_args_t, 512) {
  SHARED KEY keys[SIZE];
  const int64_t first = BLOCK * SIZE;
  KEY* all = GLOBAL(KEY, a.from);
  WAIT_FOR_INPUTS();
  for (int i = THREAD; i < SIZE; i += THREADS) keys[i] = all[first + i];
  SYNC();
  for (int stride = SIZE / 2; stride; stride /= 2)
    step_in_block(keys, stride, 0, (first % a.keys & a.size) == 0);
  for (int i = THREAD; i < SIZE; i += THREADS) all[first + i] = keys[i];
}

KERNEL(sort_take, sort_args_t, 256) {
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.lines * a.k; i += BLOCKS * THREADS)
    put_result(&a, i / a.k, i % a.k, GLOBAL(const KEY, a.from)[i / a.k * a.keys + i % a.k]);
}
