// Products on 8-bit integers by wgmma (sm_90a) whose operands the copy engine brings: a block a
// tile (product_block.h), with sums that are exact modulo 2^32. So blocks of a cluster may share out
// the terms of a tile (SPLIT), where there are few tiles: each ends some rows, of the sums of all.
//
// The weights are constants less their zero points, as signed bytes, terms side by side. What x's
// zero point makes of a sum is known before (`start`), or is taken off of it (`due`); where windows
// reach out of the image the engine brings zeros, so that x's zero point is 0 there.
//
// Options: those of int8_product.h and product_stages.h.
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

#include "int8_bulk_args.h"
#include "product_block.h"
#define SUM_AT(row, column) ((row)*SUM_STEP + (column))
#include "int8_rows.h"

KERNEL_OF_BLOCKS(int8_bulk, int8_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  const tile_t t = find_only_tile(&a.of.product, (uint32_t)BLOCK / SPLIT, BM, BN);
  columns_t c = find_columns(&a.of, &t);
  const uint32_t* sums = (const uint32_t*)multiply_tile(&a.x, &a.w, &a.of.product, &t);
  WAIT_FOR_INPUTS();
  finish_rows(&a.of, &t, &c, find_zero(&a.of), sums);
#if SPLIT > 1
  SYNC_CLUSTER_MEMORY();  // others read its sums until here
#endif
#else  // it compiles, and must not run
  (void)a;
#endif
}
