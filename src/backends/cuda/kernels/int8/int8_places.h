// Threads that make OUTS neighbours of a row of a convolution's output, for INT8_TOGETHER channels
// that lie side by side: int8_depthwise.cu, int8_narrow.cu, which say KW, SW, DW and OUTS.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_PLACES_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_PLACES_H_

#include "int8_product.h"

enum { CH = INT8_TOGETHER };

// Of the input, under all windows of a thread.
#define COLUMNS ((OUTS - 1) * SW + (KW - 1) * DW + 1)

DEVICE int32_t byte_of(uint32_t word, int i) { return (int32_t)(X_TYPE)(word >> (8 * i) & 255); }
DEVICE int32_t weight_of(const uint32_t* words, int i) {
  return (int32_t)(int16_t)(words[i / 2] >> (16 * (i % 2)) & 0xffff);
}

// Whether a window has a tap at a column.
DEVICE bool is_read(int column) {
  bool read = false;
  UNROLL for (int o = 0; o < OUTS; o++) {
    const int at = column - o * SW;
    read |= at >= 0 && at % DW == 0 && at / DW < KW;
  }
  return read;
}

#if END
// What belongs to the channels.
typedef struct affine {
  float factor[CH], shift[CH];
} affine_t;
DEVICE affine_t affine_of(const int8_product_args_t* a, int32_t channel) {
  affine_t f;
  UNROLL
  for (int j = 0; j < CH; j++) {
    f.factor[j] = GLOBAL(const float, a->end.factor)[channel + j];
    f.shift[j] = GLOBAL(const float, a->end.shift)[channel + j];
  }
  return f;
}

DEVICE void finish_place(const int8_product_args_t* a, const affine_t* by, index_t at,
                         index_t channel, const uint32_t* sums) {
  const address_t to = a->product.y;
  float f[CH];
  UNROLL
  for (int j = 0; j < CH; j++) f[j] = (float)(int32_t)sums[j] * by->factor[j] + by->shift[j];
  if (int8_is_aligned(&a->end, to)) {
    int8_words_t words;
    int8_read(at, &a->end, &words);
    int8_finish_all(f, &words, at, channel, &a->end, to);
    return;
  }
  UNROLL
  for (int j = 0; j < CH; j++) {
    const index_t i = at + (index_t)j;
    int8_store(&a->end, to, i, int8_value(f[j], i, channel + (index_t)j, &a->end));
  }
}
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_PLACES_H_
