// assay debug batch: whether a sample's result depends on the batch it is in.
#include "cli/verbs/debug_client.h"

#define VERB "debug batch"
#define CLI_DEBUG_TARGET_HELP "{look}"

typedef struct args {
  cli_debug_args_t debug;
  const char *json, *axis;
  double timeout;
} args_t;

// What was found, and what it is called in reports.
typedef struct finding {
  const assay_batch_search_t* search;
  assay_debug_report_options_t names;
} finding_t;

static assay_status_t report(const void* finding, assay_report_kind_t kind,
                             assay_report_fn_t* write, void* user) {
  const finding_t* f = finding;
  return assay_batch_search_report(f->search, kind, &f->names, write, user);
}

static assay_status_t print(const args_t* a, const assay_batch_search_t* s) {
  finding_t f = {s, ASSAY_DEBUG_REPORT_OPTIONS_INIT};
  f.names.model = a->debug.model;
  f.names.precision = a->debug.precision;
  return cli_client_report(report, &f, a->json);
}

static int find(const args_t* a, const cli_debug_client_t* c) {
  assay_batch_search_options_t o = ASSAY_BATCH_SEARCH_OPTIONS_INIT;
  assay_batch_search_t* s = NULL;
  o.axis = a->axis;
  o.command = a->debug.exec;
  o.model = a->debug.model;
  o.seconds = a->debug.exec_seconds;
  assay_status_t st = assay_debug_batch(c->debug, &o, c->inputs, &s);
  assay_cli_progress("", 1);
  const assay_code_t why = assay_status_code(st);
  if (why == ASSAY_UNSUPPORTED || why == ASSAY_NOT_FOUND)
    return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (st) return cli_debug_fail(st);
  st = print(a, s);
  const bool sound = assay_batch_search_verdict(s) == ASSAY_BATCH_SOUND;
  assay_batch_search_destroy(s);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return sound ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  const args_t* a = p;
  cli_debug_client_t c = {0};
  int code;
  const char* wrong = cli_debug_client_exec_conflict(&a->debug);
  if (wrong) return assay_cli_usage(VERB, "%s", wrong);
  if (cli_debug_client_open(&a->debug, &c, &code)) code = find(a, &c);
  cli_debug_client_close(&c);
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
