// Products by wgmma (sm_90a) whose operands the copy engine brings (product_stages.h), by blocks
// that stay: two groups of eight warps take tiles in turn, and while one ends its sums the other
// one multiplies. A group has a whole tile of 128 rows.
//
// A group begins when the other one has seen all steps of the tile before: a barrier's phases have
// numbers modulo 2, so that nobody may wait for one before the last but one has ended.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#define GROUPS 2
#define GROUP 256  // threads
#define N_THREADS (GROUPS * GROUP + 2 * WARP)
#define READERS (GROUP / WARP)
#define FINISH_THREADS GROUP

#include "product_bulk_args.h"
#include "product_stages.h"

#define SUMS_BYTES (BM * SUM_STEP * 4)  // of a group

#if BM != 128 || STAGES < 2 || 8 * (2 * STAGES + GROUPS) > DYNAMIC_ALIGNED
#error "no such tile"
#endif

DEVICE turn_t turn_of(uint32_t step) {
  const turn_t t = {step % STAGES, (int)(step / STAGES % 2)};
  return t;
}

// The barrier by which a group learns that it may begin.
DEVICE uint32_t begin_of(const stages_t* s, uint32_t group) {
  return s->empty + (STAGES + group) * BARRIER;
}

// The tiles of a group: every second one of the block's.
DEVICE void multiply_and_finish(const product_bulk_args_t* a, const stages_t* s, float* tile,
                                uint32_t group, uint32_t tiles, int steps) {
  const int row = THREAD % GROUP / (4 * WARP) * 64;
  float sums[BN / 2];
  ROLLED
  for (uint32_t i = group, at = (uint32_t)BLOCK + group * (uint32_t)BLOCKS; at < tiles;
       i += GROUPS, at += GROUPS * (uint32_t)BLOCKS) {
    const tile_t t = find_only_tile(&a->product, at, BM, BN);
    turn_t turn = turn_of(i * (uint32_t)steps);
    if (i) barrier_wait(begin_of(s, group), (int)((i - 1) / GROUPS % 2));
    const uint32_t last = begin_products(s, (uint32_t)row, steps, &turn, sums);
    if (LANE == 0) barrier_arrive(begin_of(s, 1 - group));
    end_products(sums);
    release(last);
    WAIT_FOR_INPUTS();
    put_part(tile, row, sums);
    SYNC_GROUP(GROUP);
    finish_tile(&a->product, &t, tile, THREAD % GROUP);
    SYNC_GROUP(GROUP);
  }
}

DEVICE void ask_for_all_weights(const product_bulk_args_t* a, const stages_t* s, uint32_t tiles,
                                int steps) {
  turn_t turn = {0, 0};
  bulk_prepare(&a->w);
  if (!W_CONSTANT) WAIT_FOR_INPUTS();
  ROLLED
  for (uint32_t at = (uint32_t)BLOCK; at < tiles; at += (uint32_t)BLOCKS) {
    const tile_t t = find_only_tile(&a->product, at, BM, BN);
    ask_for_weights(&a->w, &a->product, s, &t, steps, &turn);
  }
}

DEVICE void ask_for_all_left(const product_bulk_args_t* a, const stages_t* s, uint32_t tiles,
                             int steps) {
  turn_t turn = {0, 0};
  bulk_prepare(&a->x);
  WAIT_FOR_INPUTS();
  ROLLED
  for (uint32_t at = (uint32_t)BLOCK; at < tiles; at += (uint32_t)BLOCKS) {
    const tile_t t = find_only_tile(&a->product, at, BM, BN);
    ask_for_left(&a->x, &a->product, s, &t, steps, &turn);
  }
}

LARGE_KERNEL(product_turns, product_bulk_args_t, N_THREADS) {
#if HAS_WGMMA
  DYNAMIC(char, bytes);
  char* aligned = align_stages(bytes);
  const stages_t s = find_stages(shared_address(aligned));
  // Behind stages and barriers.
  float* sums = (float*)(void*)(aligned + STAGES * (X_BYTES + W_BYTES) + DYNAMIC_ALIGNED);
  const int steps = ((int)a.product.k + BK - 1) / BK;
  const uint32_t tiles = (uint32_t)((a.product.m + BM - 1) / BM * ((a.product.n + BN - 1) / BN));
  const uint32_t warp = shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  const uint32_t group = warp / READERS;
  if (THREAD == 0) {
    for (uint32_t i = 0; i < GROUPS; i++) barrier_make(begin_of(&s, i), READERS);
    make_barriers(&s);
  }
  SYNC();
  LAUNCH_NEXT();
  if (group < GROUPS)
    multiply_and_finish(&a, &s, sums + group * (SUMS_BYTES / 4), group, tiles, steps);
  else if (warp == GROUPS * READERS && asks_for_warp())
    ask_for_all_weights(&a, &s, tiles, steps);
  else if (warp > GROUPS * READERS && asks_for_warp())
    ask_for_all_left(&a, &s, tiles, steps);
#else  // it compiles, and must not run
  (void)a;
#endif
}
