// Whether the numbers of a constant look rounded, though their type does not say so: multiples of a
// scale, few numbers that are each used often, numbers of few significant bits, zeros in a pattern.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_NUMBERS_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_NUMBERS_H_

#include "tensor/tensor.h"

typedef enum assay_rounded_way {
  ASSAY_ROUNDED_NOT = 0,
  ASSAY_ROUNDED_GRID,    // multiples of a scale, of the tensor, of a channel or of a block
  ASSAY_ROUNDED_FEW,     // a palette: few numbers, not evenly spaced
  ASSAY_ROUNDED_SHORT,   // few significant bits: of bfloat16, float16, or fewer
  ASSAY_ROUNDED_SCALED,  // the same times a scale, of the tensor, of a channel or of a block: FP8
  ASSAY_ROUNDED_ZEROS,   // half of each four or more are 0, the smallest ones
  ASSAY_ROUNDED_STEPS,   // not weights: values that quantizers in the graph round
} assay_rounded_way_t;

// *out: how far each number may have been from where it is, a tensor like t; NULL: t does not look
// rounded. t: canonical, of floats.
assay_status_t assay_rounded_numbers(const assay_tensor_t* t, assay_rounded_way_t* out_way,
                                     assay_tensor_t** out) ASSAY_MUST_USE;

// Whether a constant is made by a rule, not learned: one-hot and pooling matrices, transforms,
// filters that are the same for each channel. It means what it says.
bool assay_rounded_is_designed(const assay_tensor_t* t);
// Whether all its numbers are whole, or one number and 0: what codes that were not rounded make. t:
// canonical, of floats.
bool assay_rounded_is_exact(const assay_tensor_t* t);

// ---- for the parts -----------------------------------------------------------------------------

// How a set of numbers is rounded.
typedef struct assay_rounded_set {
  assay_rounded_way_t way;
  double low, step;  // GRID
  int64_t used;      // elements that are not 0, and
  int64_t unlike;    // how many unlike numbers these are, of which so many
  int64_t repeated;  // are there more than once
  bool few;          // each number is used again and again
  int64_t n;         // how many unlike numbers there are, ascending, at the front of the set
  double evidence;   // bits: minus the logarithm of how likely any numbers look so
  // Whether all are few significant bits times a scale: how many bits, 0: they are not; one such
  // number, the last bit of all of them, and the largest number.
  int bits;
  double unit, last, largest;
} assay_rounded_set_t;

// The numbers of a set, n of them, which are sorted; where they are few, each is at the front once.
// way NOT: neither.
assay_rounded_set_t assay_rounded_set_of(double* numbers, int64_t n);
// The bits, unit and last of the numbers of a set, each of which is there once, and how sure that
// is.
void assay_rounded_scaled_bits(assay_rounded_set_t* s, const double* numbers);
// Bits of evidence that a set is of so many bits times a scale.
double assay_rounded_scaled_evidence(const assay_rounded_set_t* s, int bits);
// How far a number of so many bits times the set's scale may have been from where it is.
double assay_rounded_scaled_reach(const assay_rounded_set_t* s, int bits, double x);
// How far a number of the set may have been from where it is.
double assay_rounded_set_reach(const assay_rounded_set_t* s, const double* numbers, double x);

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_NUMBERS_H_
