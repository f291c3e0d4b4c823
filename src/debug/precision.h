// Which layers need more precision than was asked for, so that the outputs do: what `debug
// precision` finds.
//
// From the account: truth alone predicts what passes a format's range, and where large values
// cancel; where nothing does, one run shows the shares of the error. The set is verified by running
// it: at most three runs, whatever the number of layers. Then layers are taken out again as long as
// the rest does (diagnose/fewest.h), in as many runs as cost little; nothing is built anew. By
// prefixes, as other tools do: the first (or last) layers in higher precision, as few as pass, each
// number tried by a run.
#ifndef ASSAY_DEBUG_PRECISION_H_
#define ASSAY_DEBUG_PRECISION_H_

#include <assay/debug.h>

#include "check/check.h"
#include "diagnose/fewest.h"
#include "onnx/load.h"

typedef struct assay_precision_options {
  assay_precision_mode_t mode;
  bool from_end;  // prefixes: the last layers
  // The file, to build everything anew for each run; NULL: as little as can be.
  const char* rebuild;
  // From the account: where ranges told what to keep, run the model as it was asked for, too. It
  // may do as it is, since what passes a range need not show in the outputs.
  bool as_asked;
  assay_fix_choice_t fix;             // from the account; as of check
  const assay_input_shape_t* shapes;  // of its inputs
  size_t n_shapes;
} assay_precision_options_t;

typedef struct assay_precision_found {
  assay_model_t* model;           // retained
  assay_check_setting_t options;  // with the precision taken over
  size_t n_samples, n_outputs;
  // The plan as it was asked for, and what is known of its layers; NULL: by prefixes.
  assay_plan_t* plan;
  assay_account_t* account;
  assay_shares_t shares;      // of the first sample's error as asked; empty: not needed
  assay_culprits_t culprits;  // of what is kept
  size_t n_layers;            // nodes of the top graph
  bool golden_quantized;      // golden is of a network that quantizes, as the model does
  size_t builds;              // runs with everything built anew
  // `faithful`: it does as it is; has_fix and fix: the layers to keep.
  assay_fewest_found_t fewest;
  assay_fix_front_t front;  // the two that the fix was chosen from
} assay_precision_found_t;

// The options are those of a check; their precision moves into the result. Not finding anything is
// no error: fix.verified is false then.
assay_status_t assay_precision_find(assay_model_t* model, assay_check_setting_t* check,
                                    const assay_precision_options_t* options,
                                    const assay_samples_t* inputs, const assay_samples_t* golden,
                                    assay_precision_found_t* out) ASSAY_MUST_USE;
void assay_precision_found_deinit(assay_precision_found_t* f);

#endif  // ASSAY_DEBUG_PRECISION_H_
