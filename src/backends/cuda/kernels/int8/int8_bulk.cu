// Products on 8-bit integers by wgmma (sm_90a) whose operands the copy engine brings
// (product_stages.h): a block a tile, with sums that are exact modulo 2^32. So blocks of a cluster
// may share out the terms of a tile (SPLIT), where there are few tiles: each ends some rows, of the
// sums of all.
//
// The weights are constants less their zero points, as signed bytes, terms side by side. What x's
// zero point makes of a sum is known before (`start`), or is taken off of it (`due`); where windows
// reach out of the image the engine brings zeros, so that x's zero point is 0 there.
//
// Options: those of int8_product.h and product_stages.h.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin
#define KEEPS_CELLS

#include "int8_product.h"

#if IS_SIGNED(X_TYPE)
#define X_SIGN s8
#else
#define X_SIGN u8
#endif
#define W_SIGN s8
#define W_CONSTANT 1
#define TURNED 0

#define MULTIPLIERS (BM * 2)  // threads
#define N_THREADS (MULTIPLIERS + 2 * WARP)
#define READERS (MULTIPLIERS / WARP)

#include "int8_bulk_args.h"
#include "product_stages.h"
#define SUM_AT(row, column) ((row)*SUM_STEP + (column))
#include "int8_rows.h"

#if BM % 64 || STAGES < 2 || BM * (BN + 8) * 4 > STAGES * (X_BYTES + W_BYTES)
#error "no such tile"
#endif

// Sums of all blocks of a tile are there.
#if SPLIT > 1
#define SYNC_SUMS SYNC_CLUSTER_MEMORY
#else
#define SYNC_SUMS SYNC
#endif

// One thread each of two warps.
DEVICE void ask(const int8_bulk_args_t* a, const stages_t* s, const tile_t* t, int steps,
                bool weights) {
  turn_t turn = {0, 0};
  if (weights) {
    bulk_prepare(&a->w);
    ask_for_weights(&a->w, &a->of.product, s, t, steps, &turn);
  } else {
    bulk_prepare(&a->x);
    WAIT_FOR_INPUTS();
    ask_for_left(&a->x, &a->of.product, s, t, steps, &turn);
  }
}

// While one block ends its sums, others multiply. What rows need besides sums is on its way before
// those are there.
#define TOGETHER_BLOCKS (BN > 128 ? 1 : BM > 64 || SPLIT > 1 ? 2 : 3)
KERNEL_OF_BLOCKS(int8_bulk, int8_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  DYNAMIC(char, bytes);
  char* aligned = align_stages(bytes);
  const stages_t s = find_stages(shared_address(aligned));
  const tile_t t = find_only_tile(&a.of.product, (uint32_t)BLOCK / SPLIT, BM, BN);
  const int steps = COUNT_STEPS(&a.of.product);
  const uint32_t warp = shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  columns_t c;
  rows_t r;
  if (COLUMNS_EARLY) c = find_columns(&a.of, &t);
  if (THREAD == 0) make_barriers(&s);
#if END && HAS_CELLS
  int8_keep_cells(&a.of.end);
#endif
  SYNC();
  LAUNCH_NEXT();
  if (warp >= READERS && asks_for_warp()) ask(&a, &s, &t, steps, warp == READERS);
  WAIT_FOR_INPUTS();
  if (ROWS_EARLY) r = find_rows(&a.of, &t, &c);
  sum_t sums[BN / 2];
  if (warp < READERS) {
    turn_t turn = {0, 0};
    begin_products(&s, warp / 4 * 64, steps, &turn, sums);
    end_products(sums);
  }
  SYNC();  // no tile is read any more: sums lie where they were
  if (warp < READERS) put_part(aligned, THREAD / (4 * WARP) * 64, sums);
  SYNC_SUMS();
  if (!COLUMNS_EARLY) c = find_columns(&a.of, &t);
  if (!ROWS_EARLY) r = find_rows(&a.of, &t, &c);
  finish_rows(&a.of, &t, &c, &r, find_zero(&a.of), (const uint32_t*)(void*)aligned);
#if SPLIT > 1
  SYNC_CLUSTER_MEMORY();  // others read its sums until here
#endif
#else  // it compiles, and must not run
  (void)a;
#endif
}
