// One call of trtexec: what its parts hand on to each other.
#ifndef ASSAY_FRONTENDS_TRTEXEC_JOB_H_
#define ASSAY_FRONTENDS_TRTEXEC_JOB_H_

#include <assay/context.h>

#include "cli/verbs/engine_source.h"
#include "data/samples.h"
#include "edit/weights/calibration_cache.h"
#include "frontends/trtexec/flags.h"
#include "frontends/trtexec/layouts.h"

// What was asked for a node by --layerPrecisions and --layerOutputTypes; NONE: nothing.
typedef struct trt_request {
  assay_format_t compute, output;
} trt_request_t;

// How a layer ran in the trial run.
typedef struct trt_fact {
  const char* tactic;  // borrowed from the backend's tables
  assay_format_t executed;
} trt_fact_t;

typedef struct trt_job {
  const trt_options_t* options;
  assay_arena_t* arena;
  const char* command_line;
  assay_model_t* model;            // that is built; NULL: a plan is loaded
  assay_model_t* edited;           // the same as it would be written; NULL: it is as in the file
  bool pruned;                     // by --sparsity=force
  bool quantized;                  // by trt_quantize
  const assay_samples_t* samples;  // of the inputs, that ranges of int8 come from; NULL: random
  const char* calibrator;  // of the samples, as 'assay edit quantize' calls it; NULL: its default
  double percentile;       // of that calibrator; 0: it has none
  const char* cache_out;   // where times go in place of --timingCacheFile; "": nowhere; NULL: there
  assay_edit_scale_t* scales;  // --calib, or what came of the samples
  size_t n_scales;
  const char* verbosity;  // --profilingVerbosity, or what the plan was built with
  const char** debug;     // --markDebug: names of values
  size_t n_debug;
  size_t n_debug_outputs;    // so many outputs after the model's own are debug tensors
  assay_words_t ends;        // all outputs of what is built, where there are any such
  bool all_debug;            // --markUnfusedTensorsAsDebugTensors
  cli_engine_args_t native;  // what the flags mean to cli_engine_build
  opt_list_t io_types;       // "NAME=TYPE" of inputs and outputs in another type than the model's
  trt_ends_t layouts;        // inputs and outputs that are handed over otherwise than in rows
  trt_request_t* requests;   // by node id of `model`; NULL: none
  assay_map_t wished;        // labels of nodes with a request -> their ids
  bool obey;
  const bool* shape_nodes;    // by node id: that it computes a shape; NULL: there are no lists
  size_t n_integer_layers;    // that are named, and have no floats
  const char* integer_layer;  // the first of them
  assay_str_t rules;          // of layers, as --layer-precision has them
  assay_engine_t* engine;
  trt_fact_t* facts;  // by layer
  size_t n_facts, run_bytes;
  uint64_t workspace;      // bytes of scratch that a kernel may need; 0: any
  size_t scratch, n_over;  // the most that one needs; how many layers' need more than that
  const char* over;        // the first of these layers
  bool* warned;            // by node id: that its request was not met
  assay_str_t timings;     // what the timing cache may get
  bool timings_measured;   // some were measured in this build
  bool timings_kept;       // there is a file of another machine or kind: it stays
  const char* lent;        // times that are known, in place of the cache's file; NULL: none
  const char* forced;      // tactics of layers, as cli_build_t has them; NULL: none
} trt_job_t;

// Reads the flags of shapes into native.profiles, with what they leave out filled in (shapes.c).
assay_status_t trt_resolve_profile(trt_job_t* j) ASSAY_MUST_USE;
// How many elements an input of the model has that holds a shape; 0: it does not (shape_inputs.c).
assay_status_t trt_shape_input(const assay_model_t* m, const assay_value_t* input,
                               int64_t* out_n) ASSAY_MUST_USE;
// Of each node id whether it computes a shape: all that it makes is read for sizes only. *out lies
// in the arena.
assay_status_t trt_shape_nodes(assay_arena_t* arena, const assay_model_t* m,
                               bool** out) ASSAY_MUST_USE;
// The shape of input i in the run. out_dims has room for ASSAY_MAX_RANK. Of an input that holds a
// shape: the values, which *out_values says.
assay_status_t trt_run_shape(const trt_job_t* j, size_t i, bool* out_values, int* out_rank,
                             int64_t* out_dims) ASSAY_MUST_USE;
// Fails where --shapes names no input, or one that is static and otherwise, or --useProfile a
// profile that there is not.
assay_status_t trt_check_run_shapes(const trt_job_t* j) ASSAY_MUST_USE;
void trt_dump_optimization_profile(const trt_job_t* j);

// The shapes that ranges of int8 are looked for in: --optShapesCalib, or those of --calibProfile;
// *out lies in the arena.
assay_status_t trt_calibration_shapes(const trt_job_t* j, assay_input_shape_t** out,
                                      size_t* out_n) ASSAY_MUST_USE;

// Chooses the format of the build; with it go the edits that --int8 and --sparsity=force ask for
// (precision.c).
assay_status_t trt_choose_precision(trt_job_t* j) ASSAY_MUST_USE;

// Reads --layerPrecisions and --layerOutputTypes into requests and rules (layers.c).
assay_status_t trt_resolve_layers(trt_job_t* j) ASSAY_MUST_USE;
// Whether layers ran as was wished for: warns, or with --precisionConstraints=obey fails.
assay_status_t trt_check_layers(trt_job_t* j, const assay_layers_t* layers) ASSAY_MUST_USE;

// UNSUPPORTED where a plan that was loaded is stripped and has not been refitted.
assay_status_t trt_check_weights(const trt_job_t* j) ASSAY_MUST_USE;
// Finds `facts` of a plan that was loaded: runs it once.
assay_status_t trt_find_facts(trt_job_t* j) ASSAY_MUST_USE;
// The timing cache (cache.c): its file, NULL: none; its text, "" where there is none that a build
// could read, which lies in the arena; what is written after a build.
const char* trt_cache_file(const trt_options_t* o);
assay_status_t trt_cache_read(const trt_job_t* j, const char* path, bool* out_other,
                              const char** out) ASSAY_MUST_USE;
assay_status_t trt_cache_write(const trt_job_t* j, const char* path) ASSAY_MUST_USE;
// Says after a build that it read this text of the file, unless that is of another machine.
void trt_cache_report(const trt_job_t* j, const char* path, const char* text);
// Builds or loads the engine, with all that is told about it (engine.c).
assay_status_t trt_open_engine(trt_job_t* j) ASSAY_MUST_USE;
// Fails where a file is a plan of TensorRT.
assay_status_t trt_refuse_tensorrt(const char* path) ASSAY_MUST_USE;
// Loads the model, unless it is there, and finds out what the flags mean to the native commands.
assay_status_t trt_translate(trt_job_t* j) ASSAY_MUST_USE;
void trt_job_deinit(trt_job_t* j);
// The native commands that do the same (native.c).
assay_status_t trt_print_native(const trt_job_t* j) ASSAY_MUST_USE;
// How many of the engine's outputs are the model's.
size_t trt_output_count(const trt_job_t* j);
// --markDebug: makes outputs of them; whether what --saveDebugTensors and --saveAllDebugTensors
// name is marked (debug.c).
assay_status_t trt_mark_debug(trt_job_t* j) ASSAY_MUST_USE;
assay_status_t trt_check_debug(const trt_job_t* j) ASSAY_MUST_USE;
// What trtexec keeps in a plan (note.c).
assay_status_t trt_note_write(trt_job_t* j) ASSAY_MUST_USE;
assay_status_t trt_note_read(trt_job_t* j) ASSAY_MUST_USE;
// The layouts alone; names lie in the arena.
assay_status_t trt_note_layouts(const assay_engine_t* engine, assay_arena_t* arena,
                                trt_ends_t* out) ASSAY_MUST_USE;
// Appends a text, which is borrowed.
// --dumpRefit; whether --directIO holds (refit_info.c).
assay_status_t trt_dump_refit(const trt_job_t* j) ASSAY_MUST_USE;
assay_status_t trt_check_direct(const trt_job_t* j) ASSAY_MUST_USE;
// Reads --calib into scales (calibration.c).
assay_status_t trt_load_calibration(trt_job_t* j) ASSAY_MUST_USE;
// Puts Casts, or quantizers, into the model for --inputIOFormats and --outputIOFormats, and chooses
// layouts (formats.c).
assay_status_t trt_set_io_formats(trt_job_t* j) ASSAY_MUST_USE;
// The layers as text and JSON (layer_info.c).
assay_status_t trt_report_layers(const trt_job_t* j) ASSAY_MUST_USE;
// Runs and reports (inference.c).
assay_status_t trt_infer(trt_job_t* j) ASSAY_MUST_USE;

double trt_now_ms(void);  // of a clock that only goes forward

#endif  // ASSAY_FRONTENDS_TRTEXEC_JOB_H_
