// What the units of a plan do to its outputs when they run in one low format.
//
// One run with taps shows the error that each layer puts on its own outputs (own error). It is
// carried to the model's outputs to first order, by the products of search_predict.h: along the
// error that the outputs really have, and across it. Where an operator has no such rule, the shares
// of the error (shares.h) stand in.
#ifndef ASSAY_TUNE_ERRORS_H_
#define ASSAY_TUNE_ERRORS_H_

#include "data/samples.h"
#include "exec/backend.h"
#include "tune/layout.h"

typedef struct assay_tune_errors_setting {
  const assay_plan_t* plan;  // all that may be in the format is
  const assay_backend_t* backend;
  assay_format_t format;
  const assay_tune_layout_t* layout;
  const assay_samples_t* inputs;
  size_t samples;  // the first so many
  uint64_t draws;  // of random signs, for each sample and output
  bool unquantized;
  void (*progress)(void* user, const char* what, double fraction);
  void* user;
} assay_tune_errors_setting_t;

// Mean squares per element of an output, over the samples.
typedef struct assay_tune_errors {
  double* energy;  // [unit * outputs + output]: of the unit's own error by itself
  double* share;   // the same: its product with the whole error
  double* link;    // [link * outputs + output]: of rounding what the reader reads
  double* base;    // [output]: of the whole error
  double* ratio;   // [unit]: of its own error, over what it makes; 1 and more where choices flip
  bool* unknown;   // [unit]: an operator after it has no rule
} assay_tune_errors_t;

assay_status_t assay_tune_errors_measure(const assay_tune_errors_setting_t* s,
                                         assay_tune_errors_t* out) ASSAY_MUST_USE;
void assay_tune_errors_deinit(assay_tune_errors_t* e);

#endif  // ASSAY_TUNE_ERRORS_H_
