// Weights of attention as powers of 2 by a multiprocessor's own instruction, where its bits are
// known (EXP2_STEPS of prelude.h): in 4 instructions, of which exp_of_negative takes 17.
//
// A score s weighs 2^(s c - r), c log2(e), or that times a scale. r, what a query refers to, is the
// largest score at some time, times c, rounded to a multiple of 2^-13, a step. It stays as long as
// no score is larger by some `growth`, so that what has been summed up is hardly ever rescaled.
// s c - r is exact but for its rounding to a step, by at most 2^-14, and differences of references
// are exact: a weight is off by a share of 2^-14 ln(2), however often references change. It is 1 at
// least for the largest score, 2^8 at most, and 0 where it would be no normal number.
//
// Where r is far from 0, float32's own steps are larger: the score that is referred to is
// subtracted first. That r is then off from it by up to 2^-24 of itself, or 2^-14 below 1024,
// counts as an error of the score (attention/warps.h: ..._WEIGHT_ERROR).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_EXP2_WEIGHTS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_EXP2_WEIGHTS_H_

#include "prelude.h"

// Adding it rounds to a step; from 128 below it on, where powers are 0, to a smaller one.
#define EXP2_SHIFT 0x1.2p10F
#define EXP2_NEAR 896.0F  // EXP2_SHIFT - r is a multiple of a step for all r up to this

typedef struct reference {
  float score, power;  // r; -infinity and 0: no key has been seen
} reference_t;

DEVICE reference_t no_reference(void) {
  const reference_t r = {-POSITIVE_INFINITY, 0};
  return r;
}

DEVICE bool is_far(const reference_t* r) {
  return !(r->power <= EXP2_NEAR && r->power >= -EXP2_NEAR);
}

// Whether a row whose largest score is `top` refers to it from now on.
DEVICE bool outgrows(const reference_t* r, float top, float growth) {
  return top - r->score > growth;
}

// What has been summed up is to be multiplied by.
DEVICE float refer_to(reference_t* r, float top, float c) {
  const float product = top * c, shift = product < 0 ? 2048.0F : 1024.0F;
  const float steps = FMA(top, c, shift) - shift;
  const float power = product > -1024 && product < 1024 ? steps : product;
  // Nothing has been; or two references whose products overflow: they are as far apart as any.
  const float kept =
      r->score == -POSITIVE_INFINITY ? 1.0F : EXP2_STEPS(LARGER(r->power - power, -1024));
  r->score = top;
  r->power = power;
  return kept;
}

// What is added to s c, or to that of a difference to the score that is referred to.
DEVICE float shift_of(const reference_t* r) {
  return is_far(r) ? EXP2_SHIFT : EXP2_SHIFT - r->power;
}

DEVICE float weight_of(float s, float c, float shift) {
  return EXP2_STEPS(FMA(s, c, shift) - EXP2_SHIFT);
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_EXP2_WEIGHTS_H_
