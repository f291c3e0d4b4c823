// AveragePool, MaxPool and LpPool: an element of the output a thread, over the elements of its
// window in row-major order, in float32; in both layouts. KIND: AVERAGE, MAXIMUM, MAGNITUDES,
// SQUARES; RANK spatial axes, 1 to 3. Floats of type T become TO; with WHOLE these are C's types of
// at most 16 bits.
#include "elements.h"
#include "pool_args.h"

#ifdef WHOLE
#define ITEM(type) type
#define ITEM_AT(p, i) ((float)(p)[i])
#define PUT_ITEM(p, i, x) ((p)[i] = (TO)(x))
#else
#define ITEM(type) ELEMENT(type)
#define ITEM_AT(p, i) LOAD(T)(p, i)
#define PUT_ITEM(p, i, x) STORE(TO)(p, i, x)
#endif

enum { AVERAGE, MAXIMUM, MAGNITUDES, SQUARES };

// The positions of a window of an axis that lie inside of the input.
typedef struct span {
  int64_t start, first, end;  // start: of the window, in the input
} span_t;

DEVICE span_t span_of(const pool_axis_t* a, int64_t o) {
  span_t s = {o * a->stride - a->pads[0], 0, 0};
  if (s.start < 0) s.first = (-s.start + a->dilation - 1) / a->dilation;
  if (a->in > s.start) s.end = (a->in - 1 - s.start) / a->dilation + 1;
  if (s.end > a->kernel) s.end = a->kernel;
  return s;
}

// Positions that count: those, or those inside of the padded input, where the last window of
// ceil_mode may reach past the end.
DEVICE int64_t count_of(const pool_axis_t* a, const span_t* s, int64_t o, int padding) {
  if (!padding) return s->first < s->end ? s->end - s->first : 0;
  const int64_t left = a->in + a->pads[0] + a->pads[1] - 1 - o * a->stride;
  const int64_t n = left < 0 ? 0 : left / a->dilation + 1;
  return n < a->kernel ? n : a->kernel;
}

typedef struct result {
  float value;
  int64_t place;
} result_t;

DEVICE void join(result_t* r, float v, int64_t place) {
  if (KIND == AVERAGE) r->value = r->value + v;
  if (KIND == MAGNITUDES) r->value = r->value + float_of(bits_of(v) & 0x7fffffffu);
  if (KIND == SQUARES) r->value = r->value + v * v;
  if (KIND != MAXIMUM) return;
  // NaN is larger than all numbers; the first of equals wins.
  if (r->place < 0 || v > r->value || (v != v && !(r->value != r->value))) {
    r->value = v;
    r->place = place;
  }
}

DEVICE float end_of(const result_t* r, int64_t count) {
  if (KIND == AVERAGE) return r->value / (float)count;
  if (KIND == SQUARES) return SQRT(r->value);
  return r->value;
}

// The number of a place with the first axis the fastest.
DEVICE int64_t column_major(const pool_args_t* a, int64_t place) {
  int64_t at = 0, step = 1, rows[RANK];
  UNROLL for (int i = RANK - 1; i >= 0; i--) {
    rows[i] = place % a->axis[i].in;
    place /= a->axis[i].in;
  }
  UNROLL for (int i = 0; i < RANK; i++) {
    at += rows[i] * step;
    step *= a->axis[i].in;
  }
  return at;
}

DEVICE result_t pool_window(const pool_args_t* a, const span_t* s, int64_t first, int64_t step) {
  const ITEM(T)* x = GLOBAL(const ITEM(T), a->x);
  result_t r = {KIND == MAXIMUM ? -POSITIVE_INFINITY : 0, -1};
#define EACH_TAP(i, k) for (int64_t k = s[i].first; k < s[i].end; k++)
#define PLACE(i, k) (s[i].start + (k)*a->axis[i].dilation)
  EACH_TAP(0, k0) {
#if RANK == 1
    const int64_t place = PLACE(0, k0);
    join(&r, ITEM_AT(x, first + place * step), place);
#else
    EACH_TAP(1, k1) {
#if RANK == 2
      const int64_t place = PLACE(0, k0) * a->axis[1].in + PLACE(1, k1);
      join(&r, ITEM_AT(x, first + place * step), place);
#else
      EACH_TAP(2, k2) {
        const int64_t place =
            (PLACE(0, k0) * a->axis[1].in + PLACE(1, k1)) * a->axis[2].in + PLACE(2, k2);
        join(&r, ITEM_AT(x, first + place * step), place);
      }
#endif
    }
#endif
  }
  return r;
}

KERNEL(pool, pool_args_t, 256) {
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS) {
    const int64_t inner = a.channels_last ? a.channels : 1;
    const int64_t c = a.channels_last ? i % a.channels : i / a.out_places % a.channels;
    const int64_t sample = i / a.channels / a.out_places;
    int64_t place = i / inner % a.out_places, count = 1;
    span_t s[RANK];
    UNROLL for (int d = RANK - 1; d >= 0; d--) {
      const int64_t o = place % a.axis[d].out;
      place /= a.axis[d].out;
      s[d] = span_of(&a.axis[d], o);
      count *= count_of(&a.axis[d], &s[d], o, a.counts_padding);
    }
    const int64_t plane = sample * a.channels + c, before = sample * a.channels * a.in_places;
    const int64_t first = a.channels_last ? before + c : plane * a.in_places;
    const result_t r = pool_window(&a, s, first, inner);
    PUT_ITEM(GLOBAL(ITEM(TO), a.y), i, end_of(&r, count));
    if (!a.indices) continue;
    const int64_t at = a.column_major && r.place >= 0 ? column_major(&a, r.place) : r.place;
    GLOBAL(int64_t, a.indices)[i] = at < 0 ? -1 : plane * a.in_places + at;
  }
}
