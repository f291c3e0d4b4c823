// Products by wgmma (sm_90a) whose operands the copy engine brings (product_stages.h), by clusters of
// two blocks: their tiles have the same columns and neighbouring rows, so that each brings half of
// the weights for both. The memory behind the multiprocessors then gives a step's weights once
// instead of twice, which it is too slow for with tiles of 128 rows.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#define MULTIPLIERS (BM * 2)  // threads
#define N_THREADS (MULTIPLIERS + 2 * WARP)
#define READERS (MULTIPLIERS / WARP)
#define SHARING 2
#define FINISH_SYNC() SYNC()

#include "product_bulk_args.h"
#include "product_stages.h"

#if BM % 64 || STAGES < 2 || BM * (BN + 8) * 4 > STAGES_BYTES
#error "no such tile"
#endif

// Where the rows' tiles are odd in number, the last cluster of some columns has a block with none:
// it takes part in all that blocks do for each other, with a tile behind the last row, of which
// nothing is stored.
DEVICE tile_t find_shared_tile(const product_args_t* a) {
  tile_t t = find_only_tile(a, (uint32_t)BLOCK / SHARING, SHARING * BM, BN);
  t.row += CLUSTER_RANK * BM;
  return t;
}

#define TOGETHER_BLOCKS (BN > 128 ? 1 : 2)
KERNEL_OF_BLOCKS(product_clusters, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  DYNAMIC(char, bytes);
  char* aligned = align_stages(bytes);
  const stages_t s = find_stages(shared_address(aligned));
  const tile_t t = find_shared_tile(&a.product);
  const int steps = ((int)a.product.k + BK - 1) / BK;
  const uint32_t warp = shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  if (THREAD == 0) make_barriers(&s);
  SYNC_CLUSTER();  // the other block arrives at these barriers, and so do tiles that it asks for
  LAUNCH_NEXT();
  float sums[BN / 2];
  turn_t turn = {0, 0};
  uint32_t last = 0;
  if (warp < READERS) {
    last = begin_products(&s, warp / 4 * 64, steps, &turn, sums);
    end_products(sums);
  } else if (warp == READERS && asks_for_warp()) {
    bulk_prepare(&a.w);
    if (!W_CONSTANT) WAIT_FOR_INPUTS();
    ask_for_weights(&a.w, &a.product, &s, &t, steps, &turn);
  } else if (warp > READERS && asks_for_warp()) {
    const tile_t left = find_left(&a.product, t);
    bulk_prepare(&a.x);
    WAIT_FOR_INPUTS();
    ask_for_left(&a.x, &a.product, &s, &left, steps, &turn);
  }
  SYNC();  // no tile of this block is read any more: sums lie where they were
  if (warp < READERS) {
    release(last);
    put_part(aligned, THREAD / (4 * WARP) * 64, sums);
  }
  if (has_list(STAGES_BYTES)) begin_list(aligned, THREAD);
  SYNC();
  WAIT_FOR_INPUTS();
  if (has_list(STAGES_BYTES))
    finish_and_list(&a.product, &t, aligned, THREAD, true);
  else
    finish_tile(&a.product, &t, (const float*)(void*)aligned, THREAD);
  if (warp == READERS) wait_for_readers(&s, (uint32_t)steps);
#else  // it compiles, and must not run
  (void)a;
#endif
}
