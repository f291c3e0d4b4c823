// A text as cuda/int8/end_text.c prints it: a GELU, quantized, whose bytes kernels may look up.
#include "types.h"
typedef uint32_t index_t;
#define INT8_QUANTIZES 1
#define INT8_OUT int8_t
#define INT8_SIGNED 1
#define INT8_INVERSE 1
#define INT8_HAS_STEPS
#define INT8_ROUGH GELU
#define INT8_ALPHA 1
#define INT8_CELLS 1024
#include "int8_end.h"
DEVICE float int8_made(float s0, const int8_end_args_t* e) {
  (void)e;
  const double v0 = (double)s0;
  const double v1 = int8_do_Gelu(v0, 0, e->p[0]);
  return (float)v1;
}
DEVICE float int8_value(float f, index_t at, index_t channel, const int8_end_args_t* e) {
  (void)f, (void)at, (void)channel;
  const float s0 = f;
  return int8_made(s0, e);
}
typedef struct int8_words {
  uint32_t none;
} int8_words_t;
DEVICE void int8_read(index_t at, const int8_end_args_t* e, int8_words_t* words) {
  (void)at, (void)e;
  words->none = 0;
}
DEVICE void int8_values(const float* f, const int8_words_t* words, index_t at, index_t channel,
                        const int8_end_args_t* e, float* y) {
  (void)f, (void)words, (void)at, (void)channel;
  const float* s0 = f;
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) y[i] = int8_made(s0[i], e);
}
