// Convolutions on 8-bit integers of few input channels, such as an image has, in pieces of rows: a
// thread makes OUTS neighbours of a row of the output for INT8_TOGETHER channels that lie side by
// side. Windows of so few bytes would be gathered for tensor cores first; here what several windows
// have in common is read once.
//
//   sum (x - zero) w = sum x w - zero sum w,   modulo 2^32
//
// where x is its zero point outside of the image.
//
// Options: those of int8_product.h, with CONV 1; KH x KW taps, SH, SW, DH, DW: strides and
// dilations; CHANNELS of the input; MADE: of the output, a multiple of INT8_TOGETHER; ZERO 0: the
// zero point is 0. The weights, less their zero points, are [taps, channels, MADE] of int16. All
// places of operands fit 31 bits; the first axis is not there.
#include "int8_places.h"

typedef struct thread {
  int32_t channel, row, first, top, left;  // row: of the output, of all samples; the first place
  int32_t zero;                            // x's zero point, a byte
  const int16_t* weights;                  // of its channels
} thread_t;

// A row of the kernel. Under the windows lie columns from t->left on; x: of that column. sums: of
// bytes times weights; of: the weights.
DEVICE void add_row(const thread_t* t, const uint8_t* x, int32_t columns, int row, uint32_t* of,
                    uint32_t (*sums)[CH]) {
  int32_t bytes[COLUMNS][CHANNELS];
  UNROLL
  for (int i = 0; i < COLUMNS; i++) {
    if (!is_read(i)) continue;
    const bool inside = (uint32_t)(t->left + i) < (uint32_t)columns;
    UNROLL
    for (int c = 0; c < CHANNELS; c++)
      bytes[i][c] = inside ? (int32_t)(X_TYPE)x[i * CHANNELS + c] : t->zero;
  }
  UNROLL
  for (int s = 0; s < KW; s++) UNROLL
  for (int c = 0; c < CHANNELS; c++) {
    uint32_t weights[CH / 2];
    READ_8(t->weights + ((row * KW + s) * CHANNELS + c) * MADE, weights);
    UNROLL
    for (int j = 0; j < CH; j++) {
      const int32_t w = weight_of(weights, j);
      if (ZERO) of[j] += (uint32_t)w;
      UNROLL
      for (int o = 0; o < OUTS; o++) sums[o][j] += (uint32_t)(bytes[o * SW + s * DW][c] * w);
    }
  }
}

KERNEL(int8_narrow, int8_product_args_t, 128) {
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
#if END
  const affine_t by = affine_of(&a, t.channel);
#endif
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  if (!inside) return;
  const int32_t zero_x = find_zero(&a), rows = (int32_t)sample * down->in;
  t.zero = zero_x;
  // Places before the input's first are counted from it, too, and not read.
  const uint8_t* x = GLOBAL(const uint8_t, p->x);
  ROLLED
  for (int r = 0; r < KH; r++) {
    const bool there = (uint32_t)(t.top + r * DH) < (uint32_t)down->in;
    const int64_t place = (int64_t)((rows + t.top + r * DH) * across->in + t.left);
    add_row(&t, x + place * CHANNELS, there ? across->in : 0, r, of, sums);
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
