// Each layer by all tactics that can run it, on the layer's real inputs: what `debug tactics`
// finds.
//
// A tactic is at fault where an error lies beyond the guaranteed bound of its own way of rounding,
// or far outside of what the layer shows when it is emulated in other orders and with stochastic
// rounding.
#ifndef ASSAY_DEBUG_TACTIC_DEBUG_H_
#define ASSAY_DEBUG_TACTIC_DEBUG_H_

#include <assay/debug.h>

#include "check/check.h"

typedef struct assay_tactic_account {
  const char *name, *source;
  bool chosen;            // by the plan
  bool same_bits;         // as the plan's
  double microseconds;    // NAN: not measured
  assay_error_sum_t own;  // against truth on the same inputs
  assay_judgement_t judged;
  bool bounded;
  int64_t shape_mismatches;
  double outlying_by;  // its error over what reruns show; only where it is OUTLYING
  assay_tactic_fault_t fault;
} assay_tactic_account_t;

typedef struct assay_tactic_layer {
  const assay_layer_t* layer;
  const char* ran;             // what ran it in the plan: a tactic, "emu", "sizes"
  assay_tactic_account_t* at;  // in the order of the backend's table
  size_t n, capacity;
  assay_error_sum_t emulated;  // own error of the emulated engine
} assay_tactic_layer_t;

typedef struct assay_tactic_blame {
  assay_plan_t* plan;
  assay_tactic_layer_t* layers;  // those that were asked for
  size_t n_layers, n_tried;      // n_tried: runs of a layer by a tactic, over all samples
  size_t n_faults;
} assay_tactic_blame_t;

typedef struct assay_tactic_options {
  const char* layer;  // a pattern for names of layers, nodes and outputs; NULL: all
  bool timed;
} assay_tactic_options_t;

// The options are those of a check; borrowed. Errors: UNSUPPORTED the backend has but one way;
// NOT_FOUND no layer has the name.
assay_status_t assay_tactic_debug(assay_model_t* model, const assay_check_setting_t* check,
                                  const assay_tactic_options_t* options,
                                  const assay_samples_t* inputs,
                                  assay_tactic_blame_t* out) ASSAY_MUST_USE;
void assay_tactic_blame_deinit(assay_tactic_blame_t* b);

#endif  // ASSAY_DEBUG_TACTIC_DEBUG_H_
