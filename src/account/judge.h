// Judging a layer: is what the engine did to the numbers rounding, or more than rounding explains?
//
// Element by element a stored value s is explained if some value within the limit of truth t rounds
// to it. Rounding is monotone, so that is |s - t| <= limit + half an ulp of s in the format in
// which it is stored (nothing, where that is no narrower than the arithmetic's own).
#ifndef ASSAY_ACCOUNT_JUDGE_H_
#define ASSAY_ACCOUNT_JUDGE_H_

#include "ops/bound.h"

// Counts over the elements of a layer's outputs in all its runs. Of every element just one of these
// is counted: exact, explained, uncertain, flipped, between, beyond, overflowed, underflowed,
// born_nan, unbounded, not_judged.
typedef struct assay_judgement {
  int64_t elements;
  int64_t exact;        // truth rounded once to the storage format
  int64_t explained;    // within the probable limit
  int64_t uncertain;    // past the probable limit by no more than truth itself may be off
  int64_t flipped;      // a choice inside the layer that rounding leaves open came out otherwise
  int64_t between;      // past the probable, within the guaranteed limit
  int64_t beyond;       // past the guaranteed limit
  int64_t overflowed;   // infinite where truth is finite and rounding can take it past the range
  int64_t underflowed;  // 0 where truth lies below the format's range, and not by cancelling
  int64_t born_nan;     // NaN where truth is finite, and no NaN or infinity reaches the element
  int64_t unbounded;    // there is no limit
  int64_t not_judged;   // not finite in truth or here, and what reaches the element explains it
  // Of finite elements with a limit above 0, beyond the half ulp of storage:
  int64_t n_ratio;
  double sum_ratio2;  // sum of (error / probable limit)^2
  double sum_error2, sum_limit2;
  // The error's part along truth; here the error is whole, storing included.
  double sum_truth2, sum_error_truth, sum_whole2;
  // The worst element beyond its guaranteed limit.
  double worst;  // error / guaranteed limit; 0: none
  double worst_engine, worst_truth, worst_limit;
  int64_t worst_index;
} assay_judgement_t;

void assay_judgement_join(assay_judgement_t* to, const assay_judgement_t* more);

// What is known of an element that is not finite in the engine or in truth (special.h).
enum {
  ASSAY_REACHED = 1 << 0,  // NaN or infinities that came in reach it
  ASSAY_SHOWN = 1 << 1,    // the emulated layer, in one order or another, has what the engine has
};

typedef struct assay_judge_input {
  const assay_tensor_t *engine, *truth;  // truth of the arithmetic: on converted inputs
  const assay_limits_t* limits;          // NULL: none were made
  const double* flips;  // limits where choices inside the layer may come out otherwise; NULL: none
  const double* truth_error;  // how far truth itself may be off; NULL: within its last bit
  assay_format_t storage, compute;
  const uint8_t* special;  // by element: ASSAY_REACHED, ASSAY_SHOWN; NULL: neither
  bool rerun;  // the emulated layer was run: what it does not show, the format does not explain
  bool moves;  // elements are moved whatever they are: NaN, too, comes out where truth has it
} assay_judge_input_t;

// Adds one output of one run: canonical tensors of one shape, floats or integers (for which limits
// count in steps). The same counts and sums for any number of threads.
// Errors: NO_MEMORY.
assay_status_t assay_judge(const assay_judge_input_t* in, assay_judgement_t* out) ASSAY_MUST_USE;

// RMS of error / probable limit; 0 without elements. The slope of the error along truth.
double assay_judgement_ratio(const assay_judgement_t* j);
double assay_judgement_slope(const assay_judgement_t* j);
// How many standard deviations the slope is from 0, were the errors independent.
double assay_judgement_slope_sigmas(const assay_judgement_t* j);

#endif  // ASSAY_ACCOUNT_JUDGE_H_
