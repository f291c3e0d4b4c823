// ScatterElements and ScatterND with a reduction: each slice takes its updates one after the other,
// in their order, whatever else there is.
//
// The slices that updates name are sorted by slice, then by update (sort.cu): equal ones are
// neighbours, and the first of them has a thread for each element.
//
// Options: REDUCE_ADD, REDUCE_MUL, REDUCE_MAX or REDUCE_MIN; floats (-DFLOATS -DT=f16), in float32,
// or whole numbers (-DT=int32_t), modulo their size; INDEX, the type of indices.
#include "elements.h"
#include "places.h"

#define NOWHERE 0xffffffffu

#ifdef FLOATS
typedef float number_t;
#define ITEM ELEMENT(T)
#define ITEM_AT(p, i) LOAD(T)(p, i)
#define PUT_ITEM(p, i, x) STORE(T)(p, i, x)
#define ADD(x, y) ((x) + (y))
#define MUL(x, y) ((x) * (y))
#define STAYS(x) ((x) != (x))  // NaN wins over numbers
#else
typedef T number_t;
#define ITEM T
#define ITEM_AT(p, i) ((p)[i])
#define PUT_ITEM(p, i, x) ((p)[i] = (x))
#define ADD(x, y) ((T)((uint64_t)(x) + (uint64_t)(y)))
#define MUL(x, y) ((T)((uint64_t)(x) * (uint64_t)(y)))
#define STAYS(x) 0
#endif

DEVICE number_t reduce(number_t x, number_t y) {
#if defined(REDUCE_ADD)
  return ADD(x, y);
#elif defined(REDUCE_MUL)
  return MUL(x, y);
#elif defined(REDUCE_MAX)
  return STAYS(x) || x > y ? x : y;
#else
  return STAYS(x) || x < y ? x : y;
#endif
}

KERNEL(scatter_places, scatter_args_t, 256) {
  uint32_t* to = GLOBAL(uint32_t, a.owners);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.places.n; i += BLOCKS * THREADS) {
    const int64_t at = slice_of_place(&a.places, i);
    to[i] = at < 0 ? NOWHERE : (uint32_t)at;
  }
}

KERNEL(scatter_copy, scatter_args_t, 256) {
  const ITEM* x = GLOBAL(const ITEM, a.data);
  ITEM* y = GLOBAL(ITEM, a.out);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.places.count * a.slice; i += BLOCKS * THREADS)
    y[i] = x[i];
}

KERNEL(scatter_reduce, scatter_args_t, 256) {
  const uint64_t* keys = GLOBAL(const uint64_t, a.keys);
  const ITEM* x = GLOBAL(const ITEM, a.data);
  const ITEM* updates = GLOBAL(const ITEM, a.updates);
  ITEM* y = GLOBAL(ITEM, a.out);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.places.n * a.slice; i += BLOCKS * THREADS) {
    int64_t j = i / a.slice;
    const int64_t within = i % a.slice;
    const uint32_t slice = (uint32_t)(keys[j] >> 32);
    if (slice == NOWHERE || (j > 0 && (uint32_t)(keys[j - 1] >> 32) == slice)) continue;
    number_t sum = ITEM_AT(x, slice * a.slice + within);
    for (; j < a.places.n && (uint32_t)(keys[j] >> 32) == slice; j++)
      sum = reduce(sum, ITEM_AT(updates, (int64_t)(uint32_t)keys[j] * a.slice + within));
    PUT_ITEM(y, slice * a.slice + within, sum);
  }
}
