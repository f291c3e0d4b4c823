// assay debug precision: which layers need more precision.
#include <string.h>

#include "cli/verbs/debug_client.h"

#define VERB "debug precision"
#define CLI_DEBUG_TARGET_HELP "{look}"

typedef struct args {
  cli_debug_args_t debug;
  const char *mode, *direction, *save, *save_options, *json;
  bool rebuild, as_asked;
  const char* fix;
  double timeout;
} args_t;

// Says what does not go together; NULL: nothing.
static const char* conflict(const args_t* a, assay_precision_search_options_t* o) {
  static const char* const modes[] = {[ASSAY_PRECISION_ACCOUNT] = "account",
                                      [ASSAY_PRECISION_BISECT] = "bisect",
                                      [ASSAY_PRECISION_LINEAR] = "linear"};
  enum { N_MODES = sizeof modes / sizeof *modes };
  size_t mode = 0;
  while (a->mode && mode < N_MODES && strcmp(modes[mode], a->mode) != 0) mode++;
  if (mode == N_MODES) return "--mode is account, bisect or linear";
  o->mode = (assay_precision_mode_t)mode;
  const bool prefixes = o->mode != ASSAY_PRECISION_ACCOUNT;
  if ((a->rebuild || a->direction) && !prefixes)
    return "--rebuild and --direction are for --mode bisect and linear";
  if (a->fix && prefixes) return "--fix is for --mode account";
  if (a->as_asked && prefixes) return "--as-asked is for --mode account";
  if (a->direction && strcmp(a->direction, "forward") != 0 && strcmp(a->direction, "reverse") != 0)
    return "--direction is forward or reverse";
  o->as_asked = a->as_asked;
  o->from_end = a->direction && strcmp(a->direction, "reverse") == 0;
  o->rebuild = a->rebuild ? a->debug.model : NULL;
  return NULL;
}

// Writes a file of what was found, where one is asked for and there is something. One that cannot
// be written is left out of the report, which comes first: *why says it afterwards.
static const char* written(const char* path, const assay_precision_search_t* s,
                           assay_status_t (*write)(const assay_precision_search_t*, const char*),
                           assay_status_t* why) {
  if (!path || !assay_precision_search_node_count(s)) return NULL;
  assay_status_t st = write(s, path);
  const bool fine = !st;
  *why = assay_status_join(*why, st);
  return fine ? path : NULL;
}

// What was found, and what it is called in reports.
typedef struct finding {
  const assay_precision_search_t* search;
  assay_debug_report_options_t names;
} finding_t;

static assay_status_t report(const void* finding, assay_report_kind_t kind,
                             assay_report_fn_t* write, void* user) {
  const finding_t* f = finding;
  return assay_precision_search_report(f->search, kind, &f->names, write, user);
}

static assay_status_t print(const args_t* a, const assay_precision_search_t* s) {
  assay_status_t unwritten = NULL;
  finding_t f = {s, ASSAY_DEBUG_REPORT_OPTIONS_INIT};
  f.names.model = a->debug.model;
  f.names.precision = a->debug.precision;
  f.names.saved_model = written(a->save, s, assay_precision_search_write_model, &unwritten);
  f.names.saved_options =
      written(a->save_options, s, assay_precision_search_write_options, &unwritten);
  return assay_status_join(cli_client_report(report, &f, a->json), unwritten);
}

static int find(const args_t* a, const assay_precision_search_options_t* o, cli_debug_client_t* c) {
  assay_precision_search_t* s = NULL;
  assay_status_t st = assay_debug_precision(c->debug, o, c->inputs, c->golden, &s);
  assay_cli_progress("", 1);
  if (st) return cli_debug_fail(st);
  cli_debug_client_tell_notes(c);
  st = print(a, s);
  const bool ok = assay_precision_search_enough(s) || assay_precision_search_found(s);
  assay_precision_search_destroy(s);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return ok ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  const args_t* a = p;
  assay_precision_search_options_t o = ASSAY_PRECISION_SEARCH_OPTIONS_INIT;
  cli_debug_client_t c = {0};
  const char* wrong = conflict(a, &o);
  if (wrong) return assay_cli_usage(VERB, "%s", wrong);
  assay_status_t st = cli_client_fix(a->fix, &o.fix);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  int code;
  if (cli_debug_client_open(&a->debug, &c, &code))
    code = assay_debug_has_precision(c.debug)
               ? find(a, &o, &c)
               : assay_cli_usage(VERB, "say which precision is asked for: --precision fp16");
  cli_debug_client_close(&c);
  return code;
}

static const opt_t options[] = {
    CLI_DEBUG_OPTIONS,
    CLI_DEBUG_REQUIREMENTS,
    CLI_DEBUG_FUSED,
    {"--mode", 0, OPT_STRING, offsetof(args_t, mode), "MODE",
     "account (default): at most three runs find layers that do, more\ntake out what is not "
     "needed; nothing is built anew. bisect: the\nshortest prefix of layers that does; linear: one "
     "more each time",
     false},
    {"--as-asked", 0, OPT_FLAG, offsetof(args_t, as_asked), NULL,
     "account: where ranges told what to keep, run the model as asked,\ntoo: it may do as it is",
     false},
    CLI_FIX_OPTION(fix),
    {"--direction", 0, OPT_STRING, offsetof(args_t, direction), "WHERE",
     "prefixes begin at the first layer (forward, default) or the last\n(reverse)", false},
    {"--rebuild", 0, OPT_FLAG, offsetof(args_t, rebuild), NULL,
     "bisect and linear build everything anew for each run: read the\nmodel, run the passes, time "
     "tactics",
     false},
    {"--save", 'o', OPT_OUT_FILE, offsetof(args_t, save), "FILE",
     "the model in mixed precision, with explicit Casts", false},
    {"--save-options", 0, OPT_OUT_FILE, offsetof(args_t, save_options), "FILE",
     "--layer-precision, and --layerPrecisions for trtexec", false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_debug_precision = {
    .name = VERB,
    .summary = "find the layers that need more precision than was asked for",
    .usage = "MODEL [--precision FORMAT] [options]",
    .examples =
        "  assay debug precision model.onnx --precision fp16 --inputs inputs.npz --save "
        "mixed.onnx\n"
        "  assay debug precision model.onnx --precision bf16 -i inputs.npz --require 'top1 >= "
        "0.99'\n"
        "  assay debug precision model.onnx --precision fp16 -i inputs.npz --check './judge "
        "{outputs}'\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
