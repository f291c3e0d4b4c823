// The columns that a model reads, in another order than its first layer's weights have them.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_COLUMNS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_COLUMNS_H_

#include "diagnose/search_trial.h"

// Looks for an order of the channels of a weight that restores golden, by exchanging two at a time,
// until the time `end` comes. Of layers that read what the model is given.
assay_status_t assay_search_columns(assay_trials_t* t, double end) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_COLUMNS_H_
