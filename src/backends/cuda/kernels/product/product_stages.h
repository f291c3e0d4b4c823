// Products by wgmma (sm_90a) whose operands the copy engine brings: stages of shared memory, which
// one thread each of two warps fills with tiles of the left side and of the weights, and groups of
// four warps multiply. The order of sums, and so the bits, are those of product_wgmma.cu.
//
// Options besides those of product.h: IN f16, bf16 or f32 (tf32), or of integers X_SIGN and W_SIGN,
// s8 or u8; BM x BN, the tile; BK, terms of a step, which are a line of 128 or 64 bytes (128 bytes
// unless it is said); STAGES, steps that shared memory has; DOWN_FIRST 1: tiles are counted down
// the rows first; TURNED 1: columns of a term of the weights lie side by side, 0: terms of a
// column; W_CONSTANT 1: no layer before this one writes the weights. CONV 0: the left side is a
// matrix; 1: windows of a convolution with two axes, whose channels are whole steps. The kernel
// says READERS, the warps that multiply a stage, 64 rows of it four of them, and SHARING, the
// blocks of a cluster that have the same columns, where there are any; SPLIT, those that share out
// the steps of one tile; and W_PARTS, how many matrices, one after the other, have parts of the
// weights: then it multiplies by itself.
//
// Blocks that share ask for a part of the weights each, which comes to all of them: a stage has two
// sides. It is full in a block where all parts have come, whoever asked; and free where the readers
// of all blocks have released it, since what one asks for is written into the memory of all.
// X_SHARING: the same of blocks that have the same rows, and of the left side.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_STAGES_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_STAGES_H_

#include "product_sums.h"
#include "wgmma.h"

#define BYTES_OF_f16 2
#define BYTES_OF_bf16 2
#define BYTES_OF_f32 4
#ifdef IN
#define TERM_BYTES JOINED(BYTES_OF_, IN)
typedef float sum_t;
#define SUM_BITS(x) bits_of(x)
#define HOLD_SUMS hold_sums
#else
#define TERM_BYTES 1
typedef int32_t sum_t;
#define SUM_BITS(x) ((uint32_t)(x))
#define HOLD_SUMS hold_integers
#endif
#ifndef BK
#define BK (128 / TERM_BYTES)
#endif
#ifndef W_PARTS
#define W_PARTS 1
#endif
#define STEP_BYTES (BK * TERM_BYTES)  // of a row or column
#define X_BYTES (BM * STEP_BYTES)
#define W_BYTES (W_PARTS * BN * STEP_BYTES)
#define STAGES_BYTES (STAGES * (X_BYTES + W_BYTES))
#define BARRIER 8  // bytes

#ifndef SHARING
#define SHARING 1
#endif
#ifndef SPLIT
#define SPLIT 1
#endif
#if SPLIT > 1
// The first step of a block of the cluster; the next block's is behind its last one.
DEVICE int find_first_step(const product_args_t* a, uint32_t rank) {
  return ((int)a->k + BK - 1) / BK * (int)rank / SPLIT;
}
#define FIRST_STEP(a) find_first_step(a, CLUSTER_RANK)
#define COUNT_STEPS(a) (find_first_step(a, CLUSTER_RANK + 1) - FIRST_STEP(a))
#else
#define FIRST_STEP(a) 0
#define COUNT_STEPS(a) (((int)(a)->k + BK - 1) / BK)
#endif
#ifndef X_SHARING
#define X_SHARING 1
#endif
#define SHARERS (SHARING * X_SHARING)
#if (SHARING > 1 && X_SHARING > 1) || BM % (8 * X_SHARING) || (CONV && X_SHARING > 1)
#error "no such sharing"
#endif
#define X_PART (BM / X_SHARING)  // rows that are asked for at once
// Columns of the weights that are asked for at once.
#define W_PART (TURNED ? LINE : BN / SHARING)

// Columns of a line of the weights, turned, which only 16 bits are.
#define LINE (TURNED && BN % 64 ? 32 : 64)
#define LINES_OF(bytes) ((bytes) == 128 ? WGMMA_LINE_128 : WGMMA_LINE_64)
// What one product takes: so many bytes of a row or column; how far the next ones lie behind, in
// bytes: in rows; turned, 16 lines.
#define SLICE 32
#define X_NEXT SLICE
#define W_NEXT (TURNED ? 16 * LINE * 2 : SLICE)

#if TERM_BYTES == 4
WGMMA_TF32(multiply_slice, BN)
#elif TERM_BYTES == 2
WGMMA(multiply_slice, IN, BN, TURNED)
#else
WGMMA_8(multiply_slice, X_SIGN, W_SIGN, BN)
#endif

// Shared memory of a block, by addresses: what stages have of each operand, and barriers of each:
// its tiles are there; they are multiplied.
typedef struct stages {
  uint32_t x, w, full, empty;
} stages_t;

// Where they begin in the block's memory: at a multiple of DYNAMIC_ALIGNED.
DEVICE char* align_stages(char* bytes) {
  return bytes + (DYNAMIC_ALIGNED - shared_address(bytes) % DYNAMIC_ALIGNED) % DYNAMIC_ALIGNED;
}

DEVICE stages_t find_stages(uint32_t at) {
  stages_t s;
  s.x = at;
  s.w = s.x + STAGES * X_BYTES;
  s.full = s.w + STAGES * W_BYTES;
  s.empty = s.full + STAGES * BARRIER;
  return s;
}

DEVICE void make_barriers(const stages_t* s) {
  for (int i = 0; i < STAGES; i++) {
    barrier_make(s->full + (uint32_t)i * BARRIER, 2);
    barrier_make(s->empty + (uint32_t)i * BARRIER, READERS * SHARERS);
  }
  BARRIERS_MADE();
}

// The stage of a step, and how many times it was used before, modulo 2.
typedef struct turn {
  uint32_t stage;
  int parity;
} turn_t;

DEVICE void next_turn(turn_t* t) {
  const bool last = t->stage == STAGES - 1;
  t->stage = last ? 0 : t->stage + 1;
  t->parity ^= last;
}

#include "product_windows.h"

// ---- the threads that ask -----------------------------------------------------------------------

// Waits until a step's stage is free: the first time it is.
DEVICE uint32_t begin_step(const stages_t* s, const turn_t* t, int bytes) {
  const uint32_t full = s->full + t->stage * BARRIER;
  barrier_wait(s->empty + t->stage * BARRIER, t->parity ^ 1);
  barrier_expect(full, bytes);
  return full;
}

// Terms from this one on of W_PART columns.
DEVICE void ask_for_part(const tensor_map_t* w, uint32_t to, int column, int term, uint32_t full) {
  const int x = TURNED ? column : term, y = TURNED ? term : column;
#if SHARING > 1
  bulk_tile_multicast(to, w, x, y, full, (1u << SHARING) - 1);
#else
  bulk_tile(to, w, x, y, full);
#endif
}

// Blocks that share ask for parts in turn, and at each step another one begins: so that all ask for
// equally many where their number is odd.
DEVICE bool is_own_part(int part, int step) {
#if SHARING > 1
  return ((uint32_t)(part + step) + CLUSTER_RANK) % SHARING == 0;
#else
  (void)part, (void)step;
  return true;
#endif
}

DEVICE void ask_for_weights(const tensor_map_t* w, const product_args_t* a, const stages_t* s,
                            const tile_t* t, int steps, turn_t* turn) {
  const int first = FIRST_STEP(a);
  (void)a;
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint32_t full = begin_step(s, turn, W_BYTES), to = s->w + turn->stage * W_BYTES;
    UNROLL
    for (int c = 0; c < W_PARTS * BN; c += W_PART)
      if (is_own_part(c / W_PART, i))
        ask_for_part(w, to + (uint32_t)c * STEP_BYTES, (int)t->column + c % BN + c / BN * (int)a->n,
                     (first + i) * BK, full);
    next_turn(turn);
  }
}

DEVICE void ask_for_left(const tensor_map_t* x, const product_args_t* a, const stages_t* s,
                         const tile_t* t, int steps, turn_t* turn) {
#if CONV
  windows_t w = find_windows(a, t);
#if SPLIT > 1
  skip_windows(a, FIRST_STEP(a) * BK, &w);
#endif
#else
  const int first = FIRST_STEP(a);
  (void)a;
#endif
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint32_t full = begin_step(s, turn, X_BYTES), to = s->x + turn->stage * X_BYTES;
#if CONV
    ask_for_windows(x, &w, to, full);
    next_windows(a, &w);
#elif X_SHARING > 1
    const uint32_t part = CLUSTER_RANK * X_PART;
    bulk_tile_multicast(to + part * STEP_BYTES, x, (first + i) * BK, (int)(t->row + part), full,
                        (1u << X_SHARING) - 1);
#else
    bulk_tile(to, x, (first + i) * BK, (int)t->row, full);
#endif
    next_turn(turn);
  }
}

#if SHARING > 1
// The tile whose left side a block multiplies. Behind the last row the engine brings zeros; of
// windows, which begin somewhere in an image, the first ones.
DEVICE tile_t find_left(const product_args_t* a, tile_t t) {
  if (CONV && t.row >= a->m) t.row = 0;
  return t;
}

// Until all readers of both blocks have released all stages: then the other block has what this one
// asked for, and does not reach this one's barriers any more, so that this one may end.
DEVICE void wait_for_readers(const stages_t* s, uint32_t steps) {
  ROLLED
  for (uint32_t i = steps; i < steps + STAGES; i++)
    barrier_wait(s->empty + i % STAGES * BARRIER, (int)(i / STAGES % 2) ^ 1);
}
#endif

// ---- those that multiply ------------------------------------------------------------------------

DEVICE uint64_t describe_terms(uint32_t at) {
  return describe_matrix(at, 16, 8 * STEP_BYTES, LINES_OF(STEP_BYTES));
}
DEVICE uint64_t describe_right(uint32_t w) {
#if TURNED
  return describe_matrix(w, BK * LINE * 2, 8 * LINE * 2, LINES_OF(LINE * 2));
#else
  return describe_terms(w);
#endif
}

// A stage is read no more by this warp.
DEVICE void release(uint32_t empty) {
#if SHARERS > 1
  if (LANE < SHARERS) barrier_arrive_in(empty, (uint32_t)LANE);
#else
  if (LANE == 0) barrier_arrive(empty);
#endif
}

#if W_PARTS == 1
// While a step's products are under way, those of the step before it end, and its memory is free.
// What it gives: the barrier of the last step's memory. The sums, of 64 rows from this one of the
// tile on, are there behind end_products.
DEVICE uint32_t begin_products(const stages_t* s, uint32_t row, int steps, turn_t* turn,
                               sum_t* sums) {
  const uint64_t all_x = describe_terms(s->x + row * STEP_BYTES), all_w = describe_right(s->w);
  uint32_t before = 0;
  UNROLL
  for (int i = 0; i < BN / 2; i++) sums[i] = 0;
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint64_t x = further(all_x, turn->stage * X_BYTES);
    const uint64_t w = further(all_w, turn->stage * W_BYTES);
    barrier_wait(s->full + turn->stage * BARRIER, turn->parity);
    WGMMA_FENCE();
    UNROLL
    for (uint32_t k = 0; k < STEP_BYTES / SLICE; k++)
      multiply_slice(sums, further(x, k * X_NEXT), further(w, k * W_NEXT));
    WGMMA_COMMIT();
    WGMMA_WAIT(1);
    if (i) release(before);
    before = s->empty + turn->stage * BARRIER;
    next_turn(turn);
  }
  return before;
}
#endif
DEVICE void end_products(sum_t* sums) {
  WGMMA_WAIT(0);
  HOLD_SUMS(sums, BN / 2);
}

// Sums of four warps, of 64 rows from this one on and FINISH_COLUMNS, into shared memory.
DEVICE void put_part(void* tile, int row, const sum_t* sums) {
  row += THREAD / WARP % 4 * 16 + LANE / 4;
  UNROLL
  for (int i = 0; i < FINISH_COLUMNS / 2; i += 2)
    put_words(tile, row + i / 2 % 2 * 8, i / 4 * 8 + LANE % 4 * 2, SUM_BITS(sums[i]),
              SUM_BITS(sums[i + 1]));
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_STAGES_H_
