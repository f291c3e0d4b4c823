// Products of float32 by wgmma (sm_90a) on tf32, whose operands the copy engine brings
// (product_stages.h): a block has one tile, 64 rows of it a group of four warps, each thread of which
// takes what it multiplies of the left side into registers and rounds it there.
//
// PARTS 1: to tf32, as the weights are: the bits of product_mma.cu. PARTS 2: both sides are split,
// x = b + s, b = tf32(x), s = tf32(x - b), and s b, b s, b b are added up, of which the parts left
// out are 2^-22 of a term each. What tensor cores cut off is systematic and grows with the sum, so
// that they add up no more than UNIT terms; these sums are added by float32's own additions, which
// round to nearest. Source: S. Markidis et al., NVIDIA tensor core programmability, performance and
// precision, IPDPSW 2018; H. Ootomo and R. Yokota, Recovering single precision accuracy from tensor
// cores while surpassing the FP32 theoretical peak performance, IJHPCA 36 (2022).
//
// Options besides those of product_stages.h: W_PARTS as PARTS; weights lie by columns.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin

#define MULTIPLIERS (BM * 2)  // threads
#define N_THREADS (MULTIPLIERS + 2 * WARP)
#define READERS (MULTIPLIERS / WARP)
#define TERM_BYTES 4
#define PARTS W_PARTS
#define TURNED 0

#include "product_stages.h"

#if BM % 64 || STAGES < 2 || BM * (BN + 8) * 4 > STAGES * (X_BYTES + W_BYTES)
#error "no such tile"
#endif

#define UNIT 16         // terms
#define SLICE 8         // terms of a wgmma
#define SLICES (UNIT / SLICE)
#define SLICE_BYTES 32  // of a line

WGMMA_TF32(multiply_8, BN)

// What a thread has of the left side of a unit, in parts: words of each slice's.
typedef struct unit {
  uint32_t words[PARTS][SLICES][4];
} unit_t;

#if PARTS == 2
// Rounds towards zero what else were larger than all numbers. What is not finite, or loses that,
// makes sums that are not, which are made again.
DEVICE uint32_t part_of(float x) {
  const uint32_t b = bits_of(x), nearest = (b + 0xfffu + (b >> 13 & 1u)) & ~0x1fffu;
  return (nearest & 0x7f800000u) == 0x7f800000u ? b & ~0x1fffu : nearest;
}
DEVICE uint32_t rest_of(float x, uint32_t part) {
  const uint32_t b = bits_of(x - float_of(part));
  return (b + 0xfffu + (b >> 13 & 1u)) & ~0x1fffu;
}
#endif

// Where a thread's first row lies in a stage, in floats. Of each row of 128 bytes the pieces of 16
// change places: piece p lies where bits of the place change by p.
DEVICE uint32_t place_of(int row) {
  row += THREAD / WARP % 4 * 16 + LANE / 4;
  return (uint32_t)(row * BK + (row & 7) * 4 + LANE % 4);
}

DEVICE void take_unit(const float* stages, uint32_t place, int unit, unit_t* to) {
  UNROLL
  for (int s = 0; s < SLICES; s++) UNROLL
  for (int i = 0; i < 4; i++) {
    const uint32_t piece = (uint32_t)((unit * SLICES + s) * 2 + i / 2);
    const float x = stages[(place ^ piece * 4) + (uint32_t)(i % 2 * 8 * BK)];
#if PARTS == 1
    to->words[0][s][i] = bits_of(round_tf32(x));
#else
    to->words[0][s][i] = part_of(x);
    to->words[1][s][i] = rest_of(x, to->words[0][s][i]);
#endif
  }
}

// w: of this unit's terms. Where there are parts, of the smallest products first.
DEVICE void ask_for_products(float* sums, const unit_t* x, uint64_t w, int adds) {
#if PARTS == 2
  UNROLL
  for (int s = 0; s < SLICES; s++) multiply_8(sums, x->words[1][s], further(w, s * SLICE_BYTES), s);
  UNROLL
  for (int s = 0; s < SLICES; s++)
    multiply_8(sums, x->words[0][s], further(w, BN * LINE_BYTES + s * SLICE_BYTES), 1);
  (void)adds;
#endif
  UNROLL
  for (int s = 0; s < SLICES; s++)
    multiply_8(sums, x->words[0][s], further(w, s * SLICE_BYTES), PARTS == 2 || s || adds);
}

#if PARTS == 2
DEVICE void add_up(float* all, float* sums) {
  hold_sums(sums, BN / 2);
  UNROLL
  for (int i = 0; i < BN / 2; i++) all[i] += sums[i];
}
#endif

// The first half of a step is multiplied while the second one is taken, and that one while the next
// step's first half is.
DEVICE void multiply_all(const stages_t* s, const float* stages, int row, int steps, float* all) {
  const uint64_t all_w = describe_right(s->w);
  turn_t turn = {0, 0};
  unit_t first, second;
  uint32_t before = 0;
#if PARTS == 2
  float sums[BN / 2];
#else
  float* sums = all;
#endif
  UNROLL
  for (int i = 0; i < BN / 2; i++) all[i] = 0;
  const uint32_t own = place_of(row);
  barrier_wait(s->full, 0);
  take_unit(stages, own, 0, &first);
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint64_t w = further(all_w, turn.stage * W_BYTES);
    const uint32_t place = turn.stage * (BM * BK) + own;
    WGMMA_FENCE();
    ask_for_products(sums, &first, w, i);
    WGMMA_COMMIT();
#if PARTS == 1
    WGMMA_WAIT(1);
    if (i) release(before);
#endif
    take_unit(stages, place, 1, &second);
#if PARTS == 2
    WGMMA_WAIT(0);
    add_up(all, sums);
#endif
    WGMMA_FENCE();
    ask_for_products(sums, &second, further(w, SLICES * SLICE_BYTES), 1);
    WGMMA_COMMIT();
    before = s->empty + turn.stage * BARRIER;
    next_turn(&turn);
#if PARTS == 1
    WGMMA_WAIT(1);
#endif
    if (i + 1 < steps) {
      barrier_wait(s->full + turn.stage * BARRIER, turn.parity);
      take_unit(stages, turn.stage * (BM * BK) + own, 0, &first);
    }
#if PARTS == 2
    WGMMA_WAIT(0);
    add_up(all, sums);
    release(before);
#endif
  }
#if PARTS == 1
  end_products(all);
#endif
}

#if PARTS == 2
// Parts make NaN of infinities, and of sums that overflow on the way: what is not finite is made
// again, of the weights' parts, by multiply-adds.
DEVICE float made_again(const product_args_t* a, int64_t row, int64_t column) {
  const tile_t all = {0, 0, 0, 0, 0, 0};
  const row_t r = find_row(a, &all, row);
  const float* x = GLOBAL(const float, a->x);
  const float* w = GLOBAL(const float, a->w) + column * a->w_column;
  float sum = 0;
  ROLLED
  for (int64_t k = 0; k < a->k; k++) {
    const int64_t at = find_term(a, &r, k);
    sum = FMA(at < 0 ? 0.0F : x[at], w[k] + w[a->n * a->w_column + k], sum);
  }
  return sum;
}

DEVICE bool all_are_finite(const float* sums) {
  bool yes = true;
  UNROLL
  for (int i = 0; i < BN / 2; i++) yes &= is_finite(sums[i]);
  return yes;
}

// Those of a thread, where put_part has put them; row: the first of its group's.
DEVICE void mend_sums(const product_args_t* a, const tile_t* t, int row, float* tile) {
  row += THREAD / WARP % 4 * 16 + LANE / 4;
  ROLLED
  for (int i = 0; i < BN / 2; i++) {
    const int down = row + i / 2 % 2 * 8, across = i / 4 * 8 + LANE % 4 * 2 + i % 2;
    float* sum = tile + down * SUM_STEP + across;
    if (!is_finite(*sum) && t->row + down < a->m && t->column + across < a->n)
      *sum = made_again(a, t->row + down, t->column + across);
  }
}
#endif

#define TOGETHER_BLOCKS (BN > 96 || PARTS == 2 ? 1 : 2)
KERNEL_OF_BLOCKS(product_parts, product_bulk_args_t, N_THREADS, TOGETHER_BLOCKS) {
#if HAS_WGMMA
  DYNAMIC(element_t, bytes);
  element_t* aligned = bytes + (DYNAMIC_ALIGNED - shared_address(bytes) % DYNAMIC_ALIGNED) %
                                   DYNAMIC_ALIGNED / TERM_BYTES;
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
    multiply_all(&s, (const float*)(const void*)aligned, (int)warp / 4 * 64, steps, sums);
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
  if (warp < READERS) put_part(tile, (int)warp / 4 * 64, sums);
  WAIT_FOR_INPUTS();
#if PARTS == 2
  if (warp < READERS && !all_are_finite(sums)) mend_sums(&a.product, &t, (int)warp / 4 * 64, tile);
#endif
  SYNC();
  finish_tile(&a.product, &t, tile, THREAD);
#else  // it compiles, and must not run
  (void)a;
#endif
}
