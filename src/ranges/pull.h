// Which way the inputs have to move so that one element of an inner value grows: backwards through
// a graph that has run.
//
// Products with Jacobians (eval/gradients/vjp.h), but straight through roundings, casts and
// quantizers, and a little through what is cut off (Relu, Clip): a search must get out of where the
// gradient is 0. Of integers that pick rows of a table
// ('Gather') it tells for each place what each row would be worth.
#ifndef ASSAY_RANGES_PULL_H_
#define ASSAY_RANGES_PULL_H_

#include "eval/evaluator.h"

typedef struct assay_pull {
  double** g;  // by value id: derivatives, of as many elements as the value; NULL: none come here
  size_t n;
  // By graph input: a table that its elements pick rows of, and the derivatives by the rows that
  // they have picked (rows of `width` numbers); NULL: none.
  const assay_tensor_t** table;
  double** row_g;
  int64_t* width;
  size_t n_inputs;
} assay_pull_t;
void assay_pull_deinit(assay_pull_t* p);

// machine: has run the top graph up to node `position` with all values kept. Starts with d/d
// element of value `v` (an output or an input of that node) being 1.
assay_status_t assay_pull_run(assay_evaluator_t* evaluator, const assay_model_t* model,
                              size_t position, const assay_value_t* v, int64_t element,
                              assay_pull_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_PULL_H_
