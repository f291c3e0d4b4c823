// assay debug reduce: the smallest part of a model that still fails, as a model of its own.
#include <string.h>

#include "base/shell.h"
#include "base/shown.h"
#include "cli/verbs/debug_client.h"

#define VERB "debug reduce"
#define CLI_DEBUG_TARGET_HELP "{look}"

typedef struct args {
  cli_debug_args_t debug;
  const char *json, *judge, *output;
  double seconds, judge_seconds;
  double timeout;
} args_t;

static assay_status_t print_folder(const args_t* a, assay_str_t* out) {
  const char* slash = strrchr(a->debug.model, '/');
  const char* base = slash ? slash + 1 : a->debug.model;
  const char* dot = strrchr(base, '.');
  if (a->output)
    assay_str_append(out, a->output);
  else
    assay_str_printf_raw(out, "%.*s.reduced",
                         (int)(dot && dot != base ? (size_t)(dot - base) : strlen(base)), base);
  return assay_str_status(out);
}

static void add_option(assay_str_t* out, const char* name, const char* value) {
  if (!value) return;
  assay_str_printf_raw(out, " %s ", name);
  assay_shell_word_quoted(out, value);
}

// The user's command with the part's files put in; that which reads the engine's outputs is given
// as it is.
static assay_status_t print_judge(const args_t* a, const char* folder, assay_str_t* out) {
  static const char* const files[][2] = {
      {"{model}", "model.onnx"}, {"{inputs}", "inputs.npz"}, {"{golden}", "golden.npz"}};
  enum { N_FILES = sizeof files / sizeof *files };
  if (strstr(a->judge, "{outputs}")) return assay_str_append(out, a->judge), assay_str_status(out);
  for (const char* c = a->judge; *c;) {
    assay_str_t path = {0};
    int k = 0;
    while (k < N_FILES && strncmp(c, files[k][0], strlen(files[k][0])) != 0) k++;
    if (k == N_FILES) {
      assay_str_append_n(out, c++, 1);
      continue;
    }
    assay_str_printf_raw(&path, "%s/%s", folder, files[k][1]);
    assay_shell_word_quoted(out, assay_str_get(&path));
    assay_str_deinit(&path);
    c += strlen(files[k][0]);
  }
  return assay_str_status(out);
}

// The command that shows the failure again, of the part.
static assay_status_t print_command(const args_t* a, const cli_debug_client_t* c,
                                    const char* folder, assay_str_t* out) {
  assay_str_t path = {0};
  if (a->judge) return print_judge(a, folder, out);
  assay_str_append(out, "assay check ");
  assay_str_printf_raw(&path, "%s/model.onnx", folder);
  assay_shell_word_quoted(out, assay_str_get(&path));
  path.len = 0;
  assay_str_printf_raw(&path, "%s/inputs.npz", folder);
  add_option(out, "--inputs", assay_str_get(&path));
  path.len = 0;
  assay_str_printf_raw(&path, "%s/golden.npz", folder);
  if (c->golden) add_option(out, "--golden", assay_str_get(&path));
  add_option(out, "--precision", a->debug.precision);
  add_option(out, "--layer-precision", a->debug.layer_precision);
  add_option(out, "--target", a->debug.target);
  add_option(out, "--exec", a->debug.exec);
  add_option(out, "--fp32", a->debug.fp32);
  add_option(out, "--truth", a->debug.truth);
  add_option(out, "--inject", a->debug.inject);
  for (size_t i = 0; i < a->debug.ops.n; i++) add_option(out, "--ops", a->debug.ops.items[i]);
  for (size_t i = 0; i < a->debug.no_pass.n; i++)
    add_option(out, "--no-pass", a->debug.no_pass.items[i]);
  if (assay_debug_is_fused(c->debug)) assay_str_append(out, " --fused");
  if (a->debug.seed) assay_str_printf_raw(out, " --seed %lld", (long long)a->debug.seed);
  assay_str_append(out, " --no-fix");
  assay_status_t st = assay_str_status(&path);
  assay_str_deinit(&path);
  return st ? st : assay_str_status(out);
}

// What was found, and what it is called in reports.
typedef struct finding {
  const assay_reduction_t* reduction;
  assay_reduction_report_options_t names;
} finding_t;

static assay_status_t report(const void* finding, assay_report_kind_t kind,
                             assay_report_fn_t* write, void* user) {
  const finding_t* f = finding;
  return assay_reduction_report(f->reduction, kind, &f->names, write, user);
}

static assay_status_t hand_over(const args_t* a, const cli_debug_client_t* c,
                                const assay_reduction_t* r) {
  assay_str_t folder = {0}, command = {0};
  finding_t f = {r, ASSAY_REDUCTION_REPORT_OPTIONS_INIT};
  f.names.model = a->debug.model;
  f.names.precision = a->debug.precision;
  assay_status_t st = print_folder(a, &folder);
  if (!st) st = print_command(a, c, assay_str_get(&folder), &command);
  // What was found is told even where its files cannot be written; then no command is told that
  // reads them.
  assay_status_t unwritten = NULL;
  if (!st && assay_reduction_verdict(r) == ASSAY_REDUCE_REDUCED)
    unwritten = assay_reduction_write(r, assay_str_get(&folder), &f.names.samples);
  if (!unwritten) f.names.folder = assay_str_get(&folder);
  if (!unwritten) f.names.command = assay_str_get(&command);
  if (!st) st = cli_client_report(report, &f, a->json);
  st = assay_status_join(st, unwritten);
  assay_str_deinit(&folder);
  assay_str_deinit(&command);
  return st;
}

static int reduce(const args_t* a, const cli_debug_client_t* c) {
  assay_reduction_options_t o = ASSAY_REDUCTION_OPTIONS_INIT;
  assay_reduction_t* r = NULL;
  o.judge = a->judge;
  o.judge_seconds = a->judge_seconds;
  o.seconds = a->seconds;
  o.command = a->debug.exec;
  o.model = a->debug.model;
  o.command_seconds = a->debug.exec_seconds;
  assay_status_t st = assay_debug_reduce(c->debug, &o, c->inputs, c->golden, &r);
  assay_cli_progress("", 1);
  if (st) return cli_debug_fail(st);
  st = hand_over(a, c, r);
  const bool sound = assay_reduction_verdict(r) == ASSAY_REDUCE_SOUND;
  assay_reduction_destroy(r);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return sound ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static const char* conflict(const args_t* a) {
  if (a->judge && a->debug.require.n) return "--check and --require do not go together";
  return cli_debug_client_exec_conflict(&a->debug);
}

static int run(void* p) {
  args_t* a = p;
  cli_debug_client_t c = {0};
  int code;
  if (conflict(a)) return assay_cli_usage(VERB, "%s", conflict(a));
  if (cli_debug_client_open(&a->debug, &c, &code)) code = reduce(a, &c);
  cli_debug_client_close(&c);
  return code;
}

static const opt_t options[] = {
    CLI_DEBUG_OPTIONS,
    CLI_DEBUG_FUSED,
    {"--golden", 'g', OPT_LIST, offsetof(args_t, debug.golden), "FILE",
     "the original framework's outputs: a fault of the export's is\nreduced, too; given again: "
     "more "
     "samples, as for --inputs, or more\noutputs",
     false},
    {"--golden-intermediates", 0, OPT_STRING, offsetof(args_t, debug.inner), "FILE",
     "its inner tensors, by ONNX name: where parts can be cut", false},
    {"--require", 0, OPT_LIST, offsetof(args_t, debug.require), "DEMAND",
     "'STATISTIC OP VALUE', such as 'cosine >= 0.9999', of the outputs\nof the model and of every "
     "part "
     "(default: 'cosine >= 0.999')",
     false},
    {"--check", 0, OPT_STRING, offsetof(args_t, judge), "COMMAND",
     "your own judge: run with {model} {inputs} {golden} {outputs} put\nin (files: the part, what "
     "enters it, truth's outputs, the\nengine's); any exit code but 0: it still fails",
     false},
    {"--check-timeout", 0, OPT_FLOAT, offsetof(args_t, judge_seconds), "SECONDS",
     "how long one run of it may take (default: 600)", false},
    {"--time", 0, OPT_FLOAT, offsetof(args_t, seconds), "SECONDS",
     "begin no new part after them (default: 60)", false},
    {"--output-folder", 'o', OPT_OUT_FOLDER, offsetof(args_t, output), "FOLDER",
     "where model.onnx, inputs.npz and golden.npz go\n(default: MODEL.reduced, here)", false},
    CLI_DEBUG_EXEC("part"),
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_debug_reduce = {
    .name = VERB,
    .summary = "find the smallest part of a model that still fails, with inputs and outputs",
    .usage = "MODEL [options]",
    .examples =
        "  assay debug reduce model.onnx --precision fp16 --inputs inputs.npz\n"
        "  assay debug reduce model.onnx --exec 'engine {model} {inputs} {outputs}' -o small\n"
        "  assay debug reduce model.onnx --check './still-fine {model} {inputs} {golden}'\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
