// Elements of an axis in another order: classes sorted by their names, columns of a table,
// channels.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_PERMUTED_H_
#define ASSAY_DIAGNOSE_OUTPUTS_PERMUTED_H_

#include "diagnose/search_trial.h"

// Golden that is truth with the elements of an axis in another order, in all samples; then the axes
// of weights, by what each order is predicted to leave, until golden is restored or the time `end`
// comes. What helps is tried in `t`.
assay_status_t assay_search_permuted(assay_trials_t* t, double end) ASSAY_MUST_USE;

// The axes of weights alone (orders.c).
assay_status_t assay_search_orders(assay_trials_t* t, double end) ASSAY_MUST_USE;

// An order as people read it: "0,2,1".
void assay_order_text(const int64_t* order, int64_t n, char* text, size_t size);

#endif  // ASSAY_DIAGNOSE_OUTPUTS_PERMUTED_H_
