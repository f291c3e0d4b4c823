// What verbs of the family debug share that are clients of the library (assay/debug.h): the model,
// how it is run, inputs and golden.
#ifndef ASSAY_CLI_VERBS_DEBUG_CLIENT_H_
#define ASSAY_CLI_VERBS_DEBUG_CLIENT_H_

#include <assay/debug.h>

#include "cli/client.h"
#include "cli/verbs/debug_options.h"

// What plans are built for (assay/engine.h), where a verb is about plans.
#define CLI_DEBUG_BUILD_TARGET "cpu"

typedef struct cli_debug_client {
  cli_client_t client;
  assay_model_t* model;
  assay_debug_t* debug;
  assay_samples_t* inputs;
  assay_golden_t* golden;  // NULL: none was given
} cli_debug_client_t;

// Reads and checks everything. False: it has been told what is wrong, *out_exit is the exit code.
bool cli_debug_client_open(const cli_debug_args_t* a, cli_debug_client_t* out, int* out_exit);
void cli_debug_client_close(cli_debug_client_t* c);
// What golden has noted, on stderr.
void cli_debug_client_tell_notes(const cli_debug_client_t* c);
// What does not go together in the rows of CLI_DEBUG_EXEC; NULL: nothing.
const char* cli_debug_client_exec_conflict(const cli_debug_args_t* a);

#endif  // ASSAY_CLI_VERBS_DEBUG_CLIENT_H_
