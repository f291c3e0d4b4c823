// Rows and help of options that several verbs take: files of inputs, how they are read, plans.
#ifndef ASSAY_CLI_INPUT_OPTIONS_H_
#define ASSAY_CLI_INPUT_OPTIONS_H_

#include "cli/cli.h"

// What options that take files of tensors say.
#define CLI_INPUTS_HELP \
  "FILE or NAME=FILE, in one of the formats {formats}.\nGiven again: more inputs, or more samples"
#define CLI_LIKE_INPUTS_HELP "in any format that --inputs takes"

// What is said where there are none.
#define CLI_RANDOM_INPUTS                                                              \
  "assay: no inputs given: random ones are used, which show no accuracy on real data " \
  "(ranges, masks and indices differ)"

// Rows for the options of a verb whose args_t has `bool fused` and `opt_list_t no_pass`.
#define CLI_FUSED_OPTIONS                                                                      \
  {"--fused", 0,                                                                               \
   OPT_FLAG,  offsetof(args_t, fused),                                                         \
   NULL,      "the fused plan: run the graph passes, several nodes in a layer",                \
   false},                                                                                     \
  {                                                                                            \
    "--no-pass", 0, OPT_LIST, offsetof(args_t, no_pass), "NAME",                               \
        "the fused plan without this pass (constant_folding,\nbatchnorm_into_conv ...)", false \
  }

#define CLI_FP32_HELP                                                                \
  "which kernels fp32 layers may use: plain, tight (default: errors at\nmost twice " \
  "plain's), bound (within plain's guaranteed bound)"

typedef struct cli_reading_args {
  const char *mean, *std, *layout, *size, *crop;
  double scale;
  opt_list_t dtypes;
} cli_reading_args_t;

// Rows for a verb whose args_t has a cli_reading_args_t there.
#define CLI_READING_OPTIONS(field)                                                                   \
  {"--dtype",                                                                                        \
   0,                                                                                                \
   OPT_LIST,                                                                                         \
   offsetof(args_t, field.dtypes),                                                                   \
   "NAME:TYPE",                                                                                      \
   "files: reinterpret unsigned integer arrays as this type: bf16, fp16,\nfp8e4m3, "                 \
   "fp8e5m2; round float32 arrays to it",                                                            \
   false},                                                                                           \
      {"--size",   0,                                                                                \
       OPT_STRING, offsetof(args_t, field.size),                                                     \
       "HxW",      "images are resized to that, or their shorter side to N; else\nthey have to fit", \
       false},                                                                                       \
      {"--crop",   0,                                                                                \
       OPT_STRING, offsetof(args_t, field.crop),                                                     \
       "HxW",      "images: then so much of their middle is taken",                                  \
       false},                                                                                       \
      {"--scale", 0,                                                                                 \
       OPT_FLOAT, offsetof(args_t, field.scale),                                                     \
       "X",       "images: pixels, 0 to 255, times X",                                               \
       false},                                                                                       \
      {"--mean",   0,                                                                                \
       OPT_STRING, offsetof(args_t, field.mean),                                                     \
       "X,X,X",    "images: then minus these, one or one a channel",                                 \
       false},                                                                                       \
      {"--std",    0,                                                                                \
       OPT_STRING, offsetof(args_t, field.std),                                                      \
       "X,X,X",    "images: then divided by these",                                                  \
       false},                                                                                       \
  {                                                                                                  \
    "--layout", 0, OPT_STRING, offsetof(args_t, field.layout), "LAYOUT",                             \
        "images: nchw or nhwc (default: as the input's shape says)", false                           \
  }

#endif  // ASSAY_CLI_INPUT_OPTIONS_H_
