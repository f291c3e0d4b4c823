// One call of polygraphy: what its parts hand on to each other.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_JOB_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_JOB_H_

#include <assay/context.h>

#include "cli/verbs/engine_source.h"
#include "frontends/polygraphy/flags.h"
#include "frontends/polygraphy/log.h"

// A subcommand returns an error for what could not be done; what was done and did not pass (a
// comparison, a lint) is told in the log and in `failed`. Both end with exit code 1.
struct pg_warned;  // model.c
struct pg_job {
  const pg_args_t* args;
  assay_arena_t* arena;
  const char* program;       // this program's file, for commands that call it again
  const char* command_line;  // of the RUNNING line
  bool failed;
  bool reported_model;       // that it is loaded
  struct pg_warned* warned;  // what was found wrong with models, and shown
  bool reported_plan;  // which flags of a build it does not respect: a plan may be opened twice
};

#define PG_COMMAND(id, ...) assay_status_t pg_run_##id(pg_job_t* j) ASSAY_MUST_USE;
#include "frontends/polygraphy/commands.inc"
#undef PG_COMMAND

// The model of the line, in the arena: read (--external-data-dir, --ignore-external-data), with
// --shape-inference, --onnx-outputs, --onnx-exclude-outputs, --onnx-outputs-by-type, --fp-to-fp16
// (model.c). A missing file warns as Polygraphy does, and is an error.
assay_status_t pg_load_model(pg_job_t* j, assay_model_t** out) ASSAY_MUST_USE;
// The same without what concerns outputs.
assay_status_t pg_load_unmarked(pg_job_t* j, assay_model_t** out) ASSAY_MUST_USE;
// The model as it is run, with types; known: what Assay cannot evaluate is an error. What is wrong
// with it and keeps nobody from running it is a warning, once a call.
assay_status_t pg_prepare_model(pg_job_t* j, assay_model_t* m, bool known,
                                assay_model_t** out) ASSAY_MUST_USE;
// Writes a model, with --save-external-data and its kin.
assay_status_t pg_save_model(pg_job_t* j, const assay_model_t* m, const char* path) ASSAY_MUST_USE;
// "Original Model:", "New Model:": name, opset, inputs, outputs, initializers, nodes.
assay_status_t pg_report_model(const char* heading, const assay_model_t* m) ASSAY_MUST_USE;
// Loads the line's model, changes it, and writes it to --output; tells of it before and after.
assay_status_t pg_change_model(pg_job_t* j,
                               assay_status_t (*change)(pg_job_t* j,
                                                        assay_model_t* m)) ASSAY_MUST_USE;
// Prints a shape and a type as "x [dtype=float32, shape=('N', 3, 4, 4)]".
void pg_put_tensor_info(assay_str_t* out, const assay_value_t* v);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_JOB_H_
