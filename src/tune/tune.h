// The fastest assignment of formats to layers whose outputs meet what is required: `assay tune`.
//
// One run in each low format tells what each layer adds to the outputs' error (errors.h), one in
// the highest what is left anyway. Times are measured, or those of a device by its roofline
// (times.h). A search (search.h) proposes an assignment; it is run over all samples, which
// corrects the forecast, and another one is proposed where it did not do or could be faster. What
// is handed over has been run. With the goal of fewest layers, such proposals are what the search
// for the fewest layers in higher precision (diagnose/fewest.h) starts from.
#ifndef ASSAY_TUNE_TUNE_H_
#define ASSAY_TUNE_TUNE_H_

#include "check/check.h"
#include "tune/forecast.h"
#include "tune/search.h"
#include "tune/times.h"

typedef enum assay_tune_goal {
  ASSAY_TUNE_TIME = 0,
  ASSAY_TUNE_LAYERS,  // as few layers as possible in the highest format, then time
} assay_tune_goal_t;

typedef struct assay_tune_setting {
  // Low ones, and the highest at the end.
  assay_format_t formats[ASSAY_TUNE_FORMATS];
  size_t n_formats;
  assay_tune_goal_t goal;
  const assay_device_roofline_t* device;  // NULL: this machine, measured
  double seconds;                         // to measure each format on this machine; 0: 0.5
  const char* timing_cache;               // NULL: none
  size_t max_runs;                        // of assignments that were searched for; 0: 8
  size_t front;                           // points of the front; 0: none
  // Runs all samples somewhere else with these formats, by node id (NONE: as declared), and adds
  // what they gave to the statistics; golden_quantized as of the tuning. NULL: they run here.
  assay_status_t (*elsewhere)(void* user, const assay_format_t* given, bool golden_quantized,
                              assay_output_check_t* outputs);
  void* user;  // of it
} assay_tune_setting_t;

// An assignment.
typedef struct assay_tune_trial {
  uint8_t* format;                   // by unit
  size_t count[ASSAY_TUNE_FORMATS];  // layers that make or read floats, by format
  double seconds;                    // of the model of time
  // By output; predicted before it was run. NULL: not predicted, not run.
  assay_output_check_t *predicted, *outputs;
  bool met;
  assay_str_t unmet;  // what commands of the user's have against it
} assay_tune_trial_t;

typedef struct assay_tuned {
  assay_model_t* model;           // retained
  assay_check_setting_t setting;  // of the runs, without a precision
  assay_tune_setting_t options;
  size_t n_units, n_outputs;
  size_t n_floats;        // units that make or read floats
  size_t n_pinned;        // of them: in a format that the user asked for
  size_t n_out_of_range;  // of them: that cannot be in some low format
  bool* free_unit;        // by unit: its format was chosen
  assay_tune_trial_t*
      trials;  // what was run: all in the highest format first, then all in each low one
  size_t n_trials, cap_trials;
  size_t chosen;  // of the trials, if met
  bool met;
  assay_tune_trial_t* front;  // fastest first
  size_t n_front, cap_front;
  double total[ASSAY_TUNE_FORMATS];  // measured: a whole run in each format, seconds; 0: not
  assay_fix_t* fixes;                // by format: the nodes that the chosen trial has in it
  size_t base;                       // of the formats: that of most nodes
  // Of the base's nodes: those that a rule has to say it of, since they declare another type.
  assay_fix_t redeclared;
  size_t unknown;         // units whose errors were split by shares
  bool golden_quantized;  // golden is of a network that quantizes, as the model does
} assay_tuned_t;

// The options are those of a check; its precision moves into the result: rules in it stand.
assay_status_t assay_tune(assay_model_t* model, assay_check_setting_t* check,
                          const assay_tune_setting_t* options, const assay_samples_t* inputs,
                          const assay_samples_t* golden, assay_tuned_t* out) ASSAY_MUST_USE;
void assay_tuned_deinit(assay_tuned_t* t);

#endif  // ASSAY_TUNE_TUNE_H_
