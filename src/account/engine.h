// Engines that are not ours: a command that is run, or files that one has left.
//
// Either gives, for each sample, values by their names in the model: all outputs of the graph, and
// any values of the top graph besides, each of which is a tap. '|' may stand for '/'; a name map
// tells of other names.
#ifndef ASSAY_ACCOUNT_ENGINE_H_
#define ASSAY_ACCOUNT_ENGINE_H_

#include "account/golden/golden.h"
#include "data/samples.h"
#include "data/tensor_files.h"
#include "plan/recorded.h"

typedef struct assay_external_engine assay_external_engine_t;

// A command for the shell. {model} {inputs} {outputs} {precision} are put in, quoted: do not quote
// them again.
typedef struct assay_external_engine_command {
  const char* command;
  const char* model;      // path of the file
  const char* precision;  // "fp16"
  double seconds;         // time limit of one run
} assay_external_engine_command_t;

// Runs the command on the first sample, to learn what it gives; on the others when they are asked
// for. Borrows everything; the samples are the check's inputs; names may be empty.
// Errors: DEVICE the command failed or gave something else than the model's values;
// INVALID_ARGUMENT {inputs} or {outputs} are missing in it.
assay_status_t assay_external_engine_run(const assay_model_t* model,
                                         const assay_external_engine_command_t* command,
                                         const assay_samples_t* inputs,
                                         const assay_name_map_t* names,
                                         assay_external_engine_t** out) ASSAY_MUST_USE;

// Reads what an engine gave, in any format of tensor_files.h, for n samples.
//   reading  how; NULL: as the file is
// Errors: NOT_FOUND, CORRUPT the file; INVALID_ARGUMENT it does not fit the model or the samples.
assay_status_t assay_external_engine_read(const assay_model_t* model, const char* path,
                                          assay_tensor_reading_t* reading, size_t n,
                                          const assay_name_map_t* names,
                                          assay_external_engine_t** out) ASSAY_MUST_USE;

void assay_external_engine_destroy(assay_external_engine_t* e);  // NULL is allowed
// For assay_plan_options_t; lives as long as the engine.
const assay_recorded_t* assay_external_engine_recorded(const assay_external_engine_t* e);
// Lines for the user: arrays that are not values of the model. "" if none.
const char* assay_external_engine_notes(const assay_external_engine_t* e);

#endif  // ASSAY_ACCOUNT_ENGINE_H_
