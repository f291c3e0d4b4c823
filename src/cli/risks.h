// Warnings of values that a plan's formats cannot hold (account/risks.h): a line each, of which
// the first few are told.
#ifndef ASSAY_CLI_RISKS_H_
#define ASSAY_CLI_RISKS_H_

#include "account/risks.h"
#include "runtime/engine.h"

typedef void cli_warn_fn_t(const char* line);

void cli_warn_stderr(const char* line);  // "assay: LINE"

// Of constants that passes made: known when a plan is made. Of a plan from a file there are none to
// tell.
void cli_warn_of_constants(const assay_engine_t* engine, cli_warn_fn_t* warn);
// Of values that fused layers hide on these inputs (by graph input; NULL: its default): one run,
// and only where layers are in a format of a small range, fp16 or fp8. That it could not be done is
// a warning, too.
void cli_warn_of_hidden(const assay_engine_t* engine, assay_tensor_t* const* inputs,
                        cli_warn_fn_t* warn);

#endif  // ASSAY_CLI_RISKS_H_
