// What verbs of the family debug share: a model, how it is run, on which samples, and what its
// outputs have to keep.
#ifndef ASSAY_CLI_VERBS_DEBUG_JOB_H_
#define ASSAY_CLI_VERBS_DEBUG_JOB_H_

#include "account/engine.h"
#include "check/check.h"
#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "cli/verbs/debug_options.h"
#include "cli/verbs/reading.h"
#include "report/report.h"

typedef struct cli_debug_job {
  assay_model_t* model;
  assay_samples_t inputs, golden;
  assay_set_t known;  // golden's arrays by name, outputs and inner values
  assay_requirements_t require;
  cli_shapes_t shapes;
  assay_tensor_reading_t reading;
  assay_check_setting_t options;  // with the precision, until a run takes it over
} cli_debug_job_t;

// What does not go together in the rows of CLI_DEBUG_EXEC; NULL: nothing.
const char* cli_debug_exec_conflict(const cli_debug_args_t* a);
// The engine that is asked for; command NULL: ours.
assay_external_engine_command_t cli_debug_exec(const cli_debug_args_t* a);
// Reads and checks everything. False: it has been told what is wrong, *out_exit is the exit code.
bool cli_debug_open(const cli_debug_args_t* a, cli_debug_job_t* out, int* out_exit);
void cli_debug_close(cli_debug_job_t* j);
// How a verb's finding is told.
typedef struct cli_debug_report {
  assay_status_t (*text)(const void* found, const assay_report_debug_t* names, assay_str_t* out);
  assay_status_t (*json)(const void* found, const assay_report_debug_t* names, json_t** out);
} cli_debug_report_t;
// As text on stdout, and as JSON in a file; "-": on stdout in its place. path NULL: no JSON.
assay_status_t cli_debug_print(const cli_debug_report_t* r, const void* found,
                               const assay_report_debug_t* names, const char* path) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_VERBS_DEBUG_JOB_H_
