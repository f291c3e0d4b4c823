// OneHot: which of `depth` elements an index names. Elements of BITS bits; indices of whole numbers
// (-DINDEX=int64_t), or of floats (-DFLOATS -DINDEX=f16), which are cut to whole numbers.
#include "block_words.h"
#include "patterns_args.h"

#ifdef FLOATS
// What is no index names nothing.
DEVICE int64_t index_at(address_t indices, int64_t i) {
  const float x = LOAD(INDEX)(GLOBAL(const ELEMENT(INDEX), indices), i);
  return x > -9e18F && x < 9e18F ? (int64_t)x : (int64_t)0x7fffffffffffffff;
}
#else
DEVICE int64_t index_at(address_t indices, int64_t i) {
  return (int64_t)GLOBAL(const INDEX, indices)[i];
}
#endif

KERNEL(one_hot, one_hot_args_t, 256) {
  const word_t* values = GLOBAL(const word_t, a.values);
  word_t* y = GLOBAL(word_t, a.y);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS) {
    const int64_t row = i / a.inner, outer = row / a.depth;
    int64_t index = index_at(a.indices, outer * a.inner + i % a.inner);
    if (index < 0 && a.from_end) index += a.depth;
    put_word(y + i, word_at(values + (index == row % a.depth)));
  }
}
