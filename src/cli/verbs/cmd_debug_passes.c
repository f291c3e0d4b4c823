// assay debug passes: which graph pass changes the result.
#include "base/clock.h"
#include "cli/verbs/debug_job.h"
#include "debug/pass_debug.h"
#include "exec/targets.h"

#define VERB "debug passes"
#define CLI_DEBUG_TARGET_HELP "{build}"

typedef struct args {
  cli_debug_args_t debug;
  const char* json;
  bool all;
  double timeout;
} args_t;

static assay_status_t text(const void* found, const assay_report_debug_t* names, assay_str_t* out) {
  return assay_report_passes_text(found, names, out);
}
static assay_status_t json(const void* found, const assay_report_debug_t* names, json_t** out) {
  return assay_report_passes_json(found, names, out);
}
static const cli_debug_report_t report = {text, json};

static assay_status_t print(const args_t* a, const cli_debug_job_t* j, const assay_pass_blame_t* b,
                            double seconds) {
  const assay_report_debug_t names = {.model = a->debug.model,
                                      .target = j->options.backend->name,
                                      .precision = j->options.precision_name,
                                      .all = a->all,
                                      .seconds = seconds};
  return cli_debug_print(&report, b, &names, a->json);
}

static int find(const args_t* a, cli_debug_job_t* j) {
  const double start = assay_clock_seconds();
  assay_pass_blame_t b = {0};
  assay_status_t st =
      assay_pass_debug(j->model, &j->options, &j->inputs, j->golden.n ? &j->golden : NULL, &b);
  assay_cli_progress("", 1);
  if (st) return assay_pass_blame_deinit(&b), cli_debug_fail(st);
  st = print(a, j, &b, assay_clock_seconds() - start);
  const bool guilty = b.guilty != NULL;
  assay_pass_blame_deinit(&b);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return guilty ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
}

static int run(void* p) {
  args_t* a = p;
  cli_debug_job_t j = {0};
  int code;
  if (!a->debug.target) a->debug.target = assay_target_default(ASSAY_TARGET_BUILD)->name;
  a->debug.fused = true;
  if (cli_debug_open(&a->debug, &j, &code)) code = find(a, &j);
  cli_debug_close(&j);
  return code;
}

static const opt_t options[] = {
    CLI_DEBUG_OPTIONS,
    CLI_DEBUG_REQUIREMENTS,
    {"--no-pass", 0, OPT_LIST, offsetof(args_t, debug.no_pass), "NAME", "without this pass", false},
    {"--all", 0, OPT_FLAG, offsetof(args_t, all), NULL, "show passes that change no bits, too",
     false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_debug_passes = {
    .name = VERB,
    .summary = "find the graph pass that changes the result, and where",
    .usage = "MODEL [options]",
    .examples =
        "  assay debug passes model.onnx --inputs inputs.npz\n"
        "  assay debug passes model.onnx --precision bf16 --inputs inputs.npz --all\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
