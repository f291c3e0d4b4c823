// Products by wgmma (sm_90a) whose operands the copy engine brings: a block a tile
// (product_block.h).
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#include "product_block.h"
#include "product_bulk_args.h"

KERNEL_OF_BLOCKS(product_bulk, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  const tile_t t = find_only_tile(&a.product, (uint32_t)BLOCK, BM, BN);
  const float* tile = (const float*)multiply_tile(&a.x, &a.w, &a.product, &t);
  WAIT_FOR_INPUTS();
  finish_tile(&a.product, &t, tile, THREAD);
#else  // it compiles, and must not run
  (void)a;
#endif
}
