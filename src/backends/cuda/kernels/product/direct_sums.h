// Direct convolutions whose threads hold CH channels that lie side by side: what words of operands
// are, and what becomes of CH sums.
//
// Options: those of product.h; IN. Whoever includes it defines CH, and STORED: channels that lie
// side by side in the output.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_DIRECT_SUMS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_DIRECT_SUMS_H_

#include "product.h"
#include "vectors.h"

// Element i of words, as they lie in memory.
#define FROM_WORDS(type) JOINED(word_value_, type)
DEVICE float word_value_f32(const uint32_t* words, int i) { return float_of(words[i]); }
DEVICE float word_value_f16(const uint32_t* words, int i) {
  return f16_to_f32((f16_t)(words[i / 2] >> 16 * (i % 2) & 0xffff));
}
DEVICE float word_value_bf16(const uint32_t* words, int i) {
  return bf16_to_f32((bf16_t)(words[i / 2] >> 16 * (i % 2) & 0xffff));
}

#ifdef GATE
// What becomes of CH sums of either half.
DEVICE void finish_sums(const product_args_t* a, int32_t row, int32_t channel, float* sums) {
  const int32_t at = row * STORED + channel;
  UNROLL
  for (int j = 0; j < 2 * CH; j++) sums[j] = ROUND(GATE)(sums[j]);
#if PROGRAM_VECTOR > 1 && CH == PROGRAM_VECTOR
  value_t values[PROGRAM_VECTOR];
  program_vector(sums, (index_t)row, (index_t)channel, &a->program, values);
  STORE_VECTOR(PROGRAM_OUT, GLOBAL(WORD_OF(PROGRAM_OUT), a->y) + at, values)
#else
  float values[CH];
  UNROLL
  for (int j = 0; j < CH; j++)
    values[j] = program(sums[j], sums[CH + j], (index_t)row, (index_t)(channel + j), &a->program);
  STORE_N(CH, OUT)(GLOBAL(ELEMENT(OUT), a->y), at, values);
#endif
}
#else
// As finish_sum of product.h, of CH columns.
DEVICE void finish_sums(const product_args_t* a, int32_t row, int32_t channel, float* sum) {
  const int32_t at = row * STORED + channel;
#if EPILOGUE && PROGRAM_VECTOR > 1 && CH % PROGRAM_VECTOR == 0
  UNROLL
  for (int j = 0; j < CH; j += PROGRAM_VECTOR) {
    value_t y[PROGRAM_VECTOR];
    program_vector(sum + j, (index_t)row, (index_t)(channel + j), &a->program, y);
    STORE_VECTOR(PROGRAM_OUT, GLOBAL(WORD_OF(PROGRAM_OUT), a->y) + at + j, y)
  }
#else
#if EPILOGUE
  UNROLL
  for (int j = 0; j < CH; j++)
    sum[j] = program(sum[j], (index_t)row, (index_t)(channel + j), &a->program);
#endif
  STORE_N(CH, OUT)(GLOBAL(ELEMENT(OUT), a->y), at, sum);
#endif
}
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_DIRECT_SUMS_H_
