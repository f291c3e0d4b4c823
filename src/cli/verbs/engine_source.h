// From a model or a plan file, and options, to an engine: what build, bench and run share.
#ifndef ASSAY_CLI_VERBS_ENGINE_SOURCE_H_
#define ASSAY_CLI_VERBS_ENGINE_SOURCE_H_

#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "runtime/executor.h"

typedef struct cli_engine_args {
  const char *model, *precision, *layer_precision, *target, *tactic_sources, *fp32;
  cli_shape_args_t shape;
  opt_list_t no_pass, profiles;
  int64_t seed;
  bool unfused, batch_variant;
  bool strip_weights, refittable;  // what assay_engine_save writes, as assay_strip_t has it
  int64_t max_scratch;    // bytes that a kernel may need, as assay_backend_options_t has it; 0: any
  assay_model_t* loaded;  // that model, loaded already, with no shapes given; NULL: it is loaded
} cli_engine_args_t;

// Rows for a verb whose args_t has `cli_engine_args_t engine`.
#define CLI_ENGINE_OPTIONS                                                                       \
  {"MODEL", 0, OPT_STRING, offsetof(args_t, engine.model), NULL, "the ONNX file", true},         \
      CLI_SHAPE_OPTIONS(engine.shape),                                                           \
      {"--precision",                                                                            \
       0,                                                                                        \
       OPT_STRING,                                                                               \
       offsetof(args_t, engine.precision),                                                       \
       "FORMAT",                                                                                 \
       "format of float32 values: fp32 (default), bf16, fp16;\nint8: as the model's quantizers " \
       "say",                                                                                    \
       false},                                                                                   \
      CLI_RULES_OPTIONS(engine.layer_precision, ""),                                             \
      {"--fp32", 0, OPT_STRING, offsetof(args_t, engine.fp32), "SETTING", CLI_FP32_HELP, false}, \
      {"--target", 0, OPT_STRING, offsetof(args_t, engine.target), "TARGET", "{build}", false},  \
      {"--tactic-sources",                                                                       \
       0,                                                                                        \
       OPT_STRING,                                                                               \
       offsetof(args_t, engine.tactic_sources),                                                  \
       "NAMES",                                                                                  \
       "kernels of these sources only: assay, onednn, on a GPU cublaslt\n(with ',' between); "   \
       "-TACTIC: without this one",                                                              \
       false},                                                                                   \
      {"--no-batch-invariant",                                                                   \
       0,                                                                                        \
       OPT_FLAG,                                                                                 \
       offsetof(args_t, engine.batch_variant),                                                   \
       NULL,                                                                                     \
       "the fastest of all kernels: bits may depend on the batch",                               \
       false},                                                                                   \
      {"--unfused", 0,                                                                           \
       OPT_FLAG,    offsetof(args_t, engine.unfused),                                            \
       NULL,        "one layer a node, without graph passes",                                    \
       false},                                                                                   \
      {"--no-pass",         0,    OPT_LIST, offsetof(args_t, engine.no_pass), "NAME",            \
       "without this pass", false},                                                              \
  {                                                                                              \
    "--seed", 0, OPT_INT, offsetof(args_t, engine.seed), "N",                                    \
        "seed of random inputs and operators", false                                             \
  }

// Loads a plan file, or loads a model, closes its open dimensions, and makes a plan of it, which
// the backend compiles by these options (NULL: without measuring). On failure *exit_code says whose
// fault it is.
assay_status_t cli_engine_open(const cli_engine_args_t* a, const assay_backend_options_t* options,
                               assay_engine_t** out, int* exit_code) ASSAY_MUST_USE;

// How an engine is built, beyond what it is built of.
typedef struct cli_build {
  const char* timing_cache;  // read if it is there, and written; NULL: none
  // In place of that file: the text of a cache, which is only read; NULL: none.
  const char* timings;
  bool unmeasured;     // no kernel is timed
  int max_tactics;     // so many kernels of a layer are timed at most; 0: all
  const char* forced;  // tactics of layers, as assay_backend_options_t has them; NULL: none
  int timing_runs;     // a time is the mean of so many runs; 0: the fastest of some
  // Called after each trial run, the last of which is of the engine as it is returned. A failure
  // ends the build. May be NULL.
  assay_status_t (*tried)(void* user, const assay_engine_t* engine,
                          const assay_executor_t* executor);
  void* user;
} cli_build_t;

// Opens an engine as cli_engine_open does, and runs it with made-up inputs, so that kernels are
// chosen by their times, and weights packed.
assay_status_t cli_engine_build(const cli_engine_args_t* a, const cli_build_t* b,
                                assay_engine_t** out, int* exit_code) ASSAY_MUST_USE;

// Opens an executor and runs it with random inputs: kernels are made and weights packed. Of an
// engine with profiles: for the smallest, the largest and the best shape of each, in that order,
// the first profile last.
assay_status_t cli_engine_try(assay_engine_t* engine, uint64_t seed,
                              assay_executor_t** out) ASSAY_MUST_USE;
// Random inputs: of the best shapes of a profile, or of those given, with its best values.
assay_status_t cli_engine_samples(const assay_engine_t* engine, const cli_shapes_t* shapes,
                                  int profile, uint64_t seed, assay_samples_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_VERBS_ENGINE_SOURCE_H_
