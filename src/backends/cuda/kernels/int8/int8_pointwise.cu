// Pointwise nodes on 8-bit integers: layers without a product.
//
// Options: READS: what f is made of: 0: there is no f; 1: x less its zero point, scaled by channel;
// 2: x, a float. X_TYPE: of its elements. TOGETHER 1: INT8_TOGETHER elements are read and stored at
// once, of as many channels that lie side by side, or of numbers that no channel has a say in.
#include "program.h"

#if READS == 1
DEVICE float find_f(const int8_pointwise_args_t* a, index_t at, index_t channel) {
  return int8_result(&a->end, (int32_t)GLOBAL(const X_TYPE, a->x)[at] - a->zero_x, channel);
}
// The same of INT8_TOGETHER elements from there on.
DEVICE void find_all(const int8_pointwise_args_t* a, index_t at, index_t channel, float* f) {
  const uint32_t word = int8_word(a->x, at);
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++)
    f[i] = int8_result(&a->end, (int32_t)(X_TYPE)(word >> (8 * i) & 255) - a->zero_x,
                       channel + (index_t)i);
}
#elif READS == 2
DEVICE float find_f(const int8_pointwise_args_t* a, index_t at, index_t channel) {
  (void)channel;
  return GLOBAL(const float, a->x)[at];
}
DEVICE void find_all(const int8_pointwise_args_t* a, index_t at, index_t channel, float* f) {
  uint32_t words[INT8_TOGETHER];
  (void)channel;
  READ_16(GLOBAL(const float, a->x) + at, words);
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) f[i] = float_of(words[i]);
}
#else
DEVICE float find_f(const int8_pointwise_args_t* a, index_t at, index_t channel) {
  (void)a, (void)at, (void)channel;
  return 0;
}
DEVICE void find_all(const int8_pointwise_args_t* a, index_t at, index_t channel, float* f) {
  (void)a, (void)at, (void)channel;
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) f[i] = 0;
}
#endif

DEVICE void make_one(const int8_pointwise_args_t* a, index_t at) {
  const index_t channel = at % (index_t)a->channels;
  const float f = find_f(a, at, channel);
  int8_store(&a->end, a->y, at, int8_value(f, at, channel, &a->end));
}

DEVICE void make_all(const int8_pointwise_args_t* a, index_t at) {
  const index_t channel = at % (index_t)a->channels;
  float f[INT8_TOGETHER], y[INT8_TOGETHER];
  int8_words_t words;
  int8_read(at, &a->end, &words);
  find_all(a, at, channel, f);
  int8_values(f, &words, at, channel, &a->end, y);
  int8_store_all(&a->end, a->y, at, y);
}

KERNEL(int8_pointwise, int8_pointwise_args_t, 256) {
  const int64_t first = BLOCK * THREADS + THREAD, all = BLOCKS * THREADS;
  // Where addresses are multiples of 16: those that are wholly there.
  const int64_t pieces = TOGETHER && (a.x | a.y) % 16 == 0 ? a.size / INT8_TOGETHER : 0;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = first; i < pieces; i += all) make_all(&a, (index_t)(i * INT8_TOGETHER));
  for (int64_t i = pieces * INT8_TOGETHER + first; i < a.size; i += all) make_one(&a, (index_t)i);
}
