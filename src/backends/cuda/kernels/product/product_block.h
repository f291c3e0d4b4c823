// A tile of a product by wgmma (sm_90a) whose operands the copy engine brings (product_stages.h),
// made by one block: 64 rows of it a group of four warps. SCALED: product_scaled.h. The kernel says
// DYNAMIC_ALIGNED 1024, where patterns of eight lines begin.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_BLOCK_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_BLOCK_H_

#define MULTIPLIERS (BM * 2)  // threads
#define N_THREADS (MULTIPLIERS + 2 * WARP)
#define READERS (MULTIPLIERS / WARP)

#include "product_stages.h"
#if W_PARTS == 2
#include "product_parts.h"
#endif
#ifdef SCALED
#include "product_scaled.h"
#endif

#if BM % 64 || STAGES < 2 || BM * (BN + 8) * 4 > STAGES_BYTES
#error "no such tile"
#endif

// Other blocks arrive at barriers, and so do tiles that they ask for.
#if SHARERS > 1
#define BLOCKS_BEGIN SYNC_CLUSTER
#else
#define BLOCKS_BEGIN SYNC
#endif

// While one block ends its sums, others multiply.
#define TOGETHER_BLOCKS (BN > 128 || BM > 128 ? 1 : BM > 64 ? 2 : 3)

// All threads of the block take part. What it gives: the tile's sums in shared memory, rows
// SUM_STEP apart.
DEVICE void* multiply_tile(const tensor_map_t* x, const tensor_map_t* w, const product_args_t* a,
                           const tile_t* t) {
  DYNAMIC(char, bytes);
  char* aligned = align_stages(bytes);
  const stages_t s = find_stages(shared_address(aligned));
  const int steps = ((int)a->k + BK - 1) / BK;
  const uint32_t warp = shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  if (THREAD == 0) make_barriers(&s);
  BLOCKS_BEGIN();
  LAUNCH_NEXT();
  sum_t sums[BN / 2];
  turn_t turn = {0, 0};
  if (warp < READERS) {
#if W_PARTS == 2
    multiply_parts(&s, (const float*)(void*)aligned, (int)warp / 4 * 64, steps, sums);
#elif defined(SCALED)
    multiply_scaled(&s, aligned, a, t, (int)warp / 4 * 64, steps, sums);
#else
    begin_products(&s, warp / 4 * 64, steps, &turn, sums);
    end_products(sums);
#endif
  } else if (warp == READERS && asks_for_warp()) {
    bulk_prepare(w);
    if (!W_CONSTANT) WAIT_FOR_INPUTS();
    ask_for_weights(w, a, &s, t, steps, &turn);
  } else if (warp > READERS && asks_for_warp()) {
    bulk_prepare(x);
    WAIT_FOR_INPUTS();
    ask_for_left(x, a, &s, t, steps, &turn);
  }
  SYNC();  // no tile is read any more: sums lie where they were
  if (warp < READERS) put_part(aligned, THREAD / (4 * WARP) * 64, sums);
#ifdef FINISH_SYNC
  if (has_list(STAGES_BYTES)) begin_list(aligned, THREAD);
#endif
  SYNC();
  return aligned;
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_BLOCK_H_
