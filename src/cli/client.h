// For verbs that are clients of the library and see <assay/...> of it only: models, formats and
// samples from options, and reports to where options want them.
#ifndef ASSAY_CLI_CLIENT_H_
#define ASSAY_CLI_CLIENT_H_

#include <assay/model.h>
#include <assay/report.h>
#include <assay/samples.h>

#include "cli/cli.h"
#include "cli/shapes.h"
#include "cli/verbs/reading.h"

// Options as they were parsed, before anything is read: usage errors. Starts as {0}.
typedef struct cli_client {
  const cli_reading_args_t* reading_args;
  assay_tensor_reading_t reading;
  cli_shapes_t shapes;
} cli_client_t;
assay_status_t cli_client_begin(const cli_reading_args_t* reading, const cli_shape_args_t* shapes,
                                cli_client_t* out) ASSAY_MUST_USE;
void cli_client_end(cli_client_t* c);
// The shapes that the options give the inputs of the model of a file, which is read for that only.
assay_status_t cli_client_settle(cli_client_t* c, const char* path) ASSAY_MUST_USE;
// A model in the shapes of the options, which are those of its inputs afterwards.
// allow_unknown: operators that nobody knows stay.
assay_status_t cli_client_model(cli_client_t* c, const char* path, bool allow_unknown,
                                assay_model_t** out) ASSAY_MUST_USE;
// Samples of the model's inputs from files; NULL: there are none. required: every input without an
// initializer has to be there. Once.
assay_status_t cli_client_samples(cli_client_t* c, const opt_list_t* files, assay_model_t* model,
                                  bool required, assay_samples_t** out) ASSAY_MUST_USE;

// Tells on stderr that inputs are random, and which of their sizes are 1.
assay_status_t cli_client_warn_of_random(const assay_model_t* model) ASSAY_MUST_USE;
// Tells on stderr which open sizes are 1, if there are any ("").
void cli_client_tell_ones(const char* ones);

// The format of an option's text; NULL: NONE. what: "precision".
assay_status_t cli_client_format(const char* what, const char* text,
                                 assay_format_t* out) ASSAY_MUST_USE;

// An assay_progress_fn_t.
void cli_client_progress(void* user, const char* what, double fraction);

// A report of what a verb found (assay/report.h).
typedef assay_status_t cli_report_fn_t(const void* job, assay_report_kind_t kind,
                                       assay_report_fn_t* write, void* user);
// Prints the text, and writes the JSON to a file. path: of that; NULL: none is wanted, "-": it is
// printed in the text's place.
assay_status_t cli_client_report(cli_report_fn_t* report, const void* job,
                                 const char* path) ASSAY_MUST_USE;
// An assay_report_fn_t that prints to stdout.
assay_status_t cli_client_print(void* user, const char* data, size_t size) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_CLIENT_H_
