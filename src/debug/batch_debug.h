// Whether a sample's result depends on the batch it is in: what `debug batch` finds.
//
// Relations that need no reference: one sample is run alone, and then in batches of several sizes,
// at each place, among other samples, among padding, and by plans of a fixed batch. Its part of
// every value has to stay the same. Truth (float64) is run first: where truth changes, the model
// itself mixes samples, and the nodes are named whose inputs stay and whose result does not. The
// engine is held to the relations that truth keeps; the first layer that breaks one is named.
#ifndef ASSAY_DEBUG_BATCH_DEBUG_H_
#define ASSAY_DEBUG_BATCH_DEBUG_H_

#include <assay/debug.h>

#include "account/engine.h"
#include "check/check.h"
#include "debug/batch_rows.h"

enum { ASSAY_BATCH_ROWS = 64 };  // of the largest fixed batch that is filled

// One run against the reference.
typedef struct assay_batch_relation {
  const char* name;  // "position"
  int n, place;      // the sample's place in a batch of n
  int rows[ASSAY_BATCH_ROWS];
  bool fixed;   // by a plan of a fixed batch
  bool single;  // inputs of another batch than the first one's have one row
  bool truth_failed, engine_failed, engine_ran;
  bool truth_holds, engine_holds;
  size_t at;  // what broke it, of `found`; SIZE_MAX: nothing
} assay_batch_relation_t;

// A node that broke relations, or that fits one batch only.
typedef struct assay_batch_found {
  char node[200], op[64], value[200];
  char why[320];
  char reader[400];  // who reads it, and in which shapes; "": nothing to say
  bool model;        // in truth
  bool note;         // what the model declares anyway, or never promised: no fault
  bool bits;         // of the engine: no more than rounding explains
  double moved;      // largest difference, as a part of the largest value
  size_t relation;   // the first that it broke
  size_t n_broken;   // of all
} assay_batch_found_t;

typedef struct assay_batch_blame {
  assay_batch_verdict_t verdict;
  assay_batch_relation_t* relations;
  size_t n_relations, cap_relations;
  assay_batch_found_t* found;  // in the order in which they were found
  size_t n_found, cap_found;
  const assay_batch_found_t* guilty;  // the first of the worst; NULL: none
  int64_t batch;                      // of a static model; 0: it is open
  int axis;                           // that it is, of the first input that has it
  size_t given;                       // samples that were the user's, not drawn
  assay_str_t notes;                  // lines: what could not be tried
} assay_batch_blame_t;
void assay_batch_blame_deinit(assay_batch_blame_t* b);

typedef struct assay_batch_options {
  const assay_external_engine_command_t* exec;  // another engine, run for each batch; NULL: ours
  const char* axis;  // as assay_batch_axis_find is asked; NULL: it finds one
} assay_batch_options_t;

// options: its precision and requirements are not used up. Errors: UNSUPPORTED the model has no
// batch; INVALID_ARGUMENT samples that do not go together, an axis that there is not.
assay_status_t assay_batch_debug(assay_model_t* model, const assay_check_setting_t* options,
                                 const assay_batch_options_t* how, const assay_samples_t* inputs,
                                 assay_batch_blame_t* out) ASSAY_MUST_USE;

// ---- the two halves, for each other -------------------------------------------------------------

typedef struct assay_batch_job {
  const assay_check_setting_t* options;
  const assay_batch_options_t* how;
  assay_batch_axis_t axis;
  assay_model_t *given, *open;  // the model; with its batch open
  bool closed;                  // it could not be opened: `open` is the model as it was given
  int ref_n;                    // the batch of the reference: 1, or that of a closed model
  assay_rows_t rows;
  bool* single;          // by input: its batch is another one than the first's
  bool* data;            // by value id of `open`: made of samples, not of sizes
  assay_tensor_t** ref;  // by value id of `open`: what the reference gave
  bool** spoiled;        // by relation, by value id: truth does not keep it
  assay_batch_blame_t* out;
} assay_batch_job_t;

void assay_batch_forget(assay_batch_job_t* j);  // the reference
// Appends what was found, or adds to what is known of that node.
assay_status_t assay_batch_add(assay_batch_job_t* j, const assay_batch_found_t* f) ASSAY_MUST_USE;
// The inputs of a relation; NULL: of the reference.
assay_status_t assay_batch_inputs(const assay_batch_job_t* j, const assay_batch_relation_t* r,
                                  assay_tensor_t*** out) ASSAY_MUST_USE;
// What truth says (batch_truth.c), and the engine (batch_engine.c). out_runs: the reference does.
assay_status_t assay_batch_truth(assay_batch_job_t* j, bool* out_runs) ASSAY_MUST_USE;
assay_status_t assay_batch_engine(assay_batch_job_t* j) ASSAY_MUST_USE;

#endif  // ASSAY_DEBUG_BATCH_DEBUG_H_
