// For missing_settings.c: operators whose settings are searched.
#ifndef ASSAY_DIAGNOSE_SOLVE_SETTINGS_H_
#define ASSAY_DIAGNOSE_SOLVE_SETTINGS_H_

#include "diagnose/solve/missing.h"

// Where a convolution or a pooling begins to read: paddings on either side, dilations.
assay_status_t assay_settings_window(assay_missing_search_t* s,
                                     const assay_tensor_t* want) ASSAY_MUST_USE;
// The scales of Resize, and its modes together.
assay_status_t assay_settings_resize(assay_missing_search_t* s,
                                     const assay_tensor_t* want) ASSAY_MUST_USE;
// The functions of a recurrent layer's gates, and their numbers.
assay_status_t assay_settings_activations(assay_missing_search_t* s,
                                          const assay_tensor_t* want) ASSAY_MUST_USE;
// The number that a recurrent layer clips its sums at, and the order of its peepholes.
assay_status_t assay_settings_recurrent(assay_missing_search_t* s,
                                        const assay_tensor_t* want) ASSAY_MUST_USE;

// The weights of a recurrent layer in another framework's layout.
assay_status_t assay_settings_gates(assay_missing_search_t* s,
                                    const assay_tensor_t* want) ASSAY_MUST_USE;
// A weight's numbers in another order: tiles, groups that were dealt out, pairs turned round.
assay_status_t assay_settings_order(assay_missing_search_t* s) ASSAY_MUST_USE;
// The axes of Unsqueeze and Squeeze, the shape of Reshape, the axis of Flatten.
assay_status_t assay_settings_shape(assay_missing_search_t* s,
                                    const assay_tensor_t* want) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SOLVE_SETTINGS_H_
