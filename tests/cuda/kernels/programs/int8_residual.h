// A text as cuda/int8/end_text.c prints it: a residual.
#include "types.h"
typedef uint32_t index_t;
#define INT8_QUANTIZES 1
#define INT8_BOTH 0
#define INT8_OUT uint8_t
#define INT8_SIGNED 0
#define INT8_INVERSE 1
#include "int8_end.h"
DEVICE float int8_made(float s0, float s1, const int8_end_args_t* e) {
  (void)e;
  return s0 + s1;
}
DEVICE float int8_value(float f, index_t at, index_t channel, const int8_end_args_t* e) {
  (void)f, (void)at, (void)channel;
  const float s0 = f;
  const float s1 = int8_signed(&e->sources[1], at);
  return int8_made(s0, s1, e);
}
typedef struct int8_words {
  uint32_t none;
  uint32_t w1;
} int8_words_t;
DEVICE void int8_read(index_t at, const int8_end_args_t* e, int8_words_t* words) {
  (void)at, (void)e;
  words->none = 0;
  words->w1 = int8_word(e->sources[1].at, at);
}
DEVICE void int8_values(const float* f, const int8_words_t* words, index_t at, index_t channel,
                        const int8_end_args_t* e, float* y) {
  (void)f, (void)words, (void)at, (void)channel;
  const float* s0 = f;
  float s1[INT8_TOGETHER];
  int8_all_signed(&e->sources[1], words->w1, s1);
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) y[i] = int8_made(s0[i], s1[i], e);
}
