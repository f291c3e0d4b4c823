// The option --target, as all verbs have it.
#ifndef ASSAY_CLI_TARGET_OPTION_H_
#define ASSAY_CLI_TARGET_OPTION_H_

#include "cli/cli.h"

// A row for a verb whose args_t has such a field, beside --target.
#define CLI_LIKE_OPTION(field)                                                                  \
  {                                                                                             \
    "--like", 0, OPT_STRING, offsetof(args_t, field), "GPU",                                    \
        "of --target emu: products are summed as this GPU's tensor cores do\nit, bit for bit: " \
        "sm_80, sm_86, sm_89, sm_90, sm_100 or sm_120\n(docs/gpu.md)",                          \
        false                                                                                   \
  }

// Before a verb runs: "auto" becomes the name of a target, which stderr tells, and a target with
// devices of its own has to have them here. What names no target, the verb refuses. False:
// *out_exit says so, and what is missing was told.
bool cli_target_settle(const verb_t* verb, void* args, int* out_exit);

#endif  // ASSAY_CLI_TARGET_OPTION_H_
