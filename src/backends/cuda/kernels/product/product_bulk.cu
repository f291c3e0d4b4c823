// Products by wgmma (sm_90a) whose operands the copy engine brings: a block a tile
// (product_block.h).
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin
#define FINISH_SYNC() SYNC()

#include "product_block.h"
#include "product_bulk_args.h"

KERNEL_OF_BLOCKS(product_bulk, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  const tile_t t = find_only_tile(&a.product, (uint32_t)BLOCK, BM, BN);
  char* sums = (char*)multiply_tile(&a.x, &a.w, &a.product, &t);
  WAIT_FOR_INPUTS();
  if (has_list(STAGES_BYTES))
    finish_and_list(&a.product, &t, sums, THREAD, true);
  else
    finish_tile(&a.product, &t, (const float*)(void*)sums, THREAD);
#else  // it compiles, and must not run
  (void)a;
#endif
}
