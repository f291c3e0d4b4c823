// AveragePool, MaxPool and LpPool: VEC channels of a place of the output a thread, over the elements
// of its window in row-major order, in float32; in both layouts. VEC is 1 but where channels come
// last, are a multiple of it, and nobody asks for places. KIND: AVERAGE, MAXIMUM, MAGNITUDES,
// SQUARES; RANK spatial axes, 1 to 3; PLACE: int32_t where that counts all elements and places, and
// else int64_t. Floats of type T become TO; with WHOLE these are C's types of at most 16 bits, of 8
// where VEC, 8, is not 1.
#include "pool_args.h"
#include "vectors.h"

#if defined(WHOLE) && VEC > 1
// Bytes, as words.
#define ITEM(type) type
DEVICE void take_bytes(const T* p, float* x) {
  uint32_t words[2];
  READ_8(p, words);
  UNROLL for (int i = 0; i < VEC; i++) x[i] = (float)(T)(words[i / 4] >> 8 * (i % 4) & 255);
}
DEVICE void put_bytes(TO* p, const float* x) {
  uint32_t words[2] = {0, 0};
  UNROLL for (int i = 0; i < VEC; i++) words[i / 4] |= (uint32_t)((int32_t)x[i] & 255) << 8 * (i % 4);
  STORE_8(p, words);
}
#define TAKE_ITEMS(p, i, x) take_bytes((p) + (i), x)
#define PUT_ITEMS(p, i, x) put_bytes((p) + (i), x)
#elif defined(WHOLE)
#define ITEM(type) type
#define TAKE_ITEMS(p, i, x) ((x)[0] = (float)(p)[i])
#define PUT_ITEMS(p, i, x) ((p)[i] = (TO)(x)[0])
#else
#define ITEM(type) ELEMENT(type)
#define TAKE_ITEMS(p, i, x) LOAD_N(VEC, T)(p, i, x)
#define PUT_ITEMS(p, i, x) STORE_N(VEC, TO)(p, i, x)
#endif

enum { AVERAGE, MAXIMUM, MAGNITUDES, SQUARES };

typedef PLACE place_t;
typedef struct axis {
  place_t in, out, kernel, stride, dilation, pads[2];
} axis_t;

// The positions of a window of an axis that lie inside of the input.
typedef struct span {
  place_t start, first, end;  // start: of the window, in the input
} span_t;

DEVICE span_t span_of(const axis_t* a, place_t o) {
  span_t s = {o * a->stride - a->pads[0], 0, 0};
  if (s.start < 0) s.first = (-s.start + a->dilation - 1) / a->dilation;
  if (a->in > s.start) s.end = (a->in - 1 - s.start) / a->dilation + 1;
  if (s.end > a->kernel) s.end = a->kernel;
  return s;
}

// Positions that count: those, or those inside of the padded input, where the last window of
// ceil_mode may reach past the end.
DEVICE place_t count_of(const axis_t* a, const span_t* s, place_t o, int padding) {
  if (!padding) return s->first < s->end ? s->end - s->first : 0;
  const place_t left = a->in + a->pads[0] + a->pads[1] - 1 - o * a->stride;
  const place_t n = left < 0 ? 0 : left / a->dilation + 1;
  return n < a->kernel ? n : a->kernel;
}

typedef struct result {
  float value;
  place_t place;
} result_t;

DEVICE void join(result_t* r, float v, place_t place) {
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

DEVICE float end_of(const result_t* r, place_t count) {
  if (KIND == AVERAGE) return r->value / (float)count;
  if (KIND == SQUARES) return SQRT(r->value);
  return r->value;
}

// The number of a place with the first axis the fastest.
DEVICE place_t column_major(const axis_t* axis, place_t place) {
  place_t at = 0, step = 1, rows[RANK];
  UNROLL for (int i = RANK - 1; i >= 0; i--) {
    rows[i] = place % axis[i].in;
    place /= axis[i].in;
  }
  UNROLL for (int i = 0; i < RANK; i++) {
    at += rows[i] * step;
    step *= axis[i].in;
  }
  return at;
}

// Joins what lies at a place, VEC elements, from `at` on.
DEVICE void take_place(const ITEM(T)* x, place_t at, place_t place, result_t* r) {
  float v[VEC];
  TAKE_ITEMS(x, at, v);
  UNROLL for (int i = 0; i < VEC; i++) join(&r[i], v[i], place);
}

DEVICE void pool_window(const pool_args_t* a, const axis_t* axis, const span_t* s, place_t first,
                        place_t step, result_t* r) {
  const ITEM(T)* x = GLOBAL(const ITEM(T), a->x);
  UNROLL for (int i = 0; i < VEC; i++) {
    r[i].value = KIND == MAXIMUM ? -POSITIVE_INFINITY : 0;
    r[i].place = -1;
  }
#define EACH_TAP(i, k) for (place_t k = s[i].first; k < s[i].end; k++)
#define POSITION(i, k) (s[i].start + (k)*axis[i].dilation)
  EACH_TAP(0, k0) {
#if RANK == 1
    const place_t place = POSITION(0, k0);
    take_place(x, first + place * step, place, r);
#else
    EACH_TAP(1, k1) {
#if RANK == 2
      const place_t place = POSITION(0, k0) * axis[1].in + POSITION(1, k1);
      take_place(x, first + place * step, place, r);
#else
      EACH_TAP(2, k2) {
        const place_t place =
            (POSITION(0, k0) * axis[1].in + POSITION(1, k1)) * axis[2].in + POSITION(2, k2);
        take_place(x, first + place * step, place, r);
      }
#endif
    }
#endif
  }
}

KERNEL(pool, pool_args_t, 256) {
  const place_t size = (place_t)a.size, channels = (place_t)a.channels;
  const place_t in_places = (place_t)a.in_places, out_places = (place_t)a.out_places;
  const place_t inner = a.channels_last ? channels : 1;
  axis_t axis[RANK];
  UNROLL for (int d = 0; d < RANK; d++) {
    const pool_axis_t* of = &a.axis[d];
    const axis_t one = {(place_t)of->in,
                        (place_t)of->out,
                        (place_t)of->kernel,
                        (place_t)of->stride,
                        (place_t)of->dilation,
                        {(place_t)of->pads[0], (place_t)of->pads[1]}};
    axis[d] = one;
  }
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (place_t v = (place_t)(BLOCK * THREADS + THREAD); v < size / VEC;
       v += (place_t)(BLOCKS * THREADS)) {
    const place_t i = v * VEC;
    const place_t c = a.channels_last ? i % channels : i / out_places % channels;
    const place_t sample = i / channels / out_places;
    place_t place = i / inner % out_places, count = 1;
    span_t s[RANK];
    UNROLL for (int d = RANK - 1; d >= 0; d--) {
      const place_t o = place % axis[d].out;
      place /= axis[d].out;
      s[d] = span_of(&axis[d], o);
      count *= count_of(&axis[d], &s[d], o, a.counts_padding);
    }
    const place_t plane = sample * channels + c, before = sample * channels * in_places;
    const place_t first = a.channels_last ? before + c : plane * in_places;
    result_t r[VEC];
    float y[VEC];
    pool_window(&a, axis, s, first, inner, r);
    UNROLL for (int k = 0; k < VEC; k++) y[k] = end_of(&r[k], count);
    PUT_ITEMS(GLOBAL(ITEM(TO), a.y), i, y);
#if VEC == 1
    if (!a.indices) continue;
    const place_t at = a.column_major && r[0].place >= 0 ? column_major(axis, r[0].place) : r[0].place;
    GLOBAL(int64_t, a.indices)[i] = at < 0 ? -1 : (int64_t)plane * in_places + at;
#endif
  }
}
