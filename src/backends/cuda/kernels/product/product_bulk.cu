// Products by wgmma (sm_90a) whose operands the copy engine brings (product_stages.h): a block has
// one tile, 64 rows of it a group of four warps.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#define MULTIPLIERS (BM * 2)  // threads
#define N_THREADS (MULTIPLIERS + 2 * WARP)
#define READERS (MULTIPLIERS / WARP)

#include "product_stages.h"

#if BM % 64 || STAGES < 2 || BM * (BN + 8) * 4 > STAGES * (X_BYTES + W_BYTES)
#error "no such tile"
#endif

// While one block ends its sums, others multiply.
#define TOGETHER_BLOCKS (BN > 128 ? 1 : BM > 64 ? 2 : 3)
KERNEL_OF_BLOCKS(product_bulk, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  DYNAMIC(element_t, bytes);
  element_t* aligned =
      bytes + (DYNAMIC_ALIGNED - shared_address(bytes) % DYNAMIC_ALIGNED) % DYNAMIC_ALIGNED / 2;
  const stages_t s = find_stages(shared_address(aligned));
  const tile_t t = find_only_tile(&a.product, (uint32_t)BLOCK, BM, BN);
  const int steps = ((int)a.product.k + BK - 1) / BK;
  const uint32_t warp = shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  if (THREAD == 0) make_barriers(&s);
  SYNC();
  LAUNCH_NEXT();
  float sums[BN / 2];
  turn_t turn = {0, 0};
  if (warp < READERS) {
    begin_products(&s, warp / 4 * 64, steps, &turn, sums);
    end_products(sums);
  } else if (warp == READERS && asks_for_warp()) {
    bulk_prepare(&a.w);
    if (!W_CONSTANT) WAIT_FOR_INPUTS();
    ask_for_weights(&a, &s, &t, steps, &turn);
  } else if (warp > READERS && asks_for_warp()) {
    bulk_prepare(&a.x);
    WAIT_FOR_INPUTS();
    ask_for_left(&a, &s, &t, steps, &turn);
  }
  SYNC();  // no tile is read any more: sums lie where they were
  float* tile = (float*)(void*)aligned;
  if (warp < READERS) put_part(tile, THREAD / (4 * WARP) * 64, sums);
  SYNC();
  WAIT_FOR_INPUTS();
  finish_tile(&a.product, &t, tile, THREAD);
#else  // it compiles, and must not run
  (void)a;
#endif
}
