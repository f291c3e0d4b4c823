// assay debug tactics: each layer by all tactics that can run it.
#include "base/clock.h"
#include "cli/verbs/debug_job.h"
#include "debug/tactic_debug.h"
#include "exec/targets.h"

#define VERB "debug tactics"
#define CLI_DEBUG_TARGET_HELP "{build}; one with several ways to run a layer"

typedef struct args {
  cli_debug_args_t debug;
  const char *layer, *json;
  bool all, untimed;
  double timeout;
} args_t;

static assay_status_t text(const void* found, const assay_report_debug_t* names, assay_str_t* out) {
  return assay_report_tactics_text(found, names, out);
}
static assay_status_t json(const void* found, const assay_report_debug_t* names, json_t** out) {
  return assay_report_tactics_json(found, names, out);
}
static const cli_debug_report_t report = {text, json};

static assay_status_t print(const args_t* a, const cli_debug_job_t* j,
                            const assay_tactic_blame_t* b, double seconds) {
  const assay_report_debug_t names = {.model = a->debug.model,
                                      .target = j->options.backend->name,
                                      .precision = j->options.precision_name,
                                      .layer = a->layer,
                                      .all = a->all || a->layer,
                                      .seconds = seconds};
  return cli_debug_print(&report, b, &names, a->json);
}

static int find(const args_t* a, cli_debug_job_t* j) {
  const double start = assay_clock_seconds();
  const assay_tactic_options_t o = {.layer = a->layer, .timed = !a->untimed};
  assay_tactic_blame_t b = {0};
  assay_status_t st = assay_tactic_debug(j->model, &j->options, &o, &j->inputs, &b);
  assay_cli_progress("", 1);
  if (st &&
      (assay_status_code(st) == ASSAY_NOT_FOUND || assay_status_code(st) == ASSAY_UNSUPPORTED))
    return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (st) return assay_tactic_blame_deinit(&b), cli_debug_fail(st);
  st = print(a, j, &b, assay_clock_seconds() - start);
  const bool fault = b.n_faults > 0;
  assay_tactic_blame_deinit(&b);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return fault ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
}

static int run(void* p) {
  args_t* a = p;
  cli_debug_job_t j = {0};
  int code;
  if (!a->debug.target) a->debug.target = assay_target_default(ASSAY_TARGET_BUILD)->name;
  if (cli_debug_open(&a->debug, &j, &code)) code = find(a, &j);
  cli_debug_close(&j);
  return code;
}

static const opt_t options[] = {
    CLI_DEBUG_OPTIONS,
    CLI_DEBUG_FUSED,
    {"--layer", 0, OPT_STRING, offsetof(args_t, layer), "NAME",
     "only layers with this name of a node or output (* and ? match)", false},
    {"--all", 0, OPT_FLAG, offsetof(args_t, all), NULL, "show all layers with their tactics",
     false},
    {"--untimed", 0, OPT_FLAG, offsetof(args_t, untimed), NULL,
     "do not measure how long each takes", false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_debug_tactics = {
    .name = VERB,
    .summary = "run each layer by all tactics that take it, and find the wrong one",
    .usage = "MODEL [options]",
    .examples =
        "  assay debug tactics model.onnx --inputs inputs.npz\n"
        "  assay debug tactics model.onnx --precision bf16 --layer '/head/MatMul'\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
