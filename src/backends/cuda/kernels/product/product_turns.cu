// Products by wgmma (sm_90a) whose operands the copy engine brings (product_stages.h), by blocks
// that stay: two groups of eight warps take tiles in turn, and while one ends its sums the other
// one multiplies. A group has a whole tile of 128 rows.
//
// A group begins when the other one has seen all steps of the tile before: a barrier's phases have
// numbers modulo 2, so that nobody may wait for one before the last but one has ended.
//
// Options besides those of product_stages.h: SHARING 2: two blocks of a cluster take tiles that have
// the same columns and neighbouring rows, and bring half of the weights each, as those of
// product_clusters.cu; FINISH_COLUMNS, BN or half of it: a group ends so many columns at a time, so
// that sums of wide tiles find room beside stages.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#define GROUPS 2
#define GROUP 256  // threads
// Two warps ask for tiles. They are four, so that all of them can leave registers to the groups.
#define N_THREADS (GROUPS * GROUP + 4 * WARP)
#define READERS (GROUP / WARP)
#define FINISH_THREADS GROUP
#define MEET_BEFORE() SYNC_GROUP(GROUP)
#define FINISH_SYNC() SYNC_GROUP(GROUP)

#include "product_bulk_args.h"
#include "product_stages.h"

#define GROUP_BYTES (SUMS_BYTES + PRODUCT_OPEN_BYTES)

#if BM != 128 || STAGES < 2 || BARRIER * (2 * STAGES + GROUPS) > DYNAMIC_ALIGNED || \
    BN > 2 * FINISH_COLUMNS
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

// Tiles that blocks which share take together have numbers, and are the block's each so manieth.
typedef struct turns {
  uint32_t first, step, end;
} turns_t;
DEVICE turns_t find_turns(const product_args_t* a) {
  const uint32_t rows = SHARING * BM;
  const uint32_t down = ((uint32_t)a->m + rows - 1) / rows;
  const turns_t t = {(uint32_t)BLOCK / SHARING, (uint32_t)BLOCKS / SHARING,
                     down * (((uint32_t)a->n + BN - 1) / BN)};
  return t;
}

// Of several, one may lie behind the last row, as in product_clusters.cu.
DEVICE tile_t find_turn(const product_args_t* a, uint32_t number) {
  tile_t t = find_only_tile(a, number, SHARING * BM, BN);
#if SHARING > 1
  t.row += CLUSTER_RANK * BM;
#endif
  return t;
}

// A group's threads put sums of some columns into its shared memory, and end them; then the others.
DEVICE void end_tile(const product_args_t* a, tile_t t, char* memory, int row, const float* sums) {
  put_part(memory, row, sums);
  ROLLED
  for (int from = 0;; from += FINISH_COLUMNS) {
    finish_and_list(a, &t, memory, THREAD % GROUP, false);
    if (from + FINISH_COLUMNS >= BN) return;
    put_part(memory, row, sums + (BN - FINISH_COLUMNS) / 2);
    t.column += FINISH_COLUMNS;
  }
}

// The tiles of a group: every second one of the block's.
DEVICE void multiply_and_finish(const product_bulk_args_t* a, const stages_t* s, char* memory,
                                uint32_t group, int steps) {
  const int row = THREAD % GROUP / (4 * WARP) * 64;
  begin_list(memory, THREAD % GROUP);
  const turns_t turns = find_turns(&a->product);
  float sums[BN / 2];
  ROLLED
  for (uint32_t i = group, at = turns.first + group * turns.step; at < turns.end;
       i += GROUPS, at += GROUPS * turns.step) {
    const tile_t t = find_turn(&a->product, at);
    turn_t turn = turn_of(i * (uint32_t)steps);
    if (i) barrier_wait(begin_of(s, group), (int)((i - 1) / GROUPS % 2));
    const uint32_t last = begin_products(s, (uint32_t)row, steps, &turn, sums);
    if (LANE == 0) barrier_arrive(begin_of(s, 1 - group));
    end_products(sums);
    release(last);
    WAIT_FOR_INPUTS();
    end_tile(&a->product, t, memory, row, sums);
  }
  end_list(&a->product, memory, THREAD % GROUP);
}

DEVICE void ask_for_all_weights(const product_bulk_args_t* a, const stages_t* s, int steps) {
  const turns_t turns = find_turns(&a->product);
  turn_t turn = {0, 0};
  bulk_prepare(&a->w);
  if (!W_CONSTANT) WAIT_FOR_INPUTS();
  ROLLED
  for (uint32_t at = turns.first; at < turns.end; at += turns.step) {
    const tile_t t = find_turn(&a->product, at);
    ask_for_weights(&a->w, &a->product, s, &t, steps, &turn);
  }
}

DEVICE void ask_for_all_left(const product_bulk_args_t* a, const stages_t* s, int steps) {
  const turns_t turns = find_turns(&a->product);
  turn_t turn = {0, 0};
  bulk_prepare(&a->x);
  WAIT_FOR_INPUTS();
  ROLLED
  for (uint32_t at = turns.first; at < turns.end; at += turns.step) {
    tile_t t = find_turn(&a->product, at);
#if SHARING > 1
    t = find_left(&a->product, t);
#endif
    ask_for_left(&a->x, &a->product, s, &t, steps, &turn);
  }
}

#if SHARING > 1
#define BLOCKS_BEGIN SYNC_CLUSTER
// All that blocks of a cluster take: equally many each.
DEVICE uint32_t count_steps(const product_args_t* a, int steps) {
  const turns_t t = find_turns(a);
  return t.first < t.end ? ((t.end - t.first - 1) / t.step + 1) * (uint32_t)steps : 0;
}
#else
#define BLOCKS_BEGIN SYNC
#endif

LARGE_KERNEL(product_turns, product_bulk_args_t, N_THREADS) {
#if HAS_WGMMA
  DYNAMIC(char, bytes);
  char* aligned = align_stages(bytes);
  const stages_t s = find_stages(shared_address(aligned));
  // Behind stages and barriers.
  char* memory = aligned + STAGES_BYTES + DYNAMIC_ALIGNED;
  const int steps = ((int)a.product.k + BK - 1) / BK;
  const uint32_t warp = shuffle_u32((uint32_t)THREAD / WARP, 0);  // the same for all, visibly
  const uint32_t group = warp / READERS;
  if (THREAD == 0) {
    for (uint32_t i = 0; i < GROUPS; i++) barrier_make(begin_of(&s, i), READERS);
    make_barriers(&s);
  }
  BLOCKS_BEGIN();
  LAUNCH_NEXT();
  if (group < GROUPS) {
    MORE_REGISTERS(112);
    multiply_and_finish(&a, &s, memory + group * GROUP_BYTES, group, steps);
  } else {
    FEWER_REGISTERS(32);
    if (warp == GROUPS * READERS && asks_for_warp())
      ask_for_all_weights(&a, &s, steps);
    else if (warp == GROUPS * READERS + 1 && asks_for_warp())
      ask_for_all_left(&a, &s, steps);
  }
#if SHARING > 1
  if (warp == GROUPS * READERS) wait_for_readers(&s, count_steps(&a.product, steps));
#endif
#else  // it compiles, and must not run
  (void)a;
#endif
}
