// Options that say how files of inputs are read: types that NumPy lacks, images.
#ifndef ASSAY_CLI_READING_H_
#define ASSAY_CLI_READING_H_

#include "accuracy/tensor_files.h"
#include "cli/cli.h"

typedef struct cli_reading_args {
  const char *mean, *std, *layout, *size;
  double scale;
  opt_list_t dtypes;
} cli_reading_args_t;

// Rows for a verb whose args_t has `cli_reading_args_t reading`.
#define CLI_READING_OPTIONS                                                                    \
  {"--dtype",                                                                                  \
   0,                                                                                          \
   OPT_LIST,                                                                                   \
   offsetof(args_t, reading.dtypes),                                                           \
   "NAME:TYPE",                                                                                \
   "bits of an array of unsigned integers are this type's: bf16, fp16,\nfp8e4m3, fp8e5m2; of " \
   "float32: rounded to it",                                                                   \
   false},                                                                                     \
      {"--size",   0,                                                                          \
       OPT_STRING, offsetof(args_t, reading.size),                                             \
       "HxW",      "images are resized to that; else they have to fit",                        \
       false},                                                                                 \
      {"--scale", 0,                                                                           \
       OPT_FLOAT, offsetof(args_t, reading.scale),                                             \
       "X",       "images: pixels, 0 to 255, times X",                                         \
       false},                                                                                 \
      {"--mean",   0,                                                                          \
       OPT_STRING, offsetof(args_t, reading.mean),                                             \
       "X,X,X",    "images: then minus these, one or one a channel",                           \
       false},                                                                                 \
      {"--std",    0,                                                                          \
       OPT_STRING, offsetof(args_t, reading.std),                                              \
       "X,X,X",    "images: then divided by these",                                            \
       false},                                                                                 \
  {                                                                                            \
    "--layout", 0, OPT_STRING, offsetof(args_t, reading.layout), "LAYOUT",                     \
        "images: nchw or nhwc (default: as the input's shape says)", false                     \
  }

// INVALID_ARGUMENT an option's text makes no sense.
assay_status_t cli_reading_parse(const cli_reading_args_t* a,
                                 assay_tensor_reading_t* out) ASSAY_MUST_USE;
// Behind reading: prints notes to stderr, and frees them; where all was `read`, also that options
// for images met none.
void cli_reading_tell(const cli_reading_args_t* a, assay_tensor_reading_t* reading, bool read);

#endif  // ASSAY_CLI_READING_H_
