// Paths that a command line has written: checked before the work, so that none of it is for
// nothing.
#ifndef ASSAY_CLI_OUTPUT_PATHS_H_
#define ASSAY_CLI_OUTPUT_PATHS_H_

#include "cli/cli.h"

// What a path is for.
typedef enum output_kind {
  OUTPUT_FILE,
  OUTPUT_FOLDER,  // made where it is not there
  OUTPUT_EITHER,  // what is there; else a file, if its name has an ending, or a folder
  OUTPUT_CACHE,  // a file that is read, too: one that is there may be complete, and need no writing
} output_kind_t;

// DEVICE: the path cannot be written; the message names the option, the path, the reason and what
// to do. "-" is the standard output.
assay_status_t cli_output_check(const char* option, const char* path,
                                output_kind_t kind) ASSAY_MUST_USE;
// The same of all options of a verb whose rows say that their values are written (OPT_OUT_...).
assay_status_t cli_outputs_check(const verb_t* verb, const void* args) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_OUTPUT_PATHS_H_
