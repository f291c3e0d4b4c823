// assay debug tactics: each layer by all tactics that can run it.
#include "cli/verbs/debug_client.h"

#define VERB "debug tactics"
#define CLI_DEBUG_TARGET_HELP "{build};\none with several ways to run a layer"

typedef struct args {
  cli_debug_args_t debug;
  const char *layer, *json;
  bool all, untimed;
  double timeout;
} args_t;

// What was found, and what it is called in reports.
typedef struct finding {
  const assay_tactic_search_t* search;
  assay_debug_report_options_t names;
} finding_t;

static assay_status_t report(const void* finding, assay_report_kind_t kind,
                             assay_report_fn_t* write, void* user) {
  const finding_t* f = finding;
  return assay_tactic_search_report(f->search, kind, &f->names, write, user);
}

static assay_status_t print(const args_t* a, const assay_tactic_search_t* s) {
  finding_t f = {s, ASSAY_DEBUG_REPORT_OPTIONS_INIT};
  f.names.model = a->debug.model;
  f.names.precision = a->debug.precision;
  f.names.all = a->all;
  return cli_client_report(report, &f, a->json);
}

static int find(const args_t* a, const cli_debug_client_t* c) {
  assay_tactic_search_options_t o = ASSAY_TACTIC_SEARCH_OPTIONS_INIT;
  assay_tactic_search_t* s = NULL;
  o.layer = a->layer;
  o.untimed = a->untimed;
  assay_status_t st = assay_debug_tactics(c->debug, &o, c->inputs, &s);
  assay_cli_progress("", 1);
  const assay_code_t why = assay_status_code(st);
  if (why == ASSAY_NOT_FOUND || why == ASSAY_UNSUPPORTED)
    return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (st) return cli_debug_fail(st);
  st = print(a, s);
  const bool fault = assay_tactic_search_fault_count(s) > 0;
  assay_tactic_search_destroy(s);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return fault ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
}

static int run(void* p) {
  args_t* a = p;
  cli_debug_client_t c = {0};
  int code;
  if (!a->debug.target) a->debug.target = CLI_DEBUG_BUILD_TARGET;
  if (cli_debug_client_open(&a->debug, &c, &code)) code = find(a, &c);
  cli_debug_client_close(&c);
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
