// Convolutions of few channels a group, directly, in pieces of rows: a thread makes OUTS neighbours
// of a row of the output for CH channels that lie side by side, each by one chain of fused
// multiply-adds over taps and channels, as direct_conv.cu. What several of its windows have in
// common is read once.
//
// Options: those of product.h, with CONV 1; IN; OPERAND, to what both sides are rounded; KH x KW
// taps, SH, SW, DH, DW: strides and dilations; MADE, READ: channels of the output and the input, of
// all groups, so that steps between neighbours are constants. DEPTHWISE 1: each channel is its own
// group; 0: the CH channels are of one group, which reads OF_GROUP of the input. The weights are
// [taps, OF_GROUP, channels made]; PRELOAD 1: a thread keeps all of its own, which it reads before the
// inputs are there. With GATE a thread does so for CH channels of either half, of which CH of the
// output become. All places of operands fit 31 bits; the first axis is not there.
#ifdef GATE
#define HALVES 2
#else
#define HALVES 1
#endif
#define STORED (MADE / HALVES)  // channels that lie side by side in the output
#include "direct_sums.h"

#define X_CHANNELS (DEPTHWISE ? CH : OF_GROUP)            // that are read at a place
#define COLUMNS ((OUTS - 1) * SW + (KW - 1) * DW + 1)  // of the input, under all windows

// N elements as they lie in memory, in words.
#define WORDS(n) (((n) * (int)sizeof(ELEMENT(IN)) + 3) / 4)

DEVICE void read_words(const ELEMENT(IN) * p, int n, uint32_t* words) {
  const int bytes = n * (int)sizeof *p;
  if (bytes == 16)
    READ_16(p, words);
  else if (bytes == 8)
    READ_8(p, words);
  else if (bytes == 4)
    READ_4(p, words);
  else
    words[0] = *(const uint16_t*)p;
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

typedef struct weights {
  const ELEMENT(IN) * at;  // of the thread's channels
#if PRELOAD
  uint32_t words[KH * KW * OF_GROUP][WORDS(CH)];
#endif
} weights_t;

DEVICE void weights_of(const weights_t* w, int k, float* values) {
#if PRELOAD
  const uint32_t* words = w->words[k];
#else
  uint32_t words[WORDS(CH)];
  read_words(w->at + k * MADE, CH, words);
#endif
  UNROLL for (int j = 0; j < CH; j++) values[j] = ROUND(OPERAND)(FROM_WORDS(IN)(words, j));
}

// A row of the kernel, whose weights begin at term k; under the windows lie columns from `column`
// on, of which those that are not in [0, columns) are zeros. x: of that column.
DEVICE void add_row(const ELEMENT(IN) * x, int32_t column, int32_t columns, const weights_t* w,
                    int k, float (*sums)[CH]) {
  uint32_t words[COLUMNS][WORDS(X_CHANNELS)];
  UNROLL
  for (int i = 0; i < COLUMNS; i++) {
    if (!is_read(i)) continue;
    UNROLL for (int j = 0; j < WORDS(X_CHANNELS); j++) words[i][j] = 0;
    if ((uint32_t)(column + i) < (uint32_t)columns) read_words(x + i * READ, X_CHANNELS, words[i]);
  }
  UNROLL
  for (int s = 0; s < KW; s++) UNROLL
  for (int c = 0; c < OF_GROUP; c++) {
    float weight[CH];
    weights_of(w, k + s * OF_GROUP + c, weight);
    UNROLL
    for (int o = 0; o < OUTS; o++) UNROLL
    for (int j = 0; j < CH; j++) {
      const float value = FROM_WORDS(IN)(words[o * SW + s * DW], DEPTHWISE ? j : c);
      sums[o][j] = FMA(ROUND(OPERAND)(value), weight[j], sums[o][j]);
    }
  }
}

// All rows of the kernel, of which the first one is at `top`. x: of the sample's first place, whose
// row is `row`.
DEVICE void add_rows(const product_args_t* a, const ELEMENT(IN) * x, int32_t row, int32_t top,
                     int32_t left, const weights_t* w, float (*sums)[CH]) {
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
#if KH * KW * OF_GROUP <= 64
  UNROLL
#else
  ROLLED
#endif
  for (int r = 0; r < KH; r++) {
    const bool there = (uint32_t)(top + r * DH) < (uint32_t)down->in;
    const int64_t place = (int64_t)((row + top + r * DH) * across->in + left);
    add_row(x + place * READ, left, there ? across->in : 0, w, r * KW * OF_GROUP, sums);
  }
}

// The first channel that is read for these.
DEVICE int32_t first_read(int32_t channel) {
  return DEPTHWISE ? channel : channel / (MADE / (READ / OF_GROUP)) * OF_GROUP;
}

// What is there of CH channels before the inputs are.
DEVICE void begin_half(const product_args_t* a, int32_t channel, bool inside, weights_t* w,
                       float* bias, float (*sums)[CH]) {
  w->at = GLOBAL(const ELEMENT(IN), a->w) + channel;
  UNROLL
  for (int o = 0; o < OUTS; o++) UNROLL
  for (int j = 0; j < CH; j++) sums[o][j] = 0;
#if PRELOAD
  if (inside) UNROLL
  for (int k = 0; k < KH * KW * OF_GROUP; k++) read_words(w->at + k * MADE, CH, w->words[k]);
#endif
  UNROLL
  for (int j = 0; j < CH; j++)
    bias[j] = inside && a->bias ? GLOBAL(const float, a->bias)[channel + j] : 0;
}

KERNEL(direct_conv_row, product_args_t, 128) {
  const product_axis_t *down = &a.axes[PRODUCT_AXES - 2], *across = &a.axes[PRODUCT_AXES - 1];
  const uint32_t pieces = ((uint32_t)across->out + OUTS - 1) / OUTS;
  const uint32_t i = (uint32_t)BLOCK * (uint32_t)THREADS + (uint32_t)THREAD,
                 piece = i / (STORED / CH);
  const uint32_t line = piece / pieces, sample = line / (uint32_t)down->out;
  const int32_t channel = (int32_t)(i % (STORED / CH) * CH);
  const int32_t first = (int32_t)((piece - line * pieces) * OUTS);
  const int32_t left = first * SW - across->pad;
  const int32_t top = (int32_t)(line - sample * (uint32_t)down->out) * SH - down->pad;
  const bool inside = line * (uint32_t)across->out < (uint32_t)a.m;
  weights_t w[HALVES];
  float sums[HALVES][OUTS][CH], bias[HALVES][CH];
  UNROLL
  for (int h = 0; h < HALVES; h++)
    begin_half(&a, channel + h * STORED, inside, &w[h], bias[h], sums[h]);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  if (!inside) return;
  // Places before the input's first are counted from it, too, and not read.
  const ELEMENT(IN)* x = GLOBAL(const ELEMENT(IN), a.x);
  const int32_t row = (int32_t)sample * down->in;
  UNROLL
  for (int h = 0; h < HALVES; h++)
    add_rows(&a, x + first_read(channel + h * STORED), row, top, left, &w[h], sums[h]);
  UNROLL
  for (int o = 0; o < OUTS; o++) {
    float made[HALVES * CH];
    if (first + o >= across->out) continue;
    UNROLL
    for (int h = 0; h < HALVES; h++) UNROLL
    for (int j = 0; j < CH; j++)
      made[h * CH + j] = a.bias ? sums[h][o][j] + bias[h][j] : sums[h][o][j];
    finish_sums(&a, (int32_t)line * across->out + first + o, channel, made);
  }
}
