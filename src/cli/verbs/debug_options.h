// Options of verbs of the family debug, which `certify` and `tune` take, too.
#ifndef ASSAY_CLI_VERBS_DEBUG_OPTIONS_H_
#define ASSAY_CLI_VERBS_DEBUG_OPTIONS_H_

#include "cli/input_options.h"
#include "cli/shapes.h"

typedef struct cli_debug_args {
  const char *model, *precision, *layer_precision, *target, *fp32, *truth, *check;
  opt_list_t inputs, golden, no_pass, require, ops;
  bool allow_hard_links;
  int64_t seed, memory_limit;
  bool fused, unfused;
  const char *exec, *inject;
  const char *inner;  // a file of golden's inner values; NULL: none
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
   OPT_LIST,                                                                                    \
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

// Tells why it could not be carried out; the exit code says whether the input is to blame.
int cli_debug_fail(assay_status_t status);

#endif  // ASSAY_CLI_VERBS_DEBUG_OPTIONS_H_
