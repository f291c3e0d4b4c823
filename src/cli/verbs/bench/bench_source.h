// A model or a plan that `assay bench` measures: its engine, and its inputs as a caller gives them.
#ifndef ASSAY_CLI_VERBS_BENCH_BENCH_SOURCE_H_
#define ASSAY_CLI_VERBS_BENCH_BENCH_SOURCE_H_

#include "cli/verbs/engine_source.h"
#include "cli/verbs/reading.h"

typedef struct bench_source {
  assay_engine_t* engine;
  const assay_model_t* model;  // the engine's
  assay_samples_t samples;
  assay_tensor_t** inputs;  // of the first sample, packed, by input of the graph; NULL: not given
  size_t n_inputs;
  bool given;  // inputs are the user's, not random
} bench_source_t;

// Opens the engine, with inputs from these files, else random ones: only time is measured.
// *exit_code says whose fault a failure is; what is there then is for bench_source_deinit.
assay_status_t bench_source_open(const cli_engine_args_t* engine, const opt_list_t* inputs,
                                 const cli_reading_args_t* reading, bench_source_t* out,
                                 int* exit_code) ASSAY_MUST_USE;
void bench_source_deinit(bench_source_t* s);

// Puts the inputs into an executor of the engine that is about to run.
assay_status_t bench_source_set(const bench_source_t* s, assay_executor_t* e) ASSAY_MUST_USE;

// Warns of values that the plan's formats cannot hold: runs it once on given inputs, with taps,
// where formats of a small range are in it. Random ones say nothing of that, and the run takes
// minutes where a GPU took milliseconds.
void bench_source_warn(const bench_source_t* s);

#endif  // ASSAY_CLI_VERBS_BENCH_BENCH_SOURCE_H_
