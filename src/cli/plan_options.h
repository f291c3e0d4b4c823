// The options of verbs that make plans: --fused and --no-pass.
#ifndef ASSAY_CLI_PLAN_OPTIONS_H_
#define ASSAY_CLI_PLAN_OPTIONS_H_

#include <string.h>

#include "cli/input_options.h"
#include "exec/choice/accuracy_gate.h"
#include "exec/targets.h"
#include "formats/format.h"
#include "plan/plan.h"

static inline assay_status_t cli_parse_fp32(const char* text, assay_fp32_t* out) {
  return text ? assay_fp32_parse(text, out) : NULL;
}

// NONE where there is no text. Errors: INVALID_ARGUMENT the text is not a float format.
static inline assay_status_t cli_parse_precision(const char* text, assay_format_t* out) {
  const assay_format_t f = text ? assay_format_parse(text) : ASSAY_FORMAT_NONE;
  if (text && strcmp(text, "int8") != 0 && !assay_format_info(f)->is_float)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "unknown precision '%s'; use fp32, tf32, bf16, fp16, fp8e4m3, fp64 ...",
                       text);
  *out = f;
  return NULL;
}

static inline assay_status_t cli_parse_accumulator(const char* text, assay_format_t* out) {
  const assay_format_t f = text ? assay_format_parse(text) : ASSAY_FORMAT_NONE;
  if (text && !assay_format_info(f)->is_float)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown accumulator '%s'; use fp32 or fp16", text);
  *out = f;
  return NULL;
}

// A format of floats by its name; NONE: there is none.
static inline assay_format_t cli_find_float(const char* name) {
  const assay_format_t f = assay_format_parse(name);
  return assay_format_info(f)->is_float ? f : ASSAY_FORMAT_NONE;
}

// Whether there is a target of that name (NULL: the default), before anything is read.
static inline assay_status_t cli_want_target(const char* name) {
  const assay_backend_t* backend;
  return assay_target_find(name, ASSAY_TARGET_INSPECT, &backend);
}

static inline assay_plan_options_t cli_plan_options(bool fused, const opt_list_t* no_pass) {
  return (assay_plan_options_t){.fused = fused || no_pass->n,
                                .passes = {.off = no_pass->items, .n_off = no_pass->n}};
}

#endif  // ASSAY_CLI_PLAN_OPTIONS_H_
