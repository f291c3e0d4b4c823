// What several verbs take: input files.
#ifndef ASSAY_CLI_INPUTS_H_
#define ASSAY_CLI_INPUTS_H_

#include "cli/input_options.h"
#include "cli/shapes.h"
#include "data/samples.h"
#include "data/tensor_files.h"
#include "onnx/load.h"

// Files are of any format that data/tensor_files.h knows, FILE or NAME=FILE, and are read as
// `reading` says (reading.h); NULL: as they are.

// What is known of a model's outputs: run by run, and as one set (where the runs' shapes differ,
// the first one's arrays).
assay_status_t cli_read_golden(const char* path, const assay_model_t* model,
                               assay_tensor_reading_t* reading, assay_saved_t* out_runs,
                               assay_set_t* out_set) ASSAY_MUST_USE;
// That set of runs.
assay_status_t cli_join_golden(assay_saved_t* runs, assay_set_t* out) ASSAY_MUST_USE;
// Samples of those: a run each where the inputs have as many samples, else the set's rows.
assay_status_t cli_golden_samples(const assay_saved_t* runs, const assay_set_t* set,
                                  const assay_graph_t* g, size_t n_inputs,
                                  assay_samples_t* out) ASSAY_MUST_USE;
// Samples from files, or generated with a warning on stderr if there are none.
assay_status_t cli_samples(const opt_list_t* files, const assay_model_t* model,
                           assay_tensor_reading_t* reading, uint64_t seed,
                           assay_samples_t* out) ASSAY_MUST_USE;
// Samples from files; none if there are none. required: of every input without an initializer.
assay_status_t cli_samples_given(const opt_list_t* files, const assay_model_t* model,
                                 assay_tensor_reading_t* reading, bool required,
                                 assay_samples_t* out) ASSAY_MUST_USE;

// What `reading` says, which the result borrows, for functions of the public API.
assay_samples_options_t cli_samples_options(const assay_tensor_reading_t* reading);

#endif  // ASSAY_CLI_INPUTS_H_
