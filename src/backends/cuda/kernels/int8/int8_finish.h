// What INT8_TOGETHER floats become that layers on 8-bit integers make of their sums, stored. Who
// includes this has the layer's text before it (int8_end.h).
//
// Functions take long in float64, in which they are defined. Where the text says INT8_ROUGH, a form
// of rough.h or HARD_SWISH, ends that a result lies between are found in float32; where all that it
// may be becomes one byte, so does the result. Else, once in some thousand times, it is found in
// float64.
//
// Where the text says INT8_CELLS, a byte lies in a table (cuda/int8/cells.h). Kernels that say
// KEEPS_CELLS look it up in a copy of that in shared memory, which int8_keep_cells makes before a
// SYNC; all of their threads call it.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_

#if defined(INT8_CELLS) && defined(KEEPS_CELLS)
#define HAS_CELLS 1
#else
#define HAS_CELLS 0
#endif

#if HAS_CELLS
// As words, each of which is read at once.
DEVICE uint64_t* int8_kept_cells(void) {
  SHARED uint64_t cells[INT8_CELLS];
  return cells;
}

DEVICE void int8_keep_cells(const int8_end_args_t* e) {
  for (int i = THREAD; i < INT8_CELLS; i += THREADS)
    int8_kept_cells()[i] = GLOBAL(const uint64_t, e->cells)[i];
}

// The lowest byte of what is given.
DEVICE uint32_t int8_look_up(const int8_end_args_t* e, float f) {
  const float within = SMALLER(LARGER(f, e->cells_from), e->cells_to);
  const uint32_t at = bits_of(FMA(within, e->cell_step, e->cell_shift)) - bits_of(0x1p23F);
  const uint64_t cell = int8_kept_cells()[at];  // int8_cell_t
  const uint32_t bytes = (uint32_t)(cell >> 32);
  return f >= float_of((uint32_t)cell) ? bytes >> 8 : bytes;
}

// Of n places, a constant, up to INT8_PLACES: none waits for what another one takes.
DEVICE void int8_finish_places(const float* f, const int8_words_t* words, const index_t* at, int n,
                               index_t channel, const int8_end_args_t* e, address_t y) {
  uint32_t bytes[INT8_PLACES * INT8_TOGETHER];
  (void)words, (void)channel;
  UNROLL
  for (int i = 0; i < n * INT8_TOGETHER; i++) bytes[i] = int8_look_up(e, f[i]);
  UNROLL
  for (int i = 0; i < n; i++) {
    const uint32_t* of = bytes + i * INT8_TOGETHER;
    const uint32_t low = PICK_BYTES(of[0], of[1], 0x0040), high = PICK_BYTES(of[2], of[3], 0x0040);
    const uint32_t words_of[1] = {PICK_BYTES(low, high, 0x5410)};
    STORE_4(GLOBAL(INT8_OUT, y) + at[i], words_of);
  }
}

DEVICE void int8_finish_all(const float* f, const int8_words_t* words, index_t at, index_t channel,
                            const int8_end_args_t* e, address_t y) {
  int8_finish_places(f, words, &at, 1, channel, e, y);
}
#elif defined(INT8_ROUGH)
#include "rough.h"

#define ROUGH_FORM_OF(name) half_rough_##name
#define ROUGH_FORM(name) ROUGH_FORM_OF(name)
// By far more than functions in float64 are off by, and than rounding a result to float32 moves it.
#define RESULT_SLACK 0x1.8p-24F

// x / 6 + 1 / 2 is off by 2^-24 between its limits, the product by 2^-24 of itself, and the ends by
// as much: a share of x, not of the result. -0 and 0 become the same byte.
DEVICE float half_rough_HARD_SWISH(float x, float z, const float* p, float* least) {
  const float y = x * SMALLER(LARGER(FMA(x, 0x1.555556p-3F, 0.5F), 0), 1);
  const float off = MAGNITUDE(x) * 0x1.8p-22F;
  (void)z, (void)p;
  *least = y - off;
  return y + off;
}

// The byte of what the function makes of x; whether that is open.
// What is not finite is.
DEVICE int32_t int8_roughly(const int8_end_args_t* e, float x, bool* open) {
  const float p[2] = {INT8_ALPHA, 0};
  float other, rest;
  const float end = ROUGH_FORM(INT8_ROUGH)(x, 0, p, &other);
  const int32_t k = int8_steps_roughly(e, end, &rest);
  // Limits bring it no further away.
  const float reach = FMA(MAGNITUDE(end), RESULT_SLACK, MAGNITUDE(end - other));
  *open = !(FMA(reach, e->inverse, rest) < INT8_CERTAIN);
  return k;
}

DEVICE void int8_finish_all(const float* f, const int8_words_t* words, index_t at, index_t channel,
                            const int8_end_args_t* e, address_t y) {
  int32_t k[INT8_TOGETHER];
  uint32_t all_open = 0;
  (void)words;
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) {
    bool open;
    k[i] = int8_roughly(e, f[i], &open);
    all_open |= (uint32_t)open << i;
  }
  if (all_open) {
    ROLLED
    for (int i = 0; i < INT8_TOGETHER; i++) {
      if (!(all_open >> i & 1)) continue;
      float x = f[0];
      UNROLL
      for (int c = 1; c < INT8_TOGETHER; c++) x = c == i ? f[c] : x;
      const int32_t made = int8_steps(e, int8_value(x, at + (index_t)i, channel + (index_t)i, e));
      UNROLL
      for (int c = 0; c < INT8_TOGETHER; c++) k[c] = c == i ? made : k[c];
    }
  }
  const uint32_t packed[1] = {INT8_PACK(k)};
  STORE_4(GLOBAL(INT8_OUT, y) + at, packed);
}
// Of n places, a constant: functions are long, and are there once.
DEVICE void int8_finish_places(const float* f, const int8_words_t* words, const index_t* at, int n,
                               index_t channel, const int8_end_args_t* e, address_t y) {
  ROLLED
  for (int i = 0; i < n; i++)
    int8_finish_all(f + i * INT8_TOGETHER, &words[i], at[i], channel, e, y);
}
#else
// Of n places, a constant, up to INT8_PLACES: none waits for what another one takes.
DEVICE void int8_finish_places(const float* f, const int8_words_t* words, const index_t* at, int n,
                               index_t channel, const int8_end_args_t* e, address_t y) {
  float made[INT8_PLACES * INT8_TOGETHER];
  UNROLL
  for (int i = 0; i < n; i++)
    int8_values(f + i * INT8_TOGETHER, &words[i], at[i], channel, e, made + i * INT8_TOGETHER);
  int8_store_places(e, y, at, n, made);
}

DEVICE void int8_finish_all(const float* f, const int8_words_t* words, index_t at, index_t channel,
                            const int8_end_args_t* e, address_t y) {
  int8_finish_places(f, words, &at, 1, channel, e, y);
}
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_
