// A factor and a summand for each channel of what a node gives: what remains of a normalization
// that was folded wrongly, of a bias that was lost, of weights with other scales.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_CHANNELS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_CHANNELS_H_

#include "diagnose/search_trial.h"

// Fits the channels of each node to all elements of the targets, to first order, and goes on with
// the nodes where that holds on equations that took no part, until golden is restored or the time
// `end` comes. What helps is tried in `t`.
assay_status_t assay_search_channels(assay_trials_t* t, double end) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_CHANNELS_H_
