// Axes of weights whose elements stand in another order.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_ORDERS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_ORDERS_H_

#include "diagnose/search_trial.h"

// Tries orders by what each is predicted to leave, until golden is restored or the time `end`
// comes.
assay_status_t assay_search_orders(assay_trials_t* t, double end) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_ORDERS_H_
