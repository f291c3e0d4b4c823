// Products of float32 whose sides are in two parts of tf32 each, x = b + s, b = tf32(x),
// s = tf32(x - b): s b, b s and b b are added up, of which what is left out is 2^-22 of a term
// each. A thread takes what it multiplies of the left side into registers and splits it there; the
// weights are split before. What tensor cores cut off is systematic and grows with the sum, so that
// they add up no more than UNIT terms; these sums are added by float32's own additions, which round
// to nearest. Source: S. Markidis et al., NVIDIA tensor core programmability, performance and
// precision, IPDPSW 2018; H. Ootomo and R. Yokota, Recovering single precision accuracy from tensor
// cores while surpassing the FP32 theoretical peak performance, IJHPCA 36 (2022).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_PARTS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_PARTS_H_

#include "product_stages.h"

#define UNIT 16  // terms
#define UNIT_BYTES (UNIT * TERM_BYTES)
#define SLICES (UNIT_BYTES / SLICE)

WGMMA_TF32_LEFT(multiply_left, BN)

// What a thread has of the left side of a unit, in parts: words of each slice's.
typedef struct unit {
  uint32_t words[2][SLICES][4];
} unit_t;

// Where a thread's first row lies in a stage, in floats. Of each row of 128 bytes the pieces of 16
// change places: piece p lies where bits of the place change by p.
DEVICE uint32_t place_of(int row) {
  row += THREAD / WARP % 4 * 16 + LANE / 4;
  return (uint32_t)(row * BK + (row & 7) * 4 + LANE % 4);
}

// What is not finite, or loses that, makes sums that are not, which are made again.
DEVICE void take_unit(const float* stages, uint32_t place, int unit, unit_t* to) {
  UNROLL
  for (int s = 0; s < SLICES; s++) UNROLL
  for (int i = 0; i < 4; i++) {
    const uint32_t piece = (uint32_t)((unit * SLICES + s) * 2 + i / 2);
    const float x = stages[(place ^ piece * 4) + (uint32_t)(i % 2 * 8 * BK)];
    const float b = ROUND_TF32(x);
    to->words[0][s][i] = bits_of(b);
    to->words[1][s][i] = bits_of(ROUND_TF32(x - b));
  }
}

// w: of this unit's terms. The smallest products come first.
DEVICE void ask_for_products(float* sums, const unit_t* x, uint64_t w) {
  UNROLL
  for (int s = 0; s < SLICES; s++) multiply_left(sums, x->words[1][s], further(w, s * SLICE), s);
  UNROLL
  for (int s = 0; s < SLICES; s++)
    multiply_left(sums, x->words[0][s], further(w, BN * STEP_BYTES + s * SLICE), 1);
  UNROLL
  for (int s = 0; s < SLICES; s++) multiply_left(sums, x->words[0][s], further(w, s * SLICE), 1);
}

DEVICE void add_up(float* all, float* sums) {
  WGMMA_WAIT(0);
  hold_sums(sums, BN / 2);
  UNROLL
  for (int i = 0; i < BN / 2; i++) all[i] += sums[i];
}

// Of 64 rows from this one on. The first half of a step is multiplied while the second one is
// taken, and that one while the next step's first half is.
DEVICE void multiply_parts(const stages_t* s, const float* stages, int row, int steps, float* all) {
  const uint64_t all_w = describe_right(s->w);
  const uint32_t own = place_of(row);
  turn_t turn = {0, 0};
  unit_t first, second;
  float sums[BN / 2];
  UNROLL
  for (int i = 0; i < BN / 2; i++) all[i] = 0;
  barrier_wait(s->full, 0);
  take_unit(stages, own, 0, &first);
  ROLLED
  for (int i = 0; i < steps; i++) {
    const uint64_t w = further(all_w, turn.stage * W_BYTES);
    const uint32_t place = turn.stage * (BM * BK) + own, empty = s->empty + turn.stage * BARRIER;
    WGMMA_FENCE();
    ask_for_products(sums, &first, w);
    WGMMA_COMMIT();
    take_unit(stages, place, 1, &second);
    add_up(all, sums);
    WGMMA_FENCE();
    ask_for_products(sums, &second, further(w, UNIT_BYTES));
    WGMMA_COMMIT();
    next_turn(&turn);
    if (i + 1 < steps) {
      barrier_wait(s->full + turn.stage * BARRIER, turn.parity);
      take_unit(stages, turn.stage * (BM * BK) + own, 0, &first);
    }
    add_up(all, sums);
    release(empty);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_PARTS_H_
