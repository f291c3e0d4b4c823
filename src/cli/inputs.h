// What several verbs take: shapes and input files.
#ifndef ASSAY_CLI_INPUTS_H_
#define ASSAY_CLI_INPUTS_H_

#include "accuracy/samples.h"
#include "cli/cli.h"
#include "onnx/load.h"

// Parses "image=1x3x224x224" (or "image:1x3x224x224"); dims of `out` live until shapes_free.
typedef struct cli_shapes {
  assay_input_shape_t* shapes;
  size_t n;
} cli_shapes_t;
assay_status_t cli_shapes_parse(const opt_list_t* texts, cli_shapes_t* out) ASSAY_MUST_USE;
void cli_shapes_free(cli_shapes_t* s);

// Reads arrays from files: .npz (all), .npy and .pb (NAME=FILE, or one file for the only input).
assay_status_t cli_read_arrays(const opt_list_t* files, const assay_model_t* model,
                               assay_set_t* out) ASSAY_MUST_USE;
// Samples from files, or generated with a warning on stderr if there are none.
assay_status_t cli_samples(const opt_list_t* files, const assay_model_t* model, uint64_t seed,
                           assay_samples_t* out) ASSAY_MUST_USE;
#endif  // ASSAY_CLI_INPUTS_H_
