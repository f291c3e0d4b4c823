// What the kernels of products on 8-bit integers have in common.
//
// Options besides those of product.h: X_TYPE, the left side's (int8_t, uint8_t); ZERO_READ 1: x's
// zero point is read in each run; END 1: what becomes of the sums is in "program.h", 0: they are
// the output.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_PRODUCT_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_PRODUCT_H_

#if END
#include "program.h"
// It is of what the text says.
#include "int8_finish.h"
#else
#include "int8_args.h"
#endif
#include "product.h"

#define IS_SIGNED_int8_t 1
#define IS_SIGNED_uint8_t 0
#define IS_SIGNED(type) JOINED(IS_SIGNED_, type)

DEVICE int32_t find_zero(const int8_product_args_t* a) {
#if ZERO_READ
  return *GLOBAL(const X_TYPE, a->zero_x_at);
#else
  return a->zero_x;
#endif
}

// What is added to a column's sums, modulo 2^32: all but what is due for zero points of the
// weights.
DEVICE uint32_t find_start(const int8_product_args_t* a, const tile_t* t, int64_t column,
                           int32_t zero_x) {
  const int64_t of_all = t->matrix * a->step + column;
  uint32_t sum = 0;
  if (a->start) sum += GLOBAL(const uint32_t, a->start)[of_all];
#if ZERO_READ
  if (a->due) sum -= (uint32_t)zero_x * GLOBAL(const uint32_t, a->due)[of_all];
#else
  (void)zero_x;
#endif
  return sum;
}

// Of sums modulo 2^32, from which all is taken off but what is due for x's zero point where that is
// read.
DEVICE void finish_integer(const int8_product_args_t* a, const tile_t* t, int64_t row,
                           int64_t column, int32_t zero_x, uint32_t sum) {
  const product_args_t* p = &a->product;
  if (row >= p->m || column >= p->n) return;
  const int64_t at = t->y + row * p->y_row + column;
  sum += find_start(a, t, column, zero_x);
#if END
  const index_t c = (index_t)(t->matrix * p->bias_step + column), i = (index_t)at;
  const float f = int8_result(&a->end, (int32_t)sum, c);
  int8_store(&a->end, p->y, i, int8_value(f, i, c, &a->end));
#else
  GLOBAL(uint32_t, p->y)[at] = sum;
#endif
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_PRODUCT_H_
