// The runners of a run: the evaluator in two modes, and Assay's engine.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_RUNNERS_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_RUNNERS_H_

#include "frontends/polygraphy/build.h"
#include "runtime/executor.h"

typedef struct pg_runner {
  pg_flag_id_t kind;
  const char* name;  // "onnxrt-runner-N0-11/21/26-06:02:27"
  assay_model_t* model;
  assay_executor_t* executor;
  assay_engine_t* engine;  // of --trt
  // Of an engine with outputs that it does not have by itself: their names in order, among its own.
  // What lies between its layers is seen as it runs; what lies within one is taken from a second
  // engine that has it as an output, so that the first computes what it always does.
  const char** names;
  size_t n_names;
  assay_engine_t* marked;
  assay_executor_t* marked_executor;
  assay_tap_t tap;      // what sees them; the executor points to it
  assay_set_t seen;     // of the running iteration
  int profile;          // of the engine, that inputs have to fit; -1: any
  bool reported_risks;  // that its formats cannot hold some values (cli/risks.h)
} pg_runner_t;

// Makes the runner ready. inputs: of the run; NULL: none are known yet.
assay_status_t pg_runner_open(pg_job_t* j, pg_flag_id_t kind, size_t number,
                              const assay_saved_t* inputs, pg_runner_t* out) ASSAY_MUST_USE;
void pg_runner_close(pg_runner_t* r);
// Runs one iteration; *out_seconds is how long it took.
assay_status_t pg_runner_run(pg_runner_t* r, const assay_set_t* inputs, assay_set_t* out,
                             double* out_seconds) ASSAY_MUST_USE;

// The inputs of the line's model, or plan: they live as long as *out_model.
assay_status_t pg_runner_inputs(pg_job_t* j, assay_model_t** out_model) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_RUNNERS_H_
