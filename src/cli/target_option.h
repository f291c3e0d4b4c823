// The option --target, as all verbs have it.
#ifndef ASSAY_CLI_TARGET_OPTION_H_
#define ASSAY_CLI_TARGET_OPTION_H_

#include "cli/cli.h"

// Before a verb runs: "auto" becomes the name of a target, which stderr tells, and a target with
// devices of its own has to have them here. What names no target, the verb refuses. False:
// *out_exit says so, and what is missing was told.
bool cli_target_settle(const verb_t* verb, void* args, int* out_exit);

#endif  // ASSAY_CLI_TARGET_OPTION_H_
