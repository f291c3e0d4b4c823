// The cheapest assignment of states to variables under costs of one, two or more of them: what
// layouts.h puts the choice of layouts into.
//
// Variables are eliminated one after the other, the one first that leaves the smallest table
// after: exact, and quick on the graphs of models, which are chains, trees and ladders (Bertele
// and Brioschi, Nonserial Dynamic Programming, 1972; Dechter, "Bucket elimination", Artificial
// Intelligence 113, 1999; for variables with one and two neighbours it is what Scholz and Eckstein
// do in "Register allocation for irregular architectures", LCTES 2002, and Anderson and Gregg for
// layouts in "Optimal DNN primitive selection with partitioned boolean quadratic programming", CGO
// 2018). Where a table would be larger than is allowed, the variable with most neighbours is held
// at its state, and the others are solved exactly around it; again, with others held, as long as
// that lowers the cost (fields of trees: Hamze and de Freitas, UAI 2004). So the cost is never
// above that of the states that it began with. Nothing depends on addresses, threads or time.
#ifndef ASSAY_EXEC_SEGMENT_ASSIGN_H_
#define ASSAY_EXEC_SEGMENT_ASSIGN_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { ASSAY_ASSIGN_STATES = 8, ASSAY_ASSIGN_TABLE = 1 << 14 };

typedef struct assay_assign assay_assign_t;

// Variables 0 to n - 1, each with 1 to ASSAY_ASSIGN_STATES states.
assay_status_t assay_assign_create(int n, const int* n_states, assay_assign_t** out) ASSAY_MUST_USE;
void assay_assign_destroy(assay_assign_t* a);  // NULL is allowed

// Adds costs of n different variables: one number for each of their states together, those of the
// last variable side by side; copied. INFINITY: cannot be.
assay_status_t assay_assign_add(assay_assign_t* a, int n, const int* variables,
                                const double* costs) ASSAY_MUST_USE;
double assay_assign_cost(const assay_assign_t* a, const int* states);

// states: begun with, and what was found; among equals it stays what it was, or is the lower one.
// entries: of the largest table that may be made. *out_exact: no assignment is cheaper.
assay_status_t assay_assign_solve(const assay_assign_t* a, size_t entries, int* states,
                                  bool* out_exact) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_SEGMENT_ASSIGN_H_
