// Equations of a constant by several samples, for the parts of the solver.
#ifndef ASSAY_DIAGNOSE_SOLVE_BY_SAMPLES_H_
#define ASSAY_DIAGNOSE_SOLVE_BY_SAMPLES_H_

#include "diagnose/solve/products.h"

enum { ASSAY_BY_SAMPLES_UNKNOWNS = 640 };

// Numbers of nodes that the model lacks, in place of a constant that it has: the unknowns are `c`
// of a formula, and `d` behind it where there are `both`.
typedef struct assay_by_samples_numbers {
  assay_edit_kind_t kind;  // ASSAY_EDIT_AFTER or _BEFORE
  size_t index;
  const char* program;
  assay_type_t type;
  int rank;
  int64_t dims[ASSAY_MAX_RANK];  // of each
  bool both;
} assay_by_samples_numbers_t;

// The equations: what is there, over golden's size, less golden.
typedef struct assay_by_samples {
  const assay_solve_t* s;
  size_t samples;         // others that take part
  bool tests;             // a quarter of the node's output is kept for the test
  int64_t n, m;           // unknowns; equations
  assay_tensor_t* start;  // what the constant begins as; borrowed
  // Which unknown an element shares, -1: it is known, and by how much it goes with it; NULL: it is
  // its own.
  const int64_t* shared;
  const double* part;
  // Unknowns are what one sample leaves open of a weight, which is as that sample has it; NULL:
  // they are elements.
  const assay_null_space_t* open;
  const assay_by_samples_numbers_t* numbers;  // NULL: the constant of input s->input
  bool refines;                    // all samples take part: the test has been passed before
  double *now, *moved, *jacobian;  // [m], [m], [n][m]
  double scale_of_want;
  // What is being filled in.
  double* to;
  int64_t at;
} assay_by_samples_t;

// The equations of the node's output on this sample, and of the outputs of all other samples but
// the last: the constant begins as it is, each element an unknown.
assay_by_samples_t assay_by_samples_of(const assay_solve_t* s);
// The constant that meets them. *out NULL: it does not hold on what is kept for the test.
assay_status_t assay_by_samples_solve(assay_by_samples_t* y, double deadline,
                                      assay_tensor_t** out) ASSAY_MUST_USE;

// A repair with numbers x, and what the node's output is with it; *out NULL: it cannot be
// evaluated.
assay_status_t assay_by_samples_insert(const assay_by_samples_t* y, assay_tensor_t* x,
                                       assay_repair_t* out) ASSAY_MUST_USE;
assay_status_t assay_by_samples_evaluate(const assay_by_samples_t* y, const assay_repair_t* r,
                                         assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SOLVE_BY_SAMPLES_H_
