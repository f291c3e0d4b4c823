// For verbs that are clients of the library and see <assay/...> of it only: models, formats and
// samples from options, and reports to where options want them.
#ifndef ASSAY_CLI_CLIENT_H_
#define ASSAY_CLI_CLIENT_H_

#include <assay/check.h>
#include <assay/model.h>
#include <assay/report.h>
#include <assay/samples.h>

#include "cli/input_options.h"
#include "cli/shapes.h"

// ---- options ------------------------------------------------------------------------------------

// Options as they were parsed, before anything is read: usage errors. Starts as {0}.
typedef struct cli_client {
  const cli_reading_args_t* reading_args;
  assay_samples_options_t reading;  // but for its pointers to what follows (cli_client_reading)
  double mean[3], std[3];
  bool* met;  // by dtype: whether a file had such an array
  size_t n_images;
  cli_shapes_t shapes;
} cli_client_t;
assay_status_t cli_client_begin(const cli_reading_args_t* reading, const cli_shape_args_t* shapes,
                                cli_client_t* out) ASSAY_MUST_USE;
void cli_client_end(cli_client_t* c);

// "fewest" or "best"; NULL: any.
assay_status_t cli_client_fix(const char* text, assay_fix_choice_t* out) ASSAY_MUST_USE;
// The format of an option's text; NULL: NONE. what: "precision".
assay_status_t cli_client_format(const char* what, const char* text,
                                 assay_format_t* out) ASSAY_MUST_USE;
// The same with messages that name what may be said.
assay_status_t cli_client_precision(const char* text, assay_format_t* out) ASSAY_MUST_USE;
assay_status_t cli_client_accumulator(const char* text, assay_format_t* out) ASSAY_MUST_USE;
// A format of floats by its name; NONE: there is none.
assay_format_t cli_client_find_float(const char* name);
// NULL: as it was.
assay_status_t cli_client_fp32(const char* text, assay_fp32_t* out) ASSAY_MUST_USE;
// Whether there is a target of that name (NULL: the default), before anything is read.
assay_status_t cli_client_want_target(const char* name) ASSAY_MUST_USE;

// ---- models and samples -------------------------------------------------------------------------

// A model in the shapes of the options. A batch that no input takes is told on stderr.
// allow_unknown: operators that nobody knows stay.
assay_status_t cli_client_model(const cli_client_t* c, const char* path, bool allow_unknown,
                                assay_model_t** out) ASSAY_MUST_USE;
// Tells that on stderr, where a batch was given that was not used.
void cli_client_tell_batch(const cli_client_t* c, bool used);
// How files are read, for functions that take it; borrowed from the client.
assay_samples_options_t cli_client_reading(const cli_client_t* c);
// Samples of the model's inputs from files; NULL: there are none. required: every input without an
// initializer has to be there.
assay_status_t cli_client_samples(cli_client_t* c, const opt_list_t* files, assay_model_t* model,
                                  bool required, assay_samples_t** out) ASSAY_MUST_USE;
// The same; without files random ones, which is told on stderr.
assay_status_t cli_client_inputs(cli_client_t* c, const opt_list_t* files, assay_model_t* model,
                                 uint64_t seed, assay_samples_t** out) ASSAY_MUST_USE;
// After all files are read. read: what became of it, which is returned; if that went well,
// NOT_FOUND a --dtype is of no array, and it is told that options for images met none.
assay_status_t cli_client_read(cli_client_t* c, assay_status_t read) ASSAY_MUST_USE;

// Tells on stderr that inputs are random, and which of their sizes are 1.
assay_status_t cli_client_warn_of_random(const assay_model_t* model) ASSAY_MUST_USE;
// Tells on stderr which open sizes are 1, if there are any ("").
void cli_client_report_ones(const char* ones);

// ---- running and reports ------------------------------------------------------------------------

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
