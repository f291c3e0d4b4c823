// Sums of doubles without rounding: whatever order terms come in, and however they were split, the
// sum is the same number, rounded once when it is asked for.
//
// The sum is an integer of 2,176 bits in units of 2^-1074, the smallest double, so every finite
// double can be added and 2^64 of them do not reach its end.
//
// Source: U. Kulisch, Computer Arithmetic and Validity, 2nd ed., de Gruyter 2013, chapter 8.
#ifndef ASSAY_FORMATS_EXACT_SUM_H_
#define ASSAY_FORMATS_EXACT_SUM_H_

#include <stdint.h>

#include "base/packing.h"
#include "formats/error_sum.h"

enum { ASSAY_EXACT_LIMBS = 34 };

typedef struct assay_exact_sum {
  uint64_t limbs[ASSAY_EXACT_LIMBS];  // two's complement, the lowest first
  double unfinite;                    // sum of the terms that were not finite; 0: there were none
} assay_exact_sum_t;

void assay_exact_add(assay_exact_sum_t* s, double term);
void assay_exact_join(assay_exact_sum_t* s, const assay_exact_sum_t* more);
// Rounded to nearest, ties to even.
double assay_exact_get(const assay_exact_sum_t* s);
// Adds a term to the exact sum, and makes *rounded that sum.
void assay_exact_add_to(assay_exact_sum_t* s, double* rounded, double term);
void assay_exact_join_to(assay_exact_sum_t* s, double* rounded, const assay_exact_sum_t* more);
void assay_exact_pack(assay_packing_t* p, assay_exact_sum_t* s);

// The sums of an error_sum.h, which stays what is read.
typedef struct assay_error_exact {
  assay_exact_sum_t err, err2, ref2, got2, dot;
} assay_error_exact_t;

// As assay_error_sum_join, but that sums are exact: `more` is what one run gave.
void assay_error_exact_add(assay_error_exact_t* x, assay_error_sum_t* s,
                           const assay_error_sum_t* more);
// The same of many runs, which follow those of *s.
void assay_error_exact_join(assay_error_exact_t* x, assay_error_sum_t* s,
                            const assay_error_exact_t* more_exact, const assay_error_sum_t* more);
// Pairs as one run.
void assay_error_exact_pairs(assay_error_exact_t* x, assay_error_sum_t* s, const double* got,
                             const double* ref, size_t n);
void assay_error_exact_pack(assay_packing_t* p, assay_error_exact_t* x, assay_error_sum_t* s);

#endif  // ASSAY_FORMATS_EXACT_SUM_H_
