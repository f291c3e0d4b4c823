// Depthwise convolutions on 8-bit integers, in pieces of rows: a thread makes OUTS neighbours of a
// row of the output for INT8_TOGETHER channels that lie side by side. What several of its windows
// have in common is read once, as words of four bytes.
//
//   sum (x - zero) w = sum x w - zero sum w,   modulo 2^32
//
// where x is its zero point outside of the image.
//
// Options: those of int8_product.h, with CONV 1; KH x KW taps, SH, SW, DH, DW: strides and
// dilations; MADE: channels, a multiple of INT8_TOGETHER; PRELOAD 1: a thread keeps all of its
// weights, which it reads before the inputs are there. The weights, less their zero points, are
// [taps, channels] of int16. All places of operands fit 31 bits; the first axis is not there.
#define KEEPS_CELLS
#include "int8_places.h"

typedef struct thread {
  int32_t channel, row, first, top, left;  // row: of the output, of all samples; the first place
  uint32_t zeros;                          // four times x's zero point
  const int16_t* weights;                  // of its channels
#if PRELOAD
  uint32_t kept[KH * KW][CH / 2];
#endif
} thread_t;

DEVICE void read_weights(const thread_t* t, int k, uint32_t* words) {
#if PRELOAD
  UNROLL for (int i = 0; i < CH / 2; i++) words[i] = t->kept[k][i];
#else
  READ_8(t->weights + k * MADE, words);
#endif
}

// A row of the kernel. Under the windows lie columns from t->left on; x: of that column. sums: of
// bytes times weights; of: the weights.
DEVICE void add_row(const thread_t* t, const uint8_t* x, int32_t columns, int row, uint32_t* of,
                    uint32_t (*sums)[CH]) {
  uint32_t words[COLUMNS];
  UNROLL
  for (int i = 0; i < COLUMNS; i++) {
    if (!is_read(i)) continue;
    words[i] = t->zeros;
    if ((uint32_t)(t->left + i) < (uint32_t)columns)
      words[i] = *(const uint32_t*)(const void*)(x + i * MADE);
  }
  UNROLL
  for (int s = 0; s < KW; s++) {
    uint32_t weights[CH / 2];
    read_weights(t, row * KW + s, weights);
    UNROLL
    for (int j = 0; j < CH; j++) {
      const int32_t w = weight_of(weights, j);
      of[j] += (uint32_t)w;
      UNROLL
      for (int o = 0; o < OUTS; o++)
        sums[o][j] += (uint32_t)(byte_of(words[o * SW + s * DW], j) * w);
    }
  }
}

KERNEL(int8_depthwise, int8_product_args_t, 128) {
  const product_args_t* p = &a.product;
  const product_axis_t *down = &p->axes[PRODUCT_AXES - 2], *across = &p->axes[PRODUCT_AXES - 1];
  const uint32_t pieces = ((uint32_t)across->out + OUTS - 1) / OUTS;
  const uint32_t i = (uint32_t)BLOCK * (uint32_t)THREADS + (uint32_t)THREAD, piece = i / (MADE / CH);
  const uint32_t line = piece / pieces, sample = line / (uint32_t)down->out;
  const bool inside = line * (uint32_t)across->out < (uint32_t)p->m;
  thread_t t;
  uint32_t sums[OUTS][CH], of[CH];
  t.channel = (int32_t)(i % (MADE / CH) * CH);
  t.row = (int32_t)line;
  t.first = (int32_t)((piece - line * pieces) * OUTS);
  t.left = t.first * SW - across->pad;
  t.top = (int32_t)(line - sample * (uint32_t)down->out) * SH - down->pad;
  t.weights = GLOBAL(const int16_t, p->w) + t.channel;
  UNROLL
  for (int j = 0; j < CH; j++) {
    of[j] = 0;
    UNROLL
    for (int o = 0; o < OUTS; o++) sums[o][j] = 0;
  }
#if PRELOAD
  UNROLL for (int k = 0; k < KH * KW; k++) READ_8(t.weights + k * MADE, t.kept[k]);
#endif
#if END
  const affine_t by = affine_of(&a, t.channel);
#endif
#if END && HAS_CELLS
  int8_keep_cells(&a.end);
  SYNC();
#endif
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  if (!inside) return;
  const int32_t zero_x = find_zero(&a), rows = (int32_t)sample * down->in;
  t.zeros = (uint32_t)(zero_x & 255) * 0x01010101u;
  // Places before the input's first are counted from it, too, and not read.
  const uint8_t* x = GLOBAL(const uint8_t, p->x) + t.channel;
#if KH * KW <= 64
  UNROLL
#else
  ROLLED
#endif
  for (int r = 0; r < KH; r++) {
    const bool there = (uint32_t)(t.top + r * DH) < (uint32_t)down->in;
    const int64_t place = (int64_t)((rows + t.top + r * DH) * across->in + t.left);
    add_row(&t, x + place * MADE, there ? across->in : 0, r, of, sums);
  }
  UNROLL
  for (int j = 0; j < CH; j++) {
    of[j] = 0 - (uint32_t)zero_x * of[j];
    if (a.start) of[j] += GLOBAL(const uint32_t, a.start)[t.channel + j];
  }
  UNROLL
  for (int o = 0; o < OUTS; o++) {
    const int32_t at = (t.row * across->out + t.first + o) * MADE + t.channel;
    if (t.first + o >= across->out) continue;
    UNROLL
    for (int j = 0; j < CH; j++) sums[o][j] += of[j];
#if END
    finish_place(&a, &by, (index_t)at, (index_t)t.channel, sums[o]);
#else
    UNROLL
    for (int j = 0; j < CH; j++) GLOBAL(uint32_t, p->y)[at + j] = sums[o][j];
#endif
  }
}
