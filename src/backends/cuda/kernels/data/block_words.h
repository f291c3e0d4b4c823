// Words of BITS bits (8 to 128) that are moved as they are.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_BLOCK_WORDS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_BLOCK_WORDS_H_

#include "elements.h"

#if BITS == 128
typedef struct word {
  uint32_t at[4];
} word_t;
DEVICE word_t word_at(const word_t* p) {
  word_t w;
  READ_16(p, w.at);
  return w;
}
DEVICE void put_word(word_t* p, word_t w) { WRITE_16(p, w.at); }
DEVICE word_t word_of(const uint32_t* value) {
  const word_t w = {{value[0], value[1], value[2], value[3]}};
  return w;
}
#else
typedef JOINED(uint, JOINED(BITS, _t)) word_t;
DEVICE word_t word_at(const word_t* p) { return *p; }
DEVICE void put_word(word_t* p, word_t w) { *p = w; }
DEVICE word_t word_of(const uint32_t* value) {
  return (word_t)(value[0] | (uint64_t)value[1] << 32);
}
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_BLOCK_WORDS_H_
