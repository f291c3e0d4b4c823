// What verbs of the family debug share: a model, how it is run, on which samples, and what its
// outputs have to keep.
#ifndef ASSAY_CLI_VERBS_DEBUG_JOB_H_
#define ASSAY_CLI_VERBS_DEBUG_JOB_H_

#include "account/engine.h"
#include "check/check.h"
#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "cli/verbs/reading.h"
#include "report/report.h"

typedef struct cli_debug_args {
  const char *model, *precision, *layer_precision, *target, *golden, *fp32, *truth, *check;
  opt_list_t inputs, no_pass, require, ops;
  bool allow_hard_links;
  int64_t seed, memory_limit;
  bool fused, unfused;
  const char *exec, *inject;
  const char* known[2];  // files of golden arrays, for `known` of the job; NULL: none
  double exec_seconds;
  cli_reading_args_t reading;
  cli_shape_args_t shape;
  bool
      drawn;  // inputs are meant to be drawn from the seed where none are given: nothing to warn of
} cli_debug_args_t;

// Rows for a verb whose args_t has `cli_debug_args_t debug`. A verb may have another help for
// formats.
#define CLI_DEBUG_FORMAT_HELP \
  "format of float32 values: fp16, bf16, tf32, fp8e4m3 ...\n(default: as declared)"
#define CLI_DEBUG_OPTIONS                                                                          \
  {"MODEL", 0, OPT_STRING, offsetof(args_t, debug.model), NULL, "the ONNX file", true},            \
      {"--precision",         0,    OPT_STRING, offsetof(args_t, debug.precision), "FORMAT",       \
       CLI_DEBUG_FORMAT_HELP, false},                                                              \
      CLI_RULES_OPTIONS(debug.layer_precision, ""),                                                \
      {"--inputs", 'i', OPT_LIST, offsetof(args_t, debug.inputs), "FILE", CLI_INPUTS_HELP, false}, \
      CLI_READING_OPTIONS(debug.reading),                                                          \
      {"--target", 0, OPT_STRING, offsetof(args_t, debug.target), "TARGET", CLI_DEBUG_TARGET_HELP, \
       false},                                                                                     \
      CLI_SHAPE_OPTIONS(debug.shape),                                                              \
      {"--fp32", 0, OPT_STRING, offsetof(args_t, debug.fp32), "SETTING", CLI_FP32_HELP, false},    \
      {"--truth",  0,                                                                              \
       OPT_STRING, offsetof(args_t, debug.truth),                                                  \
       "MODE",     "unquantized: quantizers are the identity in truth (default: as\nwritten)",     \
       false},                                                                                     \
      {"--seed", 0,                                                                                \
       OPT_INT,  offsetof(args_t, debug.seed),                                                     \
       "N",      "seed of random inputs and operators",                                            \
       false},                                                                                     \
      CLI_HARD_LINKS_OPTION(debug.allow_hard_links),                                               \
      {"--ops",                                                                                    \
       0,                                                                                          \
       OPT_LIST,                                                                                   \
       offsetof(args_t, debug.ops),                                                                \
       "LIB.so",                                                                                   \
       "a library of operators of your own\n(docs/custom-operators.md); may be given again",       \
       false},                                                                                     \
  {                                                                                                \
    "--memory-limit", 0, OPT_BYTES, offsetof(args_t, debug.memory_limit), "SIZE",                  \
        "fail rather than take more (8G, 500M); default: what the\nmachine has available", false   \
  }

// Rows for what the outputs have to keep.
#define CLI_DEBUG_REQUIREMENTS                                                                  \
  {"--golden",                                                                                  \
   'g',                                                                                         \
   OPT_STRING,                                                                                  \
   offsetof(args_t, debug.golden),                                                              \
   "FILE",                                                                                      \
   "the original framework's outputs, for requirements on golden,\n" CLI_LIKE_INPUTS_HELP,      \
   false},                                                                                      \
      {"--require",                                                                             \
       0,                                                                                       \
       OPT_LIST,                                                                                \
       offsetof(args_t, debug.require),                                                         \
       "DEMAND",                                                                                \
       "'[OUTPUT:] STATISTIC OP VALUE', such as 'logits: top1 >= 0.99'\n(default: 'cosine >= "  \
       "0.999'), also of a part of an output:\n'boxes[:, 4:] max_abs <= 0.01' "                 \
       "(docs/requirements.md)",                                                                \
       false},                                                                                  \
  {                                                                                             \
    "--check", 0, OPT_STRING, offsetof(args_t, debug.check), "COMMAND",                         \
        "your own judge: run with {outputs}, {truth}, {golden}, {inputs}\nput in (npz files); " \
        "exit code 0 if the outputs will do, 1 if not",                                         \
        false                                                                                   \
  }

// Rows for verbs that take another engine, too, and faults of ours.
#define CLI_DEBUG_EXEC(what)                                                      \
  {"--exec",                                                                      \
   0,                                                                             \
   OPT_STRING,                                                                    \
   offsetof(args_t, debug.exec),                                                  \
   "COMMAND",                                                                     \
   "another engine: runs COMMAND for each " what                                  \
   ", with {model}\n{inputs} {outputs} {precision} "                              \
   "put in; npz in, npz out",                                                     \
   false},                                                                        \
      {"--exec-timeout",                                                          \
       0,                                                                         \
       OPT_FLOAT,                                                                 \
       offsetof(args_t, debug.exec_seconds),                                      \
       "SECONDS",                                                                 \
       "how long one run of it may take (default: 600)",                          \
       false},                                                                    \
  {                                                                               \
    "--inject", 0, OPT_STRING, offsetof(args_t, debug.inject), "FAULT",           \
        "for tests: a fault of the emulated engine's, NODE:KIND=ARGUMENTS", false \
  }

// Rows for the plan: --fused is what `cpu` has by default.
#define CLI_DEBUG_FUSED                                                                        \
  CLI_DEBUG_FUSED_ROW("--fused", debug.fused,                                                  \
                      "the fused plan: run the graph passes (default for cpu)"),               \
      CLI_DEBUG_FUSED_ROW("--unfused", debug.unfused, "one layer a node (default for emu)"), { \
    "--no-pass", 0, OPT_LIST, offsetof(args_t, debug.no_pass), "NAME",                         \
        "the fused plan without this pass", false                                              \
  }
#define CLI_DEBUG_FUSED_ROW(name, field, text) \
  { name, 0, OPT_FLAG, offsetof(args_t, field), NULL, text, false }

typedef struct cli_debug_job {
  assay_model_t* model;
  assay_samples_t inputs, golden;
  assay_set_t known;  // golden's arrays by name, outputs and inner values
  assay_requirements_t require;
  cli_shapes_t shapes;
  assay_tensor_reading_t reading;
  assay_check_setting_t options;  // with the precision, until a run takes it over
} cli_debug_job_t;

// What does not go together in the rows of CLI_DEBUG_EXEC; NULL: nothing.
const char* cli_debug_exec_conflict(const cli_debug_args_t* a);
// The engine that is asked for; command NULL: ours.
assay_external_engine_command_t cli_debug_exec(const cli_debug_args_t* a);
// Reads and checks everything. False: it has been told what is wrong, *out_exit is the exit code.
bool cli_debug_open(const cli_debug_args_t* a, cli_debug_job_t* out, int* out_exit);
void cli_debug_close(cli_debug_job_t* j);
// Tells why it could not be carried out; the exit code says whether the input is to blame.
int cli_debug_fail(assay_status_t status);
// How a verb's finding is told.
typedef struct cli_debug_report {
  assay_status_t (*text)(const void* found, const assay_report_debug_t* names, assay_str_t* out);
  assay_status_t (*json)(const void* found, const assay_report_debug_t* names, json_t** out);
} cli_debug_report_t;
// As text on stdout, and as JSON in a file; "-": on stdout in its place. path NULL: no JSON.
assay_status_t cli_debug_tell(const cli_debug_report_t* r, const void* found,
                              const assay_report_debug_t* names, const char* path) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_VERBS_DEBUG_JOB_H_
