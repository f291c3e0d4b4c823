// Convolutions of few channels a group (depthwise ones above all), directly: each thread makes an
// element of the output by one chain of fused multiply-adds over taps and channels.
//
// Options: those of product.h, with CONV 1 or 2; IN; OPERAND, to what both sides are rounded. The
// output is [rows, matrices * n], so that neighbours are channels; the weights are [matrices, k,
// n]: neighbours, too.
#include "product.h"

KERNEL(direct_conv, product_args_t, 256) {
  const ELEMENT(IN)* x = GLOBAL(const ELEMENT(IN), a.x);
  const ELEMENT(IN)* w = GLOBAL(const ELEMENT(IN), a.w);
  const int64_t made = a.matrices * a.n, size = a.m * made;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = BLOCK * THREADS + THREAD; i < size; i += BLOCKS * THREADS) {
    const int64_t channel = i % made, group = channel / a.n, column = channel % a.n;
    const tile_t t = {0, 0, group * a.x_step[0], 0, group * a.y_step[0], group};
    const row_t row = find_row(&a, &t, i / made);
    float sum = 0;
    for (int64_t k = 0; k < a.k; k++) {
      const int64_t at = find_term(&a, &row, k);
      const float weight = ROUND(OPERAND)(LOAD(IN)(w, k * made + channel));
      sum = FMA(at < 0 ? 0.0F : ROUND(OPERAND)(LOAD(IN)(x, at)), weight, sum);
    }
    finish_sum(&a, &t, i / made, column, sum);
  }
}
