// Products by wgmma (sm_90a) whose operands the copy engine brings, a block a tile
// (product_block.h), and a normalization of their rows in the same launch: blocks whose tiles are
// whole rows together are a cluster, CLUSTER of them, and share the rows out when all have stored
// their tiles. X_SHARING: as product_stages.h has it. Options of the normalization: norm_rows.h.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#include "norm_rows.h"
#include "product_block.h"
#include "product_bulk_args.h"

#if CLUSTER > 1
#define SYNC_ROWS SYNC_CLUSTER_MEMORY
#define RANK ((int)CLUSTER_RANK)
#else
#define SYNC_ROWS SYNC
#define RANK 0
#endif

KERNEL_OF_BLOCKS(product_norm, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  enum { WARPS = N_THREADS / WARP };
  const tile_t t = find_only_tile(&a.product, (uint32_t)BLOCK, BM, BN);
  const float* tile = (const float*)multiply_tile(&a.x, &a.w, &a.product, &t);
  WAIT_FOR_INPUTS();
  finish_tile(&a.product, &t, tile, THREAD);
  SYNC_ROWS();
  const int64_t left = a.product.m - t.row;
  norm_rows(&a.product.norm, a.product.y, t.row, t.row + (left < BM ? left : BM), (int)a.product.n,
            THREAD / WARP * CLUSTER + RANK, WARPS * CLUSTER);
#else  // it compiles, and must not run
  (void)a;
#endif
}
