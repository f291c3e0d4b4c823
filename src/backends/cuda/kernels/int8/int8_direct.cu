// Convolutions on 8-bit integers, directly: each thread makes an element of the output, out of
// differences to the zero points, which is what such a product is defined as.
//
// Options: those of int8_product.h. Neighbouring threads make neighbouring columns, of all groups:
// the weights, less their zero points, lie as [terms, columns of all groups] for it.
#include "int8_product.h"

KERNEL(int8_direct, int8_product_args_t, 256) {
  const product_args_t* p = &a.product;
  const X_TYPE* x = GLOBAL(const X_TYPE, p->x);
  const int16_t* w = GLOBAL(const int16_t, p->w);
  const int64_t made = p->matrices * p->n, size = p->m * made;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  const int32_t zero_x = find_zero(&a);
  for (int64_t i = BLOCK * THREADS + THREAD; i < size; i += BLOCKS * THREADS) {
    const int64_t matrix = i % made / p->n, column = i % p->n;
    const tile_t t = {0,     0, matrix * p->x_step[0], matrix * p->w_step[0], matrix * p->y_step[0],
                      matrix};
    const row_t row = find_row(p, &t, i / made);
    const int16_t* terms = w + t.w + column * p->w_column;
    uint32_t sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
      const int64_t at = find_term(p, &row, k);
      if (at >= 0)
        sum += (uint32_t)(((int32_t)x[at] - zero_x) * (int32_t)terms[k * p->w_k]);
    }
    finish_integer(&a, &t, i / made, column, zero_x, sum);
  }
}
