// Convolutions of few channels a group (depthwise ones above all), directly: each thread makes an
// element of the output by one chain of fused multiply-adds over taps and channels.
//
// Options: those of product.h, with CONV 1 or 2; IN; OPERAND, to what both sides are rounded. The
// output is [rows, matrices * n], so that neighbours are channels; the weights are [matrices, k,
// n]: neighbours, too. With GATE a thread makes an element of either half.
#include "product.h"

DEVICE float sum_of(const product_args_t* a, int64_t place, int64_t channel) {
  const ELEMENT(IN)* x = GLOBAL(const ELEMENT(IN), a->x);
  const ELEMENT(IN)* w = GLOBAL(const ELEMENT(IN), a->w);
  const int64_t made = a->matrices * a->n, group = channel / a->n;
  const tile_t t = {0, 0, group * a->x_step[0], 0, group * a->y_step[0], group};
  const row_t row = find_row(a, &t, place);
  float sum = 0;
  for (int64_t k = 0; k < a->k; k++) {
    const int64_t at = find_term(a, &row, k);
    const float weight = ROUND(OPERAND)(LOAD(IN)(w, k * made + channel));
    sum = FMA(at < 0 ? 0.0F : ROUND(OPERAND)(LOAD(IN)(x, at)), weight, sum);
  }
  return sum;
}

// Element `channel` of a place of the output.
#ifdef GATE
DEVICE void make_element(const product_args_t* a, int64_t place, int64_t channel) {
  float half[2];
  for (int i = 0; i < 2; i++) {
    const int64_t made = channel + i * a->y_row;
    const float sum = sum_of(a, place, made);
    half[i] = ROUND(GATE)(a->bias ? sum + GLOBAL(const float, a->bias)[made] : sum);
  }
  GLOBAL(WORD_OF(PROGRAM_OUT), a->y)
  [place * a->y_row + channel] = TO_WORD(PROGRAM_OUT)(
      program(half[0], half[1], (index_t)place, (index_t)channel, &a->program));
}
#else
DEVICE void make_element(const product_args_t* a, int64_t place, int64_t channel) {
  const int64_t group = channel / a->n;
  const tile_t t = {0, 0, group * a->x_step[0], 0, group * a->y_step[0], group};
  finish_sum(a, &t, place, channel % a->n, sum_of(a, place, channel));
}
#endif

KERNEL(direct_conv, product_args_t, 256) {
  const int64_t size = a.m * a.y_row;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = BLOCK * THREADS + THREAD; i < size; i += BLOCKS * THREADS)
    make_element(&a, i / a.y_row, i % a.y_row);
}
