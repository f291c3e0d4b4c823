// What INT8_TOGETHER floats become that layers on 8-bit integers make of their sums, stored. Who
// includes this has the layer's text before it (int8_end.h).
//
// Functions take long in float64, in which they are defined. Where the text says INT8_ROUGH, a form
// of rough.h, ends that a result lies between are found in float32; where both become the same
// byte, so does the result: the float32 that it rounds to lies between what the ends round to, and
// bytes do not fall as floats rise. Else, once in some thousand times, it is found in float64.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_FINISH_H_

#ifdef INT8_ROUGH
#include "rough.h"

#define ROUGH_FORM_OF(name) half_rough_##name
#define ROUGH_FORM(name) ROUGH_FORM_OF(name)

DEVICE int32_t int8_limited_steps(const int8_end_args_t* e, float x) {
  const int32_t k = int8_steps(e, x);
  return k < INT8_LOW ? INT8_LOW : k > INT8_HIGH ? INT8_HIGH : k;
}

// The byte of what the function makes of x; whether that is open.
DEVICE int32_t int8_roughly(const int8_end_args_t* e, float x, bool* open) {
  const float p[2] = {INT8_ALPHA, 0};
  float least;
  const float most = ROUGH_FORM(INT8_ROUGH)(x, 0, p, &least);
  const int32_t k = int8_limited_steps(e, most);
  *open = !(most < POSITIVE_INFINITY) || k != int8_limited_steps(e, least);
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
      const int32_t made =
          int8_limited_steps(e, int8_value(x, at + (index_t)i, channel + (index_t)i, e));
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
