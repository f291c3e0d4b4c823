// One call of trtexec: what its parts hand on to each other.
#ifndef ASSAY_CLI_TRTEXEC_JOB_H_
#define ASSAY_CLI_TRTEXEC_JOB_H_

#include <assay/context.h>

#include "cli/engine_source.h"
#include "cli/trtexec/flags.h"

// What was asked for a node by --layerPrecisions and --layerOutputTypes; NONE: nothing.
typedef struct trt_wish {
  assay_format_t compute, output;
} trt_wish_t;

// How a layer ran in the trial run.
typedef struct trt_fact {
  const char* tactic;  // borrowed from the backend's tables
  assay_format_t executed;
} trt_fact_t;

typedef struct trt_job {
  const trt_options_t* options;
  assay_arena_t* arena;
  const char* command_line;
  assay_model_t* model;      // that is built; NULL: a plan is loaded
  assay_model_t* edited;     // the same as it would be written; NULL: it is as in the file
  bool quantized;            // by trt_quantize
  cli_engine_args_t native;  // what the flags mean to cli_engine_build
  opt_list_t io_types;       // "NAME=TYPE" of inputs and outputs in another type than the model's
  trt_wish_t* wishes;        // by node id of `model`; NULL: none
  assay_map_t wished;        // labels of nodes with a wish -> their ids
  bool obey;
  size_t n_integer_layers;    // that are named, and have no floats
  const char* integer_layer;  // the first of them
  assay_str_t rules;          // of layers, as --layer-precision has them
  assay_engine_t* engine;
  trt_fact_t* facts;  // by layer
  size_t n_facts, run_bytes;
  bool* warned;         // by node id: that its wish was not met
  assay_str_t timings;  // what the timing cache may get
  bool timings_kept;    // there is a file of another machine or kind: it stays
} trt_job_t;

// Reads the flags of shapes into native.profiles, with what they leave out filled in (shapes.c).
assay_status_t trt_resolve_profile(trt_job_t* j) ASSAY_MUST_USE;
// The shape of input i in the run. out_dims has room for ASSAY_MAX_RANK.
assay_status_t trt_run_shape(const trt_job_t* j, size_t i, int* out_rank,
                             int64_t* out_dims) ASSAY_MUST_USE;
// Fails where --shapes names no input, or one that is static and otherwise.
assay_status_t trt_check_run_shapes(const trt_job_t* j) ASSAY_MUST_USE;
void trt_dump_optimization_profile(const trt_job_t* j);

// Reads --layerPrecisions and --layerOutputTypes into wishes and rules (layers.c).
assay_status_t trt_resolve_layers(trt_job_t* j) ASSAY_MUST_USE;
// Whether layers ran as was wished for: warns, or with --precisionConstraints=obey fails.
assay_status_t trt_check_layers(trt_job_t* j, const assay_layers_t* layers) ASSAY_MUST_USE;

// Finds `facts` of a plan that was loaded: runs it once.
assay_status_t trt_find_facts(trt_job_t* j) ASSAY_MUST_USE;
// Builds or loads the engine, with all that is told about it (engine.c).
assay_status_t trt_open_engine(trt_job_t* j) ASSAY_MUST_USE;
// Loads the model and finds out what the flags mean to the native commands.
assay_status_t trt_translate(trt_job_t* j) ASSAY_MUST_USE;
void trt_job_deinit(trt_job_t* j);
// The native commands that do the same (native.c).
assay_status_t trt_print_native(const trt_job_t* j) ASSAY_MUST_USE;
// Puts Casts into the model for --inputIOFormats and --outputIOFormats; checks --calib (formats.c,
// calibration.c).
assay_status_t trt_set_io_formats(trt_job_t* j) ASSAY_MUST_USE;
assay_status_t trt_check_calibration(const trt_job_t* j) ASSAY_MUST_USE;
// The layers as text and JSON (layer_info.c).
assay_status_t trt_tell_layers(const trt_job_t* j) ASSAY_MUST_USE;
// Runs and reports (inference.c).
assay_status_t trt_infer(trt_job_t* j) ASSAY_MUST_USE;

double trt_now_ms(void);  // of a clock that only goes forward

#endif  // ASSAY_CLI_TRTEXEC_JOB_H_
