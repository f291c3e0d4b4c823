// What follows a product whose sums lie in memory as float32, one row after the other: `x` of the
// arguments, of which rows have a multiple of 8.
#include "product.h"

KERNEL(finish_sums, product_args_t, 256) {
  const tile_t t = {0, 0, 0, 0, 0, 0};
  const ending_t e = {0, 0};
  const uint32_t columns = (uint32_t)a.n, all = (uint32_t)a.m * columns;
  const float* sums = GLOBAL(const float, a.x);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (uint32_t i = ((uint32_t)BLOCK * (uint32_t)THREADS + (uint32_t)THREAD) * TOGETHER; i < all;
       i += (uint32_t)BLOCKS * (uint32_t)THREADS * TOGETHER) {
    float together[TOGETHER], bias[TOGETHER] = {0};
    const uint32_t row = i / columns, column = i - row * columns;
    take_bias(&a, &t, column, columns_left(&a, column), bias);
    UNROLL
    for (int j = 0; j < TOGETHER; j += 4) read_four(sums + i + j, together + j);
    uint32_t open = finish_together(&a, &e, row, column, bias, together);
#if PROGRAM_IS_ROUGH
    for (; open; open &= open - 1) {
      const int j = lowest_bit(open);
      finish_open(&a, &e, row, column + (uint32_t)j, sums[i + (uint32_t)j], pick(bias, j));
    }
#else
    (void)open;
#endif
  }
}
