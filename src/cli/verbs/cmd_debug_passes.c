// assay debug passes: which graph pass changes the result.
#include "cli/verbs/debug_client.h"

#define VERB "debug passes"
#define CLI_DEBUG_TARGET_HELP "{build}"

typedef struct args {
  cli_debug_args_t debug;
  const char* json;
  bool all;
  double timeout;
} args_t;

// What was found, and what it is called in reports.
typedef struct finding {
  const assay_pass_search_t* search;
  assay_debug_report_options_t names;
} finding_t;

static assay_status_t report(const void* finding, assay_report_kind_t kind,
                             assay_report_fn_t* write, void* user) {
  const finding_t* f = finding;
  return assay_pass_search_report(f->search, kind, &f->names, write, user);
}

static assay_status_t print(const args_t* a, const assay_pass_search_t* s) {
  finding_t f = {s, ASSAY_DEBUG_REPORT_OPTIONS_INIT};
  f.names.model = a->debug.model;
  f.names.precision = a->debug.precision;
  f.names.all = a->all;
  return cli_client_report(report, &f, a->json);
}

static int find(const args_t* a, const cli_debug_client_t* c) {
  assay_pass_search_t* s = NULL;
  assay_status_t st = assay_debug_passes(c->debug, c->inputs, c->golden, &s);
  assay_cli_progress("", 1);
  if (st) return cli_debug_fail(st);
  cli_debug_client_tell_notes(c);
  st = print(a, s);
  const bool guilty = assay_pass_search_guilty(s) < assay_pass_search_count(s);
  assay_pass_search_destroy(s);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return guilty ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
}

static int run(void* p) {
  args_t* a = p;
  cli_debug_client_t c = {0};
  int code;
  if (!a->debug.target) a->debug.target = CLI_DEBUG_BUILD_TARGET;
  a->debug.fused = true;
  if (cli_debug_client_open(&a->debug, &c, &code)) code = find(a, &c);
  cli_debug_client_close(&c);
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
