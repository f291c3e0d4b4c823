// Runs of one model in one precision after the other, judged by one truth: what searches for a
// precision are made of.
#ifndef ASSAY_ACCOUNT_RUNS_H_
#define ASSAY_ACCOUNT_RUNS_H_

#include "account/account.h"
#include "account/outputs.h"
#include "account/shares.h"
#include "onnx/load.h"

typedef struct assay_runs_setting {
  const assay_backend_t* backend;
  const assay_plan_options_t* plan;
  const assay_requirements_t* require;     // NULL: as assay_outputs_hold
  const assay_samples_t *inputs, *golden;  // golden NULL: none
  bool golden_quantized;  // golden is of a network that quantizes, as the model does
  bool unquantized;
  bool part;  // of the samples: statistics are wanted, also where they alone could not be judged
  int64_t max_known_bytes;  // truth of samples past this is evaluated in each run; 0: all is kept
  uint64_t seed;
  // Build everything anew for each run, as a build does: read this file, run the passes, time the
  // tactics that compete, pack the weights. NULL: packed weights stay from run to run, and nothing
  // is timed: what competes gives the same bits.
  const char* rebuild;
  const assay_input_shape_t* shapes;  // of its inputs
  size_t n_shapes;
  // Runs all samples somewhere else, and adds what they gave to the statistics, which are empty.
  // Not with `rebuild`, nor with commands of the user's. NULL: they run here.
  assay_status_t (*elsewhere)(void* user, const assay_precision_t* precision,
                              assay_output_check_t* outputs);
  void* user;  // of it
} assay_runs_setting_t;

typedef struct assay_runs assay_runs_t;

// What one run gave.
typedef struct assay_run_result {
  assay_output_check_t* outputs;  // by graph output
  bool faithful;
  assay_str_t unmet;  // what commands of the user's have against it
} assay_run_result_t;
void assay_run_result_deinit(assay_run_result_t* r);

// Borrows the setting and the model.
assay_status_t assay_runs_create(assay_model_t* model, const assay_runs_setting_t* setting,
                                 assay_runs_t** out) ASSAY_MUST_USE;
void assay_runs_destroy(assay_runs_t* r);  // NULL is allowed
// Takes over truth of a sample from the account that has just run it. Truth of samples that nobody
// told is evaluated when it is needed, once.
assay_status_t assay_runs_know(assay_runs_t* r, size_t sample,
                               const assay_account_t* account) ASSAY_MUST_USE;

// Runs all samples. out_plan: what ran; out_taken: what was made of the first sample, of that plan;
// both may be NULL, out_taken has to be with `rebuild`.
assay_status_t assay_runs_try(assay_runs_t* r, const assay_precision_t* precision,
                              assay_run_result_t* out, assay_plan_t** out_plan,
                              assay_taken_t** out_taken) ASSAY_MUST_USE;
// The same of another model with the same inputs and outputs, held against truth of the own one;
// not with `rebuild`.
assay_status_t assay_runs_try_model(assay_runs_t* r, assay_model_t* model,
                                    const assay_precision_t* precision,
                                    assay_run_result_t* out) ASSAY_MUST_USE;
// Drops packed weights: after a change of the setting's plan.
void assay_runs_drop(assay_runs_t* r);
size_t assay_runs_count(const assay_runs_t* r);   // so far
size_t assay_runs_builds(const assay_runs_t* r);  // of them, with everything built anew

#endif  // ASSAY_ACCOUNT_RUNS_H_
