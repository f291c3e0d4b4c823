// Depthwise convolutions of 16-bit values along two axes, by strips: a thread makes OUTS neighbours
// of each of ROWS rows of the output for two channels, by one chain of fused multiply-adds an
// element, over taps in their order, as direct_conv.cu. It goes down the input: a row of that is
// made float32 once, and goes into all rows of the output whose windows have it, each of which is as
// many rows of the kernel further as it lies higher.
//
// A block brings what is under all of its windows into shared memory, where neighbours have it in
// common: LINE words of two channels, ACROSS strips side by side, DOWN below each other, SAMPLES of them.
// Weights lie beside, as float32.
//
// Options: those of product.h, with CONV 1; IN; those named above; N_THREADS, whole warps; TOGETHER_BLOCKS:
// of a multiprocessor; KH x KW taps, strides SH, SW; CHANNELS: of the input and of what is
// made, a multiple of 8; W_CONSTANT 1: no layer before this one writes the weights, [taps, CHANNELS]. The
// first axis is not there; all places of operands fit 31 bits. With GATE a thread does so for either half.
#define CH 2
#ifdef GATE
#define HALVES 2
#else
#define HALVES 1
#endif
#define STORED (CHANNELS / HALVES)
#include "direct_sums.h"

enum { PIECE = 8 };  // channels that are copied at once
#define PIECES (2 * LINE / PIECE)
#define SLOTS ((KH + SH - 1) / SH)  // rows of the output that a row of the input goes into
#define STEPS (ROWS + SLOTS - 1)
#define CHUNK ((STEPS + 3) / 4)  // steps whose inputs are waited for at once
#define CHUNKS ((STEPS + CHUNK - 1) / CHUNK)
#define COLUMNS ((OUTS - 1) * SW + KW)          // of the input, under a row of a strip
#define WIDTH ((ACROSS * OUTS - 1) * SW + KW)   // and under all of a block
#define HEIGHT ((DOWN * ROWS - 1 + SLOTS) * SH)
#define PAIRS ((KW + 1) / 2)  // of taps side by side, which are read at once
// Words of shared memory of a half's inputs, and floats of its weights.
#define INPUTS (SAMPLES * HEIGHT * WIDTH * LINE)
#define WEIGHTS (KH * PAIRS * LINE * 4)

// Where a block's part of the input begins, and of the output; how much of that is there.
typedef struct block {
  int32_t channel, column, row, sample, samples;
} block_t;

DEVICE block_t find_block(const product_args_t* a) {
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const uint32_t groups = (STORED + 2 * LINE - 1) / (2 * LINE);
  const uint32_t columns = ((uint32_t)across->out + ACROSS * OUTS - 1) / (ACROSS * OUTS);
  const uint32_t rows = ((uint32_t)down->out + DOWN * ROWS - 1) / (DOWN * ROWS);
  const uint32_t i = (uint32_t)BLOCK / groups, j = i / columns, sample = j / rows;
  const uint32_t samples = (uint32_t)a->m / (uint32_t)(down->out * across->out);
  const block_t b = {(int32_t)((uint32_t)BLOCK % groups * 2 * LINE),
                     (int32_t)(i % columns * ACROSS * OUTS), (int32_t)(j % rows * DOWN * ROWS),
                     (int32_t)(sample * SAMPLES), (int32_t)samples};
  return b;
}

// Of four floats each: both taps of a pair, both channels of a lane.
DEVICE float* weights_at(float* weights, int row, int pair, int lane) {
  return weights + ((row * PAIRS + pair) * LINE + lane) * 4;
}

DEVICE void bring_weights(const product_args_t* a, const block_t* b, int half, float* weights) {
  const ELEMENT(IN)* w = GLOBAL(const ELEMENT(IN), a->w);
  for (int i = THREAD; i < KH * PAIRS * LINE; i += N_THREADS) {
    const int lane = i % LINE, pair = i / LINE % PAIRS, row = i / LINE / PAIRS;
    const int32_t channel = b->channel + 2 * lane;
    const ELEMENT(IN)* from = w + (row * KW + 2 * pair) * CHANNELS + half * STORED + channel;
    uint32_t taps[2] = {0, 0}, to[4];
    if (channel < STORED) READ_4(from, &taps[0]);
    if (channel < STORED && 2 * pair + 1 < KW) READ_4(from + CHANNELS, &taps[1]);
    UNROLL
    for (int k = 0; k < 4; k++) to[k] = bits_of(FROM_WORDS(IN)(taps, k));
    WRITE_16(weights_at(weights, row, pair, lane), to);
  }
}

// Rows of a chunk of all strips below each other, which begin ROWS * SH rows apart: the last one's go
// on where that of others are those of the strip below. What is not there of the input becomes zeros.
DEVICE void bring_chunk(const product_args_t* a, const block_t* b, int half, int chunk,
                        uint32_t* inputs) {
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const ELEMENT(IN)* x = GLOBAL(const ELEMENT(IN), a->x);
  const int32_t top = b->row * SH - down->pad;
  const int begin = chunk * CHUNK * SH, end = begin + CHUNK * SH;
  ROLLED
  for (int i = THREAD; i < SAMPLES * WIDTH * PIECES; i += N_THREADS) {
    const int place = i / PIECES, inner = place / WIDTH, piece = i % PIECES;
    const int32_t channel = b->channel + piece * PIECE, sample = b->sample + inner;
    const int32_t column = b->column * SW - across->pad + place % WIDTH;
    const bool there = channel < STORED && sample < b->samples &&
                       (uint32_t)column < (uint32_t)across->in;
    const int32_t rows = there ? down->in : 0;
    uint32_t* to = inputs + (inner * HEIGHT * WIDTH + place % WIDTH) * LINE + piece * PIECE / 2;
    const int32_t first = (sample * down->in * across->in + column) * CHANNELS + half * STORED + channel;
    UNROLL
    for (int d = 0; d < DOWN; d++) {
      const int left = HEIGHT - d * ROWS * SH, most = d == DOWN - 1 ? left : ROWS * SH;
      UNROLL_4
      for (int row = begin; row < (end < most ? end : most); row++) {
        const int32_t y = top + d * ROWS * SH + row;
        const bool inside = (uint32_t)y < (uint32_t)rows;
        copy_16(to + (d * ROWS * SH + row) * WIDTH * LINE,
                x + (inside ? first + y * across->in * CHANNELS : 0), inside ? 16 : 0);
      }
    }
  }
}

// All threads of the block meet where a chunk is there.
DEVICE void wait_for_chunk(int chunk) {
  switch (CHUNKS - 1 - chunk) {
    case 0:
      WAIT_COPIES(0);
      break;
    case 1:
      WAIT_COPIES(1);
      break;
    case 2:
      WAIT_COPIES(2);
      break;
    default:
      WAIT_COPIES(3);
  }
  SYNC();
}

// Rows of the input of a step, from a thread's first column on.
DEVICE void read_rows(const uint32_t* inputs, float (*x)[COLUMNS][CH]) {
  UNROLL
  for (int p = 0; p < SH; p++) UNROLL
  for (int i = 0; i < COLUMNS; i++) {
    const uint32_t word = inputs[(p * WIDTH + i) * LINE];
    x[p][i][0] = FROM_WORDS(IN)(&word, 0);
    x[p][i][1] = FROM_WORDS(IN)(&word, 1);
  }
}

// Row r of the kernel, of a row of the input.
DEVICE void add_row(const float (*x)[CH], const float* weights, int r, float (*sums)[CH]) {
  UNROLL
  for (int s = 0; s < KW; s += 2) {
    uint32_t words[4];
    READ_16(weights + (r * PAIRS + s / 2) * LINE * 4, words);
    UNROLL
    for (int i = 0; i < 2 && s + i < KW; i++) UNROLL
    for (int o = 0; o < OUTS; o++) UNROLL
    for (int c = 0; c < CH; c++)
      sums[o][c] = FMA(x[o * SW + s + i][c], float_of(words[2 * i + c]), sums[o][c]);
  }
}

// A thread's place in its block, and in the output.
typedef struct strip {
  int lane, across, down, inner;
  int32_t channel, column, row, sample;
} strip_t;

DEVICE strip_t find_strip(const block_t* b) {
  const int lane = THREAD % LINE, piece = THREAD / LINE, line = piece / ACROSS;
  const strip_t s = {lane,
                     piece % ACROSS,
                     line % DOWN,
                     line / DOWN,
                     b->channel + 2 * lane,
                     b->column + piece % ACROSS * OUTS,
                     b->row + line % DOWN * ROWS,
                     b->sample + line / DOWN};
  return s;
}

DEVICE void store_row(const product_args_t* a, const strip_t* s, int32_t row,
                      const float (*bias)[CH], float (*sums)[OUTS][CH]) {
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const int32_t line = (s->sample * down->out + row) * across->out + s->column;
  if (row >= down->out) return;
  UNROLL
  for (int o = 0; o < OUTS; o++) {
    if (s->column + o >= across->out) continue;
    float made[HALVES * CH];
    UNROLL
    for (int h = 0; h < HALVES; h++) UNROLL
    for (int c = 0; c < CH; c++) made[h * CH + c] = sums[h][o][c] + bias[h][c];
    finish_sums(a, line + o, s->channel, made);
  }
}

// A step: rows of the input go into all rows of the output that have them under their windows.
DEVICE void add_step(const product_args_t* a, const strip_t* s, int step, const uint32_t* inputs,
                     const float* weights, const float (*bias)[CH], float (*sums)[SLOTS][OUTS][CH]) {
  float made[HALVES][OUTS][CH];
  UNROLL
  for (int h = 0; h < HALVES; h++) {
    float x[SH][COLUMNS][CH];
    read_rows(inputs + h * INPUTS + step * SH * WIDTH * LINE, x);
    UNROLL
    for (int j = SLOTS - 1; j >= 0; j--) {
      float now[OUTS][CH];
      if (step < j || step - j >= ROWS) continue;
      UNROLL
      for (int o = 0; o < OUTS; o++) UNROLL
      for (int c = 0; c < CH; c++) now[o][c] = j == 0 ? 0 : sums[h][j][o][c];
      UNROLL
      for (int p = 0; p < SH; p++)
        if (j * SH + p < KH) add_row(x[p], weights + h * WEIGHTS, j * SH + p, now);
      UNROLL
      for (int o = 0; o < OUTS; o++) UNROLL
      for (int c = 0; c < CH; c++)
        if (j == SLOTS - 1)
          made[h][o][c] = now[o][c];
        else
          sums[h][j + 1][o][c] = now[o][c];
      if (j == SLOTS - 1 && h == HALVES - 1) store_row(a, s, s->row + step - j, bias, made);
    }
  }
}

KERNEL_OF_BLOCKS(depthwise_strips, product_args_t, N_THREADS, TOGETHER_BLOCKS) {
  DYNAMIC(uint32_t, inputs);
  float* weights = (float*)(inputs + HALVES * INPUTS);
  const block_t b = find_block(&a);
  const strip_t s = find_strip(&b);
  const bool works = s.inner < SAMPLES && s.sample < b.samples && s.channel < STORED;
  const int first = (s.inner * HEIGHT + s.down * ROWS * SH) * WIDTH + s.across * OUTS * SW;
  float sums[HALVES][SLOTS][OUTS][CH] = {0};  // of so many times SH rows of the kernel
  float bias[HALVES][CH];
  UNROLL
  for (int h = 0; h < HALVES; h++) UNROLL
  for (int c = 0; c < CH; c++)  // -0: what is added to it stays what it is
    bias[h][c] =
        works && a.bias ? GLOBAL(const float, a.bias)[h * STORED + s.channel + c] : -0.0F;
  if (W_CONSTANT)
    for (int h = 0; h < HALVES; h++) bring_weights(&a, &b, h, weights + h * WEIGHTS);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  ROLLED
  for (int chunk = 0; chunk < CHUNKS; chunk++) {
    ROLLED
    for (int h = 0; h < HALVES; h++) bring_chunk(&a, &b, h, chunk, inputs + h * INPUTS);
    COMMIT_COPIES();
  }
  if (!W_CONSTANT)
    for (int h = 0; h < HALVES; h++) bring_weights(&a, &b, h, weights + h * WEIGHTS);
  ROLLED
  for (int step = 0; step < STEPS; step++) {
    if (step % CHUNK == 0) wait_for_chunk(step / CHUNK);
    if (works)
      add_step(&a, &s, step, inputs + first * LINE + s.lane, weights_at(weights, 0, 0, s.lane),
               bias, sums);
  }
}
