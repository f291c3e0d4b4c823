// What INT8_TOGETHER floats become that layers on 8-bit integers make of their sums, stored. Who
// includes this has the layer's text before it (int8_end.h).
//
// Functions take long in float64, in which they are defined. Where the text says INT8_ROUGH, a form
// of rough.h or HARD_SWISH, ends that a result lies between are found in float32; as a number of
// steps of the scale it is beside one of them by no more than the other is, and by what float32
// rounds, of the quotient that int8_steps rounds to an integer. Where both have the same nearest
// integer, that is the result. Else, once in some thousand times, it is found in float64.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_

#ifdef INT8_ROUGH
#include "rough.h"

#define ROUGH_FORM_OF(name) half_rough_##name
#define ROUGH_FORM(name) ROUGH_FORM_OF(name)

// What the result in float64 is off by, that as float32, its quotient by the scale, the inverse of
// that, and the product with it: less than six times 2^-24.
#define STEPS_SLACK 0x1p-21F
#define ALMOST_HALF (0.5F - 0x1p-20F)
// More than any type has: beyond, all are its ends.
#define MANY_STEPS 600.0F

// x / 6 + 1 / 2 is off by 2^-24 between its limits, the product by 2^-24 of itself, and the ends by
// as much: a share of x, not of the result. -0 and 0 become the same byte.
DEVICE float half_rough_HARD_SWISH(float x, float z, const float* p, float* least) {
  const float y = x * SMALLER(LARGER(FMA(x, 0x1.555556p-3F, 0.5F), 0), 1);
  const float off = MAGNITUDE(x) * 0x1.8p-22F;
  (void)z, (void)p;
  *least = y - off;
  return y + off;
}

// The integer of what the function makes of x, which the type still limits; whether that is open.
// What is not finite is.
DEVICE int32_t int8_roughly(const int8_end_args_t* e, float x, bool* open) {
  const float p[2] = {INT8_ALPHA, 0}, shift = 0x1.8p23F;
  float other;
  const float end = ROUGH_FORM(INT8_ROUGH)(x, 0, p, &other), steps = end * e->inverse;
  const float within = SMALLER(LARGER(steps, -MANY_STEPS), MANY_STEPS);
  const float shifted = within + shift, left = within - (shifted - shift);
  const float between = MAGNITUDE(end - other) * e->inverse;
  const float off = FMA(MAGNITUDE(steps), STEPS_SLACK, MAGNITUDE(left));
  *open = !(FMA(between, 1 + 0x1p-20F, off) < ALMOST_HALF);
  return (int32_t)(bits_of(shifted) - bits_of(shift)) + e->whole_zero;
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
#else
DEVICE void int8_finish_all(const float* f, const int8_words_t* words, index_t at, index_t channel,
                            const int8_end_args_t* e, address_t y) {
  float made[INT8_TOGETHER];
  int8_values(f, words, at, channel, e, made);
  int8_store_all(e, y, at, made);
}
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_
