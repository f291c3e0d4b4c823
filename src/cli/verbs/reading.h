// Options that say how files of inputs are read: types that NumPy lacks, images.
#ifndef ASSAY_CLI_VERBS_READING_H_
#define ASSAY_CLI_VERBS_READING_H_

#include "cli/cli.h"
#include "data/tensor_files.h"

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

// What a verb reads all its files by, from the options. A verb that takes these options reads
// between begin and end; deinit where it gives up before.
// Errors: INVALID_ARGUMENT an option's text makes no sense.
assay_status_t cli_reading_begin(const cli_reading_args_t* a,
                                 assay_tensor_reading_t* out) ASSAY_MUST_USE;
// Prints notes to stderr. read: what became of reading, which is returned; where that went well,
// NOT_FOUND a --dtype is of no array, and it is told that options for images met none.
assay_status_t cli_reading_end(const cli_reading_args_t* a, assay_tensor_reading_t* reading,
                               assay_status_t read) ASSAY_MUST_USE;
void cli_reading_deinit(assay_tensor_reading_t* reading);

#endif  // ASSAY_CLI_VERBS_READING_H_
