// assay debug batch: whether a sample's result depends on the batch it is in.
#include "base/clock.h"
#include "cli/verbs/debug_job.h"
#include "debug/batch_debug.h"

#define VERB "debug batch"
#define CLI_DEBUG_TARGET_HELP "{look}"

typedef struct args {
  cli_debug_args_t debug;
  const char *json, *axis;
  double timeout;
} args_t;

static assay_status_t text(const void* found, const assay_report_debug_t* names, assay_str_t* out) {
  return assay_report_batch_text(found, names, out);
}
static assay_status_t json(const void* found, const assay_report_debug_t* names, json_t** out) {
  return assay_report_batch_json(found, names, out);
}
static const cli_debug_report_t report = {text, json};

static assay_status_t print(const args_t* a, const cli_debug_job_t* j, const assay_batch_blame_t* b,
                            double seconds) {
  const assay_report_debug_t names = {
      .model = a->debug.model,
      .target = a->debug.exec ? a->debug.exec : j->options.backend->name,
      .precision = j->options.precision_name,
      .seconds = seconds};
  return cli_debug_print(&report, b, &names, a->json);
}

static int find(const args_t* a, cli_debug_job_t* j) {
  const double start = assay_clock_seconds();
  assay_batch_blame_t b = {0};
  const assay_external_engine_command_t exec = cli_debug_exec(&a->debug);
  const assay_batch_options_t how = {.exec = exec.command ? &exec : NULL, .axis = a->axis};
  assay_status_t st = assay_batch_debug(j->model, &j->options, &how, &j->inputs, &b);
  assay_cli_progress("", 1);
  const assay_code_t why = assay_status_code(st);
  if (why == ASSAY_UNSUPPORTED || why == ASSAY_NOT_FOUND)
    return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (st) return assay_batch_blame_deinit(&b), cli_debug_fail(st);
  st = print(a, j, &b, assay_clock_seconds() - start);
  const bool sound = b.verdict == ASSAY_BATCH_SOUND;
  assay_batch_blame_deinit(&b);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return sound ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  args_t* a = p;
  cli_debug_job_t j = {0};
  int code;
  const char* wrong = cli_debug_exec_conflict(&a->debug);
  if (wrong) return assay_cli_usage(VERB, "%s", wrong);
  if (cli_debug_open(&a->debug, &j, &code)) code = find(a, &j);
  cli_debug_close(&j);
  return code;
}

static const opt_t options[] = {
    CLI_DEBUG_OPTIONS,
    CLI_DEBUG_FUSED,
    {"--axis", 0, OPT_STRING, offsetof(args_t, axis), "AXIS",
     "the batch: a number (0 is the first axis), or the name of an open\nsize (default: one named "
     "after a batch, the first axis, or an\nopen one)",
     false},
    CLI_DEBUG_EXEC("batch"),
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_debug_batch = {
    .name = VERB,
    .summary = "find the node that makes a sample's result depend on its batch",
    .usage = "MODEL [options]",
    .examples =
        "  assay debug batch model.onnx --inputs inputs.npz\n"
        "  assay debug batch model.onnx --target cpu --precision bf16\n"
        "  assay debug batch model.onnx --axis 1 --exec 'engine {model} {inputs} {outputs}'\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
