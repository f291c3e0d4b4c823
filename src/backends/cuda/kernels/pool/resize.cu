// Resize and Upsample: an element of the output a thread, by tables of taps. AXES (0 to 3) are
// resampled, one after the other, the first one first: sums of products in float32, each rounded,
// over the taps in order, those of weight 0 left out. Of floats of type T; with BITS, elements of so
// many bits are taken as they are, from the first tap.
#include "elements.h"
#include "resize_args.h"

// Where an element of the output comes from along the dimensions that stay.
DEVICE int64_t kept_place(const resize_args_t* a, int64_t i) {
  int64_t at = 0;
  for (int d = 0; d < a->n_kept; d++)
    at += i / a->kept[d].step % a->kept[d].size * a->kept[d].from;
  return at;
}

DEVICE int64_t first_tap(const resize_taps_t* t, int64_t i) {
  return i / t->dim.step % t->dim.size * t->taps;
}
DEVICE int64_t index_of(const resize_taps_t* t, int64_t tap) {
  return GLOBAL(const int32_t, t->index)[tap];
}

#ifdef BITS
#define WORD JOINED(uint, JOINED(BITS, _t))
KERNEL(resize_nearest, resize_args_t, 256) {
  const WORD* x = GLOBAL(const WORD, a.x);
  WORD* y = GLOBAL(WORD, a.y);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS) {
    int64_t at = kept_place(&a, i);
    UNROLL for (int d = 0; d < AXES; d++)
      at += index_of(&a.axis[d], first_tap(&a.axis[d], i)) * a.axis[d].dim.from;
    y[i] = x[at];
  }
}
#else

// The taps of axis d, from tap `first` on, each of which `value` is made of: x at `at`.
#define WEIGHTED(d, first, value) \
  float s = 0; \
  const resize_taps_t* t = &a->axis[d]; \
  for (int64_t k = (first); k < (first) + t->taps; k++) { \
    const float w = t->weight ? GLOBAL(const float, t->weight)[k] : 1; \
    if (w == 0) continue; \
    const int64_t i = index_of(t, k), from = at + i * t->dim.from; \
    s = s + w * (value); \
  } \
  return s;

DEVICE float resampled_0(const resize_args_t* a, const int64_t* first, int64_t at) {
  (void)first;
  return LOAD(T)(GLOBAL(const ELEMENT(T), a->x), at);
}
DEVICE float resampled_1(const resize_args_t* a, const int64_t* first, int64_t at) {
  WEIGHTED(0, first[0], resampled_0(a, first, from))
}
#if AXES > 1
DEVICE float resampled_2(const resize_args_t* a, const int64_t* first, int64_t at) {
  WEIGHTED(1, first[1], resampled_1(a, first, from))
}
#endif
#if AXES > 2
DEVICE float resampled_3(const resize_args_t* a, const int64_t* first, int64_t at) {
  WEIGHTED(2, first[2], resampled_2(a, first, from))
}
#endif

KERNEL(resize_floats, resize_args_t, 256) {
  ELEMENT(T)* y = GLOBAL(ELEMENT(T), a.y);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS) {
    int64_t first[AXES + 1];
    UNROLL for (int d = 0; d < AXES; d++) first[d] = first_tap(&a.axis[d], i);
    STORE(T)(y, i, JOINED(resampled_, AXES)(&a, first, kept_place(&a, i)));
  }
}
#endif
