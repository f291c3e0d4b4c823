// Products whose left side's columns are multiplied by numbers that so many rows share (SCALED), as
// those of the channels of an image are by squeeze-excite: a step's rows are scaled where they have
// arrived, while the step before is multiplied, and rounded to their type, as they would be stored.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SCALED_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SCALED_H_

#include "product_stages.h"

#define GROUP_THREADS (4 * WARP)
#define GROUP_ROWS 64
#define PIECE 8  // elements of 16 bytes
#define PIECES (STEP_BYTES / 16)
#define ROWS_APART (GROUP_THREADS / PIECES)  // of a thread
#define OF_THREAD (GROUP_ROWS / ROWS_APART)

#if TERM_BYTES != 2 || STEP_BYTES != 128
#error "rows are scaled in lines of 64 elements of 16 bits"
#endif

// A thread has one piece of some rows. Of each its place in a stage, and where the numbers are that
// multiply its first piece in a step; -1: it is behind the last row.
typedef struct scaled {
  const ELEMENT(IN) * numbers;
  int32_t first[OF_THREAD];
  uint32_t places[OF_THREAD];
} scaled_t;

// Brings the numbers for a group's rows, from `row` of the tile on. numbers: of the group, in
// shared memory.
DEVICE scaled_t bring_numbers(const product_args_t* a, const tile_t* t, int row,
                              ELEMENT(IN) * numbers) {
  const ELEMENT(IN)* from = GLOBAL(const ELEMENT(IN), a->scale);
  const int thread = THREAD % GROUP_THREADS, k = (int)a->k;
  const int64_t begin = t->row + row, left = a->m - begin;
  const int rows = left < GROUP_ROWS ? (int)left : GROUP_ROWS;
  const int64_t shared = begin / a->scale_rows;
  const int within = (int)(begin - shared * a->scale_rows);
  const int size = rows > 0 ? ((within + rows - 1) / a->scale_rows + 1) * k : 0;
  scaled_t s;
  s.numbers = numbers;
  for (int i = thread * PIECE; i < size; i += GROUP_THREADS * PIECE) {
    uint32_t words[4];
    READ_16(from + shared * k + i, words);
    WRITE_16(numbers + i, words);
  }
  UNROLL
  for (int i = 0; i < OF_THREAD; i++) {
    const int own = thread / PIECES + i * ROWS_APART, piece = thread % PIECES;
    s.first[i] = own < rows ? (within + own) / a->scale_rows * k + piece * PIECE : -1;
    s.places[i] = (uint32_t)((row + own) * STEP_BYTES + (piece ^ (own & 7)) * 16);
  }
  return s;
}

#define VALUE JOINED(IN, _to_f32)
#define TWO_VALUES JOINED(two_, IN)

DEVICE uint32_t scale_pair(uint32_t x, uint32_t by) {
  return TWO_VALUES(VALUE((ELEMENT(IN))(x & 0xffff)) * VALUE((ELEMENT(IN))(by & 0xffff)),
                    VALUE((ELEMENT(IN))(x >> 16)) * VALUE((ELEMENT(IN))(by >> 16)));
}

// Terms from this one on. x: of the stage.
DEVICE void scale_step(const product_args_t* a, const scaled_t* s, char* x, int term) {
  if (term + THREAD % PIECES * PIECE >= (int)a->k) return;
  UNROLL
  for (int i = 0; i < OF_THREAD; i++) {
    uint32_t words[4], by[4];
    if (s->first[i] < 0) continue;
    READ_16(x + s->places[i], words);
    READ_16(s->numbers + s->first[i] + term, by);
    UNROLL
    for (int j = 0; j < 4; j++) words[j] = scale_pair(words[j], by[j]);
    WRITE_16(x + s->places[i], words);
  }
}

// Of 64 rows from this one on. stages: where they begin; behind them and their barriers are the
// numbers of each group.
DEVICE void multiply_scaled(const stages_t* s, char* stages, const product_args_t* a,
                            const tile_t* t, int row, int steps, float* sums) {
  const uint64_t all_x = describe_terms(s->x + (uint32_t)row * STEP_BYTES);
  const uint64_t all_w = describe_right(s->w);
  ELEMENT(IN)* numbers =
      (ELEMENT(IN)*)(void*)(stages + STAGES * (X_BYTES + W_BYTES) + DYNAMIC_ALIGNED);
  turn_t turn = {0, 0};
  uint32_t before = 0;
  UNROLL
  for (int i = 0; i < BN / 2; i++) sums[i] = 0;
  WAIT_FOR_INPUTS();
  const scaled_t scaled = bring_numbers(a, t, row, numbers + row / GROUP_ROWS * a->scale_step);
  SYNC_GROUP(GROUP_THREADS);
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint64_t x = further(all_x, turn.stage * X_BYTES);
    const uint64_t w = further(all_w, turn.stage * W_BYTES);
    barrier_wait(s->full + turn.stage * BARRIER, turn.parity);
    scale_step(a, &scaled, stages + turn.stage * X_BYTES, i * BK);
    FENCE_ASYNC();
    SYNC_GROUP(GROUP_THREADS);
    WGMMA_FENCE();
    UNROLL
    for (uint32_t k = 0; k < STEP_BYTES / SLICE; k++)
      multiply_slice(sums, further(x, k * X_NEXT), further(w, k * W_NEXT));
    WGMMA_COMMIT();
    WGMMA_WAIT(1);
    if (i) release(before);
    before = s->empty + turn.stage * BARRIER;
    next_turn(&turn);
  }
  end_products(sums);
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_SCALED_H_
