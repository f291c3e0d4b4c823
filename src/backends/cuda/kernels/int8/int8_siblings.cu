// Several products on 8-bit integers of one left side, as queries, keys and values are, in one
// launch: a block a tile of one of them, which it makes as int8_bulk.cu does. Weights, ends and
// outputs are their own.
//
// Options: those of int8_bulk.cu, without windows and zero points that are read; SIBLINGS: how
// many.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#include "int8_product.h"

#if IS_SIGNED(X_TYPE)
#define X_SIGN s8
#else
#define X_SIGN u8
#endif
#define W_SIGN s8
#define W_CONSTANT 1
#define TURNED 0

#include "int8_siblings_args.h"
#include "product_block.h"
#define SUM_AT(row, column) ((row)*SUM_STEP + (column))
#include "int8_rows.h"

DEVICE int find_sibling(const int8_siblings_args_t* a) {
  int i = 0;
  UNROLL
  for (int k = 1; k < SIBLINGS; k++) i += (uint32_t)BLOCK >= a->of[k].first_block;
  return i;
}

// A sibling as a product of its own.
DEVICE int8_product_args_t product_of(const int8_siblings_args_t* a, const int8_sibling_t* s) {
  int8_product_args_t p;
  p.product.y = s->y;
  p.product.m = a->rows, p.product.n = s->columns, p.product.k = a->terms;
  p.product.y_row = s->columns;
  p.product.bias_step = 0;
  p.start = s->start, p.due = 0, p.step = 0;
  p.end.factor = s->factor, p.end.shift = s->shift, p.end.real = 0;
  p.end.sources[1].scalar = s->scalar;
  p.end.low = s->low, p.end.high = s->high, p.end.scale = s->scale;
  p.end.whole_zero = s->whole_zero;
  p.end.inverse = s->inverse, p.end.least = s->least, p.end.most = s->most;
  return p;
}

KERNEL_OF_BLOCKS(int8_siblings, int8_siblings_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  const int8_sibling_t* s = &a.of[find_sibling(&a)];
  const int8_product_args_t p = product_of(&a, s);
  const tile_t t = find_only_tile(&p.product, (uint32_t)BLOCK - s->first_block, BM, BN);
  columns_t c;
  if (COLUMNS_EARLY) c = find_columns(&p, &t);
  const uint32_t* sums = (const uint32_t*)multiply_tile(&a.x, &s->w, &p.product, &t);
  WAIT_FOR_INPUTS();
  if (!COLUMNS_EARLY) c = find_columns(&p, &t);
  rows_t r = find_rows(&p, &t, &c);
  finish_rows(&p, &t, &c, &r, 0, sums);
#else  // it compiles, and must not run
  (void)a;
#endif
}
