// The fastest assignment whose errors stay within the budgets, and a front of time against error.
//
// For a rising price of error, the sum of time and price is brought down by changes of single units
// and of runs of neighbours (casts make neighbours want the same format); that gives the front, and
// assignments within the budgets. The best of them is improved by such changes and by exchanges
// (one unit faster, another one finer), also from starts nearby, drawn from a seed.
#ifndef ASSAY_TUNE_SEARCH_H_
#define ASSAY_TUNE_SEARCH_H_

#include "tune/problem.h"

typedef struct assay_tune_point {
  uint8_t* format;     // by unit
  double time, worst;  // seconds; assay_tune_worst
} assay_tune_point_t;

// None is faster and has less error than another one; the fastest first.
typedef struct assay_tune_front {
  assay_tune_point_t* at;
  size_t n, capacity;
} assay_tune_front_t;
void assay_tune_front_deinit(assay_tune_front_t* f);
// Leaves `n` points, the ends among them, at even distances of the error's logarithm.
void assay_tune_front_thin(assay_tune_front_t* f, size_t n);

// best: a state of the problem; the result is put there. *out_found false: no assignment was found
// that is within the budgets; best is then the one with the least error. front may be NULL.
assay_status_t assay_tune_search(const assay_tune_problem_t* p, uint64_t seed,
                                 assay_tune_state_t* best, bool* out_found,
                                 assay_tune_front_t* front) ASSAY_MUST_USE;

#endif  // ASSAY_TUNE_SEARCH_H_
