// Products by the tensor cores' wgmma (sm_90a): operands in shared memory, sums of one accumulator
// of float32 over steps of 16 terms in ascending order, whatever the tile is: the bits of
// product_mma.cu.
//
// Options besides those of product_tiles.h: IN f16 or bf16; BM x BN, the tile, 64 rows a group of
// four warps; STAGES, steps that shared memory has; W_CONSTANT 1: no layer before this one writes
// the weights.
#include "wgmma.h"

#define N_THREADS (BM * 2)
#define BK 64  // terms of a step: lines of 128 bytes
#define PIECE 8
#define ALIGNED 1024  // where patterns of eight lines begin
// Steps of the weights that are asked for before inputs are there. Copies arrive in order, so that
// the first product waits for all of these.
#define EARLY (!W_CONSTANT ? 0 : STAGES - 2 < 4 ? STAGES - 2 : 4)

// Rows of 128 bytes, whose pieces of 16 bytes change places by the row (wgmma.h).
DEVICE int place(int row, int piece) { return row * BK + (piece ^ (row & 7)) * PIECE; }
#if W_FAST == 2
// Columns of a term: blocks of as many as a line has, of BK lines each.
#define W_TURNED 1
#define LINE (BN % 64 ? 32 : 64)
#define W_LINES (LINE == 64 ? WGMMA_LINE_128 : WGMMA_LINE_64)
DEVICE int wide_place(int row, int piece) {
  const int in_line = piece % (LINE / PIECE);
  const int turn = LINE == 64 ? row & 7 : row >> 1 & 3;
  return piece / (LINE / PIECE) * BK * LINE + row * LINE + (in_line ^ turn) * PIECE;
}
#else
#define W_TURNED 0
#define LINE 64
#endif

#include "product_tiles.h"

#if BM % 64 || STAGES < 3 || BM * (BN + 8) * 4 > STAGES * (BM + BN) * BK * 2
#error "no such tile"
#endif

WGMMA(multiply_16, IN, BN, W_TURNED)

// How far the next 16 terms lie behind: in rows, 32 bytes; turned, 16 lines.
#define X_NEXT 32
#define W_NEXT (W_TURNED ? 16 * LINE * 2 : 32)

// Descriptors of steps at the beginning of their tiles: eight rows are 1024 bytes.
DEVICE uint64_t describe_left(const element_t* x) {
  return describe_matrix(shared_address(x), 16, 1024, WGMMA_LINE_128);
}
DEVICE uint64_t describe_right(const element_t* w) {
#if W_TURNED
  return describe_matrix(shared_address(w), BK * LINE * 2, 8 * LINE * 2, W_LINES);
#else
  return describe_matrix(shared_address(w), 16, 1024, WGMMA_LINE_128);
#endif
}

// A step of a group.
DEVICE void multiply(float* sums, uint64_t x, uint64_t w) {
  UNROLL
  for (int k = 0; k < BK / 16; k++)
    multiply_16(sums, further(x, k * X_NEXT), further(w, k * W_NEXT));
}

LARGE_KERNEL(product_wgmma, product_args_t, N_THREADS) {
  DYNAMIC(element_t, bytes);
  SHARED row_t rows[BM];
  const element_t* x = GLOBAL(const element_t, a.x);
  const element_t* w = GLOBAL(const element_t, a.w);
  element_t* x_tiles = bytes + (ALIGNED - shared_address(bytes) % ALIGNED) % ALIGNED / 2;
  element_t* w_tiles = x_tiles + STAGES * BM * BK;
  const tile_t t = find_tile(&a, BM, BN);
  const int group = (int)shuffle_u32((uint32_t)THREAD / 128, 0);  // the same for all, visibly
  const uint64_t all_x = describe_left(x_tiles + group * 64 * BK), all_w = describe_right(w_tiles);
  float sums[BN / 2];
  UNROLL
  for (int i = 0; i < BN / 2; i++) sums[i] = 0;
  for (int i = THREAD; i < BM; i += N_THREADS) rows[i] = find_row(&a, &t, t.row + i);
  left_t of_x;
  right_t of_w;
  aim_right(&a, &t, w, 0, &of_w);
  for (int s = 0; s < EARLY; s++) {
    load_right(&a, &t, w, &of_w, w_tiles + s * BN * BK);
    next_right(&a, &of_w);
  }
  SYNC();
  of_x.k = THREAD % X_WIDTH * X_TERMS;
  of_x.term = term_at(&a, of_x.k);
  aim_left(&a, rows, x, &of_x);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  // Steps are loaded STAGES - 2 before they are multiplied: while a step's products are under way,
  // those of the step before it may be, too, so that the memory of the one before that is free.
  for (int s = 0; s < STAGES - 2; s++) {
    load_left(&a, rows, x, &of_x, x_tiles + s * BM * BK);
    next_left(&a, rows, x, &of_x);
    if (s >= EARLY) {
      load_right(&a, &t, w, &of_w, w_tiles + s * BN * BK);
      next_right(&a, &of_w);
    }
    COMMIT_COPIES();
  }
  int now = 0, to = STAGES - 2;
  for (int64_t k0 = 0; k0 < a.k; k0 += BK) {
    WAIT_COPIES(STAGES - 3);
    FENCE_ASYNC();
    SYNC();
    WGMMA_FENCE();
    multiply(sums, further(all_x, now * BM * BK * 2), further(all_w, now * BN * BK * 2));
    WGMMA_COMMIT();
    if (of_w.k < a.k) {
      load_left(&a, rows, x, &of_x, x_tiles + to * BM * BK);
      load_right(&a, &t, w, &of_w, w_tiles + to * BN * BK);
      next_left(&a, rows, x, &of_x);
      next_right(&a, &of_w);
    }
    COMMIT_COPIES();
    WGMMA_WAIT(1);
    now = now == STAGES - 1 ? 0 : now + 1;
    to = to == STAGES - 1 ? 0 : to + 1;
  }
  WAIT_COPIES(0);  // of steps past the last one
  WGMMA_WAIT(0);
  hold_sums(sums, BN / 2);
  // Sums lie where the steps were.
  float* tile = (float*)(void*)x_tiles;
  const int row = THREAD / 32 * 16 + LANE / 4;
  SYNC();
  UNROLL
  for (int i = 0; i < BN / 2; i += 2)
    put_sums(tile, row + i / 2 % 2 * 8, i / 4 * 8 + LANE % 4 * 2, sums[i], sums[i + 1]);
  SYNC();
  finish_tile(&a, &t, tile, THREAD);
}
