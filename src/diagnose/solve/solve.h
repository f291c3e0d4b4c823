// Constants solved for: where a node's inputs and output are known, what must its constant be?
//
// Three kinds of nodes. A condition chooses between two outputs, element by element. Where each
// element of the output depends on one element of the constant at most, and linearly (a bias, a
// scale, an embedding, a table that is gathered from), three evaluations tell on which and by which
// factor; each element is then a quotient of sums over the places that it reaches. Where the output
// is a product with the constant (MatMul, Gemm, Conv), it is the least squares solution of rows
// times weights, as a correction of what is there, so that what the data do not determine stays as
// it is.
//
// A solution is found on three quarters of the places or rows and has to hold on the others. Where
// these are too few to determine it, it takes all of them and has to hold on the outputs of other
// samples. Of the solutions that fit, the one that changes least is taken.
#ifndef ASSAY_DIAGNOSE_SOLVE_H_
#define ASSAY_DIAGNOSE_SOLVE_H_

#include "diagnose/export.h"
#include "diagnose/search.h"
#include "diagnose/solve/holdout.h"
#include "eval/evaluator.h"

// Tries each constant input of the node that makes the target, all of whose other inputs are in the
// evaluator's slots.
//   holdout   other samples; NULL: there are none
//   by_samples   by the outputs of other samples as well, whatever the node does: dear
//   deadline  of assay_clock_seconds
//   out       the repair, with its text; *out_found false: none holds
//   out_left  RMS of what it leaves over what there was
//   out_tested  whether it held where it did not look, too; false: it holds on other samples only,
//               and where those are much like this one something else may do as well
assay_status_t assay_solve_constant(assay_evaluator_t* m, const assay_node_t* node,
                                    const assay_search_target_t* target, assay_holdout_t* holdout,
                                    bool by_samples, double deadline, assay_repair_t* out,
                                    double* out_left, bool* out_tested,
                                    bool* out_found) ASSAY_MUST_USE;

// The same where each element of a constant reaches places of its own, untested: each place tells
// its element, so that others have to say whether it holds.
assay_status_t assay_solve_untested(assay_evaluator_t* m, const assay_node_t* node,
                                    const assay_search_target_t* target, assay_repair_t* out,
                                    bool* out_found) ASSAY_MUST_USE;

// The scale and the zero point of a QuantizeLinear or DequantizeLinear that makes the target.
assay_status_t assay_solve_quantizer(assay_evaluator_t* m, const assay_node_t* node,
                                     const assay_search_target_t* target, assay_repair_t* out,
                                     bool* out_found) ASSAY_MUST_USE;

// What a node makes that no input of the model reaches: its constant, read backwards; or, `whole`,
// golden in the place of what it makes.
assay_status_t assay_solve_folded(assay_evaluator_t* m, const assay_node_t* node,
                                  const assay_search_target_t* target, bool whole,
                                  assay_repair_t* out, bool* out_found) ASSAY_MUST_USE;

// Whether a repair's node gives with it, on these inputs, what the target knows of an output.
assay_status_t assay_solve_restores(assay_evaluator_t* m, const assay_repair_t* r,
                                    const assay_search_target_t* target, size_t n_in,
                                    assay_tensor_t* const* in, bool* out) ASSAY_MUST_USE;

// The known, for the parts of the solver.
typedef struct assay_solve {
  assay_evaluator_t* m;
  const assay_node_t* node;
  assay_holdout_t* holdout;
  bool untested;         // others say whether it holds
  size_t input;          // the constant
  assay_tensor_t** in;   // canonical, by input of the node
  assay_tensor_t* want;  // golden of output `output`, canonical
  assay_tensor_t* have;  // the same as the node makes it
  size_t output;
} assay_solve_t;

// The constant by all places of the output; or, with `held` (a flag each place, false at first), by
// some, those that are left out being marked there. *out NULL: not a node of that kind.
assay_status_t assay_solve_diagonal(const assay_solve_t* s, bool* held,
                                    assay_tensor_t** out) ASSAY_MUST_USE;
assay_status_t assay_solve_rows(const assay_solve_t* s, bool* held,
                                assay_tensor_t** out) ASSAY_MUST_USE;
// A condition, whose elements each choose at places of their own. *out NULL: it is none.
assay_status_t assay_solve_choice(const assay_solve_t* s, assay_tensor_t** out) ASSAY_MUST_USE;
// The constant by the node's output and the outputs of other samples together, whatever the node
// does with it. *out NULL: too many unknowns, no time, or it does not hold on what is kept for the
// test.
// shares: elements share their changes, where there are too many of them.
assay_status_t assay_solve_samples(const assay_solve_t* s, bool shares, double deadline,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
// A weight of which this sample tells a part, and other samples the rest.
assay_status_t assay_solve_open(const assay_solve_t* s, double deadline,
                                assay_tensor_t** out) ASSAY_MUST_USE;
// The same from `start` on, where the elements are known but for some (a flag each).
assay_status_t assay_solve_unknown(const assay_solve_t* s, assay_tensor_t* start,
                                   const bool* unknown, double deadline,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
// The constant where only some elements of it are wrong, by what it looks like: those that all have
// one number, or, where its data were read from a wrong place, those at an end of it.
assay_status_t assay_solve_partly(const assay_solve_t* s, double deadline,
                                  assay_tensor_t** out) ASSAY_MUST_USE;
// Solves (a + ridge I) x = b in place: a [k][k], of which the lower part is read; b [k][n], which
// becomes x. False: a is not positive definite.
bool assay_solve_cholesky(int64_t k, int64_t n, double ridge, double* a, double* b);
// Room for a step of n unknowns: J^T J [n][n], the same factored, -J^T r, and the step.
typedef struct assay_solve_normal {
  double *a, *factor, *b, *d;
} assay_solve_normal_t;
// Fills a and b in by a Jacobian, a row of m equations each unknown, and what is left of them.
void assay_solve_set_normal(int64_t n, int64_t m, const double* jacobian, const double* now,
                            assay_solve_normal_t* z);
// The step with a ridge, a part of the mean of a's diagonal. False: there is none.
bool assay_solve_step(int64_t n, double ridge, assay_solve_normal_t* z);
// The node's output with the constant in place; *out NULL: it cannot be evaluated so.
assay_status_t assay_solve_evaluate(const assay_solve_t* s, assay_tensor_t* constant,
                                    assay_tensor_t** out) ASSAY_MUST_USE;

// Whether place i of an output, or a row, is kept for the test.
static inline bool assay_solve_tests(int64_t i) {
  return (((uint64_t)i + 1) * 0x9e3779b97f4a7c15U >> 62) == 3;
}

#endif  // ASSAY_DIAGNOSE_SOLVE_H_
