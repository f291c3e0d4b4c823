// Products by fused multiply-adds in float32, whose operands the threads that multiply bring
// themselves (product_chains.h, product_tiles.h).
//
// Options besides theirs: STAGES, steps that shared memory has, so that copies of the next ones are
// under way; W_CONSTANT 1: no layer before this one writes the weights.
#define IN f32
#define TURNED (W_FAST == 2)
#define N_THREADS MULTIPLIERS
#include "product_chains.h"
#include "product_tiles.h"

#define X_STEP (GROUPS * BM * BK)  // floats of a step of all groups
#define W_STEP (GROUPS * BN * BK)

KERNEL_OF_BLOCKS(product_fma, product_args_t, N_THREADS, TOGETHER_BLOCKS) {
  DYNAMIC(float, stages);
  SHARED row_t rows[BM];
  const float* x = GLOBAL(const float, a.x);
  const float* w = GLOBAL(const float, a.w);
  float* x_tiles = stages + GROUP * BM * BK;
  float* w_tiles = stages + STAGES * X_STEP + GROUP * BN * BK;
  const tile_t t = find_tile(&a, BM, BN);
  const part_t part = find_part();
  const chains_t c = find_chains(a.k, GROUP);
  float sums[TM][TN];
  clear(sums);
  for (int i = THREAD; i < BM; i += N_THREADS) rows[i] = find_row(&a, &t, t.row + i);
  left_t of_x;
  right_t of_w;
  aim_right(&a, &t, w, c.first, &of_w);
#if W_CONSTANT
  for (int s = 0; s < STAGES - 1; s++) {
    load_right(&a, &t, w, &of_w, w_tiles + s * W_STEP);
    next_right(&a, &of_w);
  }
#endif
  SYNC();
  of_x.k = c.first + LOADER % X_WIDTH * X_TERMS;
  of_x.term = term_at(&a, of_x.k);
  aim_left(&a, rows, x, &of_x);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  // Steps are loaded STAGES - 1 before they are multiplied.
  for (int s = 0; s < STAGES - 1; s++) {
    load_left(&a, rows, x, &of_x, x_tiles + s * X_STEP);
    next_left(&a, rows, x, &of_x);
#if !W_CONSTANT
    load_right(&a, &t, w, &of_w, w_tiles + s * W_STEP);
    next_right(&a, &of_w);
#endif
    COMMIT_COPIES();
  }
  int now = 0, to = STAGES - 1;
  int64_t left = c.end - c.first;
#if GROUPS == 1 && JOINS
  float* waiting_sums = stages + STAGES * (X_STEP + W_STEP);
  const int steps_of_chain = (int)(c.chain / BK);
  int of_chain = 0;
#endif
  for (int s = 0; s < c.steps; s++, left -= BK) {
    WAIT_COPIES(STAGES - 2);
    SYNC();
#if GROUPS == 1 && JOINS
    if (of_chain == steps_of_chain) {
      begin_chain(waiting_sums, s == steps_of_chain, sums);
      of_chain = 0;
    }
    of_chain++;
#endif
    if (of_w.k < c.end) {
      load_left(&a, rows, x, &of_x, x_tiles + to * X_STEP);
      load_right(&a, &t, w, &of_w, w_tiles + to * W_STEP);
      next_left(&a, rows, x, &of_x);
      next_right(&a, &of_w);
    }
    COMMIT_COPIES();
    const float *x_tile = x_tiles + now * X_STEP, *w_tile = w_tiles + now * W_STEP;
    if (left >= BK)
      multiply(x_tile, w_tile, &part, sums);
    else
      multiply_some(x_tile, w_tile, &part, (int)left, sums);
    now = now == STAGES - 1 ? 0 : now + 1;
    to = to == STAGES - 1 ? 0 : to + 1;
  }
#if GROUPS == 1 && JOINS
  add_waiting(waiting_sums, sums);
#endif
  WAIT_COPIES(0);  // of steps past the last one
  SYNC();
  put_all(stages, &part, sums);  // where the steps were
  SYNC();
#if GROUPS > 1
  join_groups(stages, a.k);
  SYNC();
#endif
  finish_tile(&a, &t, stages, THREAD);
}
