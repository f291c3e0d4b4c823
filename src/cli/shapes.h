// What several verbs take: the sizes that a model leaves open, as --shape, --dim and --batch give
// them.
#ifndef ASSAY_CLI_SHAPES_H_
#define ASSAY_CLI_SHAPES_H_

#include <assay/model.h>

#include "cli/cli.h"

typedef struct cli_shape_args {
  opt_list_t shapes, dims;
  const char* batch;
} cli_shape_args_t;

// Rows for a verb whose args_t has `cli_shape_args_t field`.
#define CLI_SHAPE_OPTIONS(field)                                                                     \
  {"--shape",   0,                                                                                   \
   OPT_LIST,    offsetof(args_t, field.shapes),                                                      \
   "NAME=DIMS", "shape of an input, such as image=1x3x224x224; ? leaves a\ndimension as it is",      \
   false},                                                                                           \
      {"--dim",  0,                                                                                  \
       OPT_LIST, offsetof(args_t, field.dims),                                                       \
       "NAME=N", "size of the dimensions that the model calls NAME, such as\nseq=128; others are 1", \
       false},                                                                                       \
  {                                                                                                  \
    "--batch", 0, OPT_STRING, offsetof(args_t, field.batch), "N",                                    \
        "size of the leading dimension of every input that leaves it\nopen (default: 1)", false      \
  }

// What was given, and after cli_shapes_settle the shapes that come of it.
typedef struct cli_shapes {
  assay_input_shape_t* shapes;
  size_t n;
  assay_dim_size_t* dims;
  size_t n_dims;
  int64_t batch;  // 0: not given
} cli_shapes_t;

// Whether any of the options was given; the first one's name, or NULL.
const char* cli_shapes_given(const cli_shape_args_t* args);
assay_status_t cli_shapes_parse(const cli_shape_args_t* args, cli_shapes_t* out) ASSAY_MUST_USE;
void cli_shapes_free(cli_shapes_t* s);
// Puts the shapes of this model's inputs in the place of what was given. A batch that no input
// takes is told on stderr.
assay_status_t cli_shapes_settle(const assay_model_t* model, cli_shapes_t* s) ASSAY_MUST_USE;
// What is wrong with a model that was loaded from there, a line each on stderr.
void cli_warn_of_model(const char* path, const assay_model_t* model);
// Reads a model, settles the shapes and makes it ready to be evaluated. known: operators that
// nobody knows are left as they are (assay_onnx_prepare_known).
assay_status_t cli_shapes_load(const char* path, bool known, cli_shapes_t* s,
                               assay_model_t** out) ASSAY_MUST_USE;
// The model without open sizes, but for those that are -1 in `settled`: what nothing is said of is
// 1, which is told on stderr.
assay_status_t cli_shapes_close(assay_model_t* model, size_t n_settled,
                                const assay_input_shape_t* settled,
                                assay_model_t** out) ASSAY_MUST_USE;
// Tells on stderr, after `before`, which open sizes inputs are made up with, if there are any, and
// ends the line; without any nothing is told of an empty `before`.
assay_status_t cli_shapes_report_ones(const assay_model_t* model,
                                      const char* before) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_SHAPES_H_
