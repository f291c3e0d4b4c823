// The problem of a model: its layers as units, with times, ranges and errors, after `assay tune`.
#ifndef ASSAY_TUNE_MODEL_H_
#define ASSAY_TUNE_MODEL_H_

#include "account/runs.h"
#include "tune/tune.h"

// The model with all in one low format, and what truth says of ranges there.
typedef struct assay_tune_base {
  assay_precision_t precision;
  assay_plan_t* plan;
  assay_account_t* account;
} assay_tune_base_t;

typedef struct assay_tune_model {
  const assay_tune_setting_t* options;
  const assay_samples_t* inputs;
  assay_model_t* model;           // retained
  assay_check_setting_t setting;  // without a precision
  // By low format. The first one's plan is what the units are layers of.
  assay_tune_base_t bases[ASSAY_TUNE_FORMATS];
  assay_tune_layout_t layout;  // with the problem
  assay_tune_works_t works;
  double* seconds;  // [unit * formats + format], whatever the goal
  double total[ASSAY_TUNE_FORMATS];
  bool *pinned, *out_of_range;  // by unit
  assay_tune_gaps_t* gaps;      // by output
  size_t n_unknown;
} assay_tune_model_t;

// Takes the precision of the options over, also on failure. Tells the runs what truth is.
assay_status_t assay_tune_model_create(assay_model_t* model, assay_check_setting_t* check,
                                       const assay_tune_setting_t* options,
                                       const assay_samples_t* inputs, assay_runs_t* runs,
                                       assay_tune_model_t* out) ASSAY_MUST_USE;
void assay_tune_model_deinit(assay_tune_model_t* m);

// Units whose values, or what they read, pass the range of a low format leave it; all: also where
// truth shows no harm.
assay_status_t assay_tune_model_leave_range(assay_tune_model_t* m, size_t format,
                                            bool all) ASSAY_MUST_USE;
// Fills the energies of a low format; outputs: of a run of all samples with all units in it that
// may be.
assay_status_t assay_tune_model_errors(assay_tune_model_t* m, size_t format,
                                       const assay_output_check_t* outputs) ASSAY_MUST_USE;
// Whether so little is left of an output that its error says nothing of its causes.
bool assay_tune_is_lost(const assay_output_check_t* o);
// Writes the format of each node (by id, zeroed) whose unit is free; those of bodies go with their
// unit.
void assay_tune_model_given(const assay_tune_model_t* m, const uint8_t* format,
                            assay_format_t* given);
// Seconds of an assignment by the model of time.
assay_status_t assay_tune_model_seconds(const assay_tune_model_t* m, const uint8_t* format,
                                        double* out) ASSAY_MUST_USE;

#endif  // ASSAY_TUNE_MODEL_H_
