// Which unit runs in which format: what each choice costs in time, and does to the outputs.
//
// A unit is a layer of a plan. Time is that of the units and of the casts between them: a value is
// cast once for each format, other than its maker's, that somebody reads it in. Errors are mean
// squares per element of an output:
//
//   E = floor + scale * ( sum of energies + (sum of common)^2 )
//
// Energies are of errors that are independent, which add in squares; `common` is what they have in
// the same direction, which adds linearly. A unit in a format with fewer bits than the format of
// the maker of what it reads rounds that on its way in: the energy of a link.
#ifndef ASSAY_TUNE_PROBLEM_H_
#define ASSAY_TUNE_PROBLEM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { ASSAY_TUNE_FORMATS = 4 };
#define ASSAY_TUNE_OUTSIDE SIZE_MAX  // graph inputs are made, and outputs read, in the last format

typedef struct assay_tune_value {
  size_t maker;     // unit, or OUTSIDE
  size_t first, n;  // links
  double* cast;     // [from * n_formats + to]: seconds
} assay_tune_value_t;

typedef struct assay_tune_link {
  size_t reader;  // unit, or OUTSIDE
  size_t value;
  double* energy;  // [format of the reader * n_outputs + output]
} assay_tune_link_t;

typedef struct assay_tune_problem {
  size_t n_units, n_formats, n_outputs;
  int bits[ASSAY_TUNE_FORMATS];  // significant bits; the last format has most
  double* time;                  // [unit * n_formats + format]: seconds; INFINITY: not to be used
  double* energy;                // [(unit * n_formats + format) * n_outputs + output]
  double* common;                // the same
  assay_tune_value_t* values;
  size_t n_values, cap_values;
  assay_tune_link_t* links;  // those of a value side by side
  size_t n_links, cap_links;
  double cast_price;                  // what a second of casts counts; 1
  double *floor, *scale;              // by output
  double* budget;                     // by output: most E; INFINITY: any
  double* weight;                     // by output: what makes E comparable between outputs
  size_t *touching, *first_touching;  // by unit: the values that it makes or reads
} assay_tune_problem_t;

// Room for everything but values and links; scale 1, budget INFINITY, weight 1, all else 0.
assay_status_t assay_tune_problem_create(size_t n_units, size_t n_formats, size_t n_outputs,
                                         assay_tune_problem_t* out) ASSAY_MUST_USE;
void assay_tune_problem_deinit(assay_tune_problem_t* p);
// Adds a value with links to these readers (OUTSIDE allowed), which are different.
assay_status_t assay_tune_add_value(assay_tune_problem_t* p, size_t maker, size_t n_readers,
                                    const size_t* readers) ASSAY_MUST_USE;
// After the last value: which units touch which.
assay_status_t assay_tune_index(assay_tune_problem_t* p) ASSAY_MUST_USE;

// An assignment, and its sums.
typedef struct assay_tune_state {
  uint8_t* format;  // by unit
  double time;
  double *energy, *common;  // by output: sums
} assay_tune_state_t;

// Every unit in this format, or, where that is not to be used, the highest that is.
assay_status_t assay_tune_state_create(const assay_tune_problem_t* p, size_t format,
                                       assay_tune_state_t* out) ASSAY_MUST_USE;
void assay_tune_state_deinit(assay_tune_state_t* s);
void assay_tune_state_copy(const assay_tune_problem_t* p, const assay_tune_state_t* from,
                           assay_tune_state_t* to);
void assay_tune_state_set(const assay_tune_problem_t* p, assay_tune_state_t* s, size_t unit,
                          uint8_t format);
// Sums anew, without what rounding has left of changes.
void assay_tune_state_sum(const assay_tune_problem_t* p, assay_tune_state_t* s);

bool assay_tune_allowed(const assay_tune_problem_t* p, size_t unit, size_t format);
double assay_tune_error(const assay_tune_problem_t* p, const assay_tune_state_t* s, size_t output);
// Sum over outputs of E * weight; largest of them; how far outputs are over their budgets, in
// budgets: 0 where none is.
double assay_tune_sum(const assay_tune_problem_t* p, const assay_tune_state_t* s);
double assay_tune_worst(const assay_tune_problem_t* p, const assay_tune_state_t* s);
double assay_tune_excess(const assay_tune_problem_t* p, const assay_tune_state_t* s);

#endif  // ASSAY_TUNE_PROBLEM_H_
