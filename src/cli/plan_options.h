// The options of verbs that make plans: --fused and --no-pass.
#ifndef ASSAY_CLI_PLAN_OPTIONS_H_
#define ASSAY_CLI_PLAN_OPTIONS_H_

#include "cli/cli.h"
#include "exec/choice/accuracy_gate.h"
#include "plan/plan.h"

// Rows for the options of a verb whose args_t has `bool fused` and `opt_list_t no_pass`.
#define CLI_FUSED_OPTIONS                                                                      \
  {"--fused", 0,                                                                               \
   OPT_FLAG,  offsetof(args_t, fused),                                                         \
   NULL,      "the fused plan: run the graph passes, several nodes in a layer",                \
   false},                                                                                     \
  {                                                                                            \
    "--no-pass", 0, OPT_LIST, offsetof(args_t, no_pass), "NAME",                               \
        "the fused plan without this pass (constant_folding,\nbatchnorm_into_conv ...)", false \
  }

#define CLI_FP32_HELP                                                                \
  "which kernels fp32 layers may use: plain, tight (default: errors at\nmost twice " \
  "plain's), bound (within plain's guaranteed bound)"

static inline assay_status_t cli_parse_fp32(const char* text, assay_fp32_t* out) {
  return text ? assay_fp32_parse(text, out) : NULL;
}

static inline assay_plan_options_t cli_plan_options(bool fused, const opt_list_t* no_pass) {
  return (assay_plan_options_t){.fused = fused || no_pass->n,
                                .passes = {.off = no_pass->items, .n_off = no_pass->n}};
}

#endif  // ASSAY_CLI_PLAN_OPTIONS_H_
