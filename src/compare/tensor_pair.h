// Two tensors of one name: everything that is measured of them, over all their elements.
#ifndef ASSAY_COMPARE_TENSOR_PAIR_H_
#define ASSAY_COMPARE_TENSOR_PAIR_H_

#include <assay/compare.h>

#include "base/str.h"
#include "formats/stats.h"
#include "tensor/tensor.h"

// Starts as {.name}.
typedef struct assay_tensor_pair {
  const char* name;
  bool lost, extra;  // in some run only the reference has it; only the tensors have it
  bool numbers;      // something of it was measured; else only `elements` and `outside` are known
  bool floats;
  int64_t elements, outside;
  assay_error_stats_t* stats;  // of numbers
  assay_error_summary_t summary;
  int64_t rows, same_first, same_set;  // of floats, along the last dimension
  assay_str_t other;  // what makes it no pair: another kind, shape or number of items; "": nothing
  assay_str_t why;    // why it has not passed; "": it has
} assay_tensor_pair_t;

void assay_tensor_pair_deinit(assay_tensor_pair_t* p);
// Adds what one run gave: tensors, sequences and the like.
assay_status_t assay_tensor_pair_add(assay_tensor_pair_t* p, const assay_compare_options_t* options,
                                     assay_tensor_t* tensor,
                                     assay_tensor_t* reference) ASSAY_MUST_USE;
// After the last one: sums up, and judges.
assay_status_t assay_tensor_pair_finish(assay_tensor_pair_t* p,
                                        const assay_compare_options_t* options) ASSAY_MUST_USE;
// NaN: it has none.
double assay_tensor_pair_statistic(const assay_tensor_pair_t* p, assay_statistic_t statistic);

#endif  // ASSAY_COMPARE_TENSOR_PAIR_H_
