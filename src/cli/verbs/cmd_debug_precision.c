// assay debug precision: which layers need more precision.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "check/mixed_model.h"
#include "cli/client.h"
#include "cli/verbs/debug_job.h"
#include "debug/precision.h"
#include "onnx/onnx.h"
#include "passes/float_types.h"
#include "report/report.h"

#define VERB "debug precision"
#define CLI_DEBUG_TARGET_HELP "emu (default) or cpu"

typedef struct args {
  cli_debug_args_t debug;
  const char *mode, *direction, *save, *save_options, *json;
  bool rebuild, as_asked;
  const char* fix;
  double timeout;
} args_t;

static const char* const modes[] = {[ASSAY_PRECISION_ACCOUNT] = "account",
                                    [ASSAY_PRECISION_BISECT] = "bisect",
                                    [ASSAY_PRECISION_LINEAR] = "linear"};
enum { N_MODES = sizeof modes / sizeof *modes };

// Says what does not go together; NULL: nothing.
static const char* conflict(const args_t* a, assay_precision_options_t* o) {
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

static assay_status_t write_mixed(const args_t* a, const assay_precision_found_t* c) {
  const assay_format_t f = c->options.precision.format;
  assay_model_t* mixed = NULL;
  const bool typed = f == ASSAY_FORMAT_FP32 && assay_float_types_has_narrow(c->model);
  if (f != ASSAY_FORMAT_FP16 && f != ASSAY_FORMAT_BF16 && !typed)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "--save writes models of fp16 or bf16, not of %s",
                       c->options.precision_name);
  ASSAY_TRY(assay_mixed_model_of_fix(c->model, &c->options.precision, &c->fewest.fix,
                                     c->options.seed, &mixed));
  assay_status_t st = assay_onnx_write(mixed, a->save, NULL);
  assay_model_release(mixed);
  return st;
}

static assay_status_t write_options(const args_t* a, const assay_precision_found_t* c) {
  assay_str_t s = {0};
  assay_report_fix_file(&c->fewest.fix, &s);
  assay_status_t st = assay_str_status(&s);
  if (!st) st = assay_file_write(a->save_options, assay_str_get(&s), s.len);
  assay_str_deinit(&s);
  return st;
}

// Writes a file of the fix, where one is asked for and there is a fix. One that cannot be written
// is left out of the report, which comes first: *why says it afterwards.
static const char* written(const char* path, const args_t* a, const assay_precision_found_t* c,
                           assay_status_t (*write)(const args_t*, const assay_precision_found_t*),
                           assay_status_t* why) {
  if (!path || !c->fewest.has_fix || !c->fewest.fix.n_nodes) return NULL;
  assay_status_t st = write(a, c);
  const bool fine = !st;
  *why = assay_status_join(*why, st);
  return fine ? path : NULL;
}

static assay_status_t report(const args_t* a, const assay_precision_found_t* f,
                             const assay_precision_options_t* o, double seconds) {
  assay_status_t unwritten = NULL;
  const assay_report_precision_t names = {
      .model = a->debug.model,
      .target = f->options.backend->name,
      .precision = f->options.precision_name,
      .mode = modes[o->mode],
      .save = written(a->save, a, f, write_mixed, &unwritten),
      .options = written(a->save_options, a, f, write_options, &unwritten),
      .seconds = seconds};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = NULL;
  if (!assay_cli_json_to_stdout(a->json)) {
    st = assay_report_precision_text(f, &names, &text);
    if (!st) fputs(assay_str_get(&text), stdout);
    assay_str_deinit(&text);
  }
  if (!st && a->json) st = assay_report_precision_json(f, &names, &json);
  if (!st && a->json) st = assay_cli_write_json(a->json, json);
  json_decref(json);
  return assay_status_join(st, unwritten);
}

static int find(const args_t* a, assay_precision_options_t* o, cli_debug_job_t* j) {
  const double start = assay_clock_seconds();
  assay_precision_found_t found = {0};
  o->shapes = j->shapes.shapes;
  o->n_shapes = j->shapes.n;
  assay_status_t st = assay_precision_find(j->model, &j->options, o, &j->inputs,
                                           j->golden.n ? &j->golden : NULL, &found);
  assay_cli_progress("", 1);
  if (st) return assay_precision_found_deinit(&found), cli_debug_fail(st);
  st = report(a, &found, o, assay_clock_seconds() - start);
  const bool ok = found.fewest.faithful || (found.fewest.has_fix && found.fewest.fix.verified);
  assay_precision_found_deinit(&found);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return ok ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

// A model that declares 16-bit types asks for them itself.
static bool asks_for_less(const args_t* a, const assay_model_t* m) {
  return a->debug.precision || a->debug.layer_precision || assay_float_types_has_narrow(m);
}

static int run(void* p) {
  const args_t* a = p;
  assay_precision_options_t o = {0};
  cli_debug_job_t j = {0};
  const char* wrong = conflict(a, &o);
  if (wrong) return assay_cli_usage(VERB, "%s", wrong);
  assay_status_t st = cli_client_fix(a->fix, &o.fix);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  int code;
  if (cli_debug_open(&a->debug, &j, &code))
    code = asks_for_less(a, j.model)
               ? find(a, &o, &j)
               : assay_cli_usage(VERB, "say which precision is asked for: --precision fp16");
  cli_debug_close(&j);
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
