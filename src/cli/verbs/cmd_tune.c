// assay tune: the fastest assignment of formats to layers that meets what is required.
#include <assay/engine.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/shown.h"
#include "check/mixed_model.h"
#include "cli/verbs/debug_job.h"
#include "formats/format.h"
#include "onnx/onnx.h"
#include "report/report.h"

#define VERB "tune"
#define CLI_DEBUG_TARGET_HELP "{look}: what outputs are measured on"
#undef CLI_DEBUG_FORMAT_HELP
#define CLI_DEBUG_FORMAT_HELP "formats for layers below fp32, FORMAT[,FORMAT...]\n(default: fp16)"

enum { DEFAULT_POINTS = 5, MOST_POINTS = 64, NAME = 32 };

typedef struct args {
  cli_debug_args_t debug;
  const char *device, *save, *plan, *save_options, *json, *timing_cache;
  int64_t pareto, runs;
  double seconds;
  bool layers, no_pareto;
  double timeout;
} args_t;

// ---- what is asked ------------------------------------------------------------------------------

static const char* parse_formats(const char* text, assay_tune_options_t* o) {
  while (*text) {
    char name[NAME] = {0};
    const size_t n = strcspn(text, ",");
    if (!n || n >= sizeof name) return "--precision is FORMAT[,FORMAT...], such as fp16,bf16";
    memcpy(name, text, n);
    const assay_format_t f = assay_format_parse(name);
    const assay_format_info_t* info = assay_format_info(f);
    if (!info->is_float || f == ASSAY_FORMAT_FP32 || f == ASSAY_FORMAT_FP64)
      return "--precision names formats below fp32: fp16, bf16, tf32, fp8e4m3 ...";
    for (size_t i = 0; i < o->n_formats; i++)
      if (o->formats[i] == f) return "--precision names a format twice";
    if (o->n_formats + 1 >= ASSAY_TUNE_FORMATS) return "--precision takes at most three formats";
    o->formats[o->n_formats++] = f;
    text += n + (text[n] == ',');
  }
  o->formats[o->n_formats++] = ASSAY_FORMAT_FP32;
  return NULL;
}

static void list_devices(assay_str_t* out) {
  for (size_t i = 0; assay_device_roofline(i); i++)
    assay_str_printf(out, "%s%s", i ? ", " : "", assay_device_roofline(i)->name);
}

// Says what does not go together; false: it has been told.
static bool is_asked(const args_t* a, assay_tune_options_t* o) {
  const bool cpu = a->debug.target && strcmp(a->debug.target, "cpu") == 0;
  const char* device = a->device ? a->device : cpu ? "here" : assay_device_roofline(0)->name;
  const char* wrong = parse_formats(a->debug.precision ? a->debug.precision : "fp16", o);
  assay_str_t names = {0};
  if (!wrong && strcmp(device, "here") != 0) {
    o->device = assay_device_roofline_find(device);
    list_devices(&names);
    if (!o->device)
      return assay_cli_usage(VERB, "--device '%s' is not known; there are here, %s", device,
                             assay_str_get(&names)),
             assay_str_deinit(&names), false;
    assay_str_deinit(&names);
  }
  if (!wrong && !o->device && !cpu)
    wrong = "--device here measures this machine's CPU: it goes with --target cpu";
  if (!wrong && o->device && a->timing_cache)
    wrong = "--timing-cache is for times measured here: --target cpu without --device";
  if (!wrong && (a->pareto < 0 || a->pareto > MOST_POINTS)) wrong = "--pareto is 2 to 64 points";
  if (!wrong && (a->runs < 0 || a->seconds < 0)) wrong = "--runs and --seconds are not negative";
  if (wrong) return assay_cli_usage(VERB, "%s", wrong), false;
  o->goal = a->layers ? ASSAY_TUNE_LAYERS : ASSAY_TUNE_TIME;
  o->front = a->no_pareto ? 0 : a->pareto ? (size_t)a->pareto : DEFAULT_POINTS;
  o->most_runs = (size_t)a->runs;
  o->seconds = a->seconds;
  o->timing_cache = a->timing_cache;
  return true;
}

// ---- what is handed over ------------------------------------------------------------------------

static assay_status_t write_mixed(const args_t* a, const assay_tuned_t* t) {
  assay_format_t* given = NULL;
  assay_model_t* mixed = NULL;
  for (size_t f = 0; f + 1 < t->options.n_formats; f++)
    if (t->fixes[f].n_nodes && t->options.formats[f] != ASSAY_FORMAT_FP16 &&
        t->options.formats[f] != ASSAY_FORMAT_BF16)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "--save writes models of fp16 or bf16, not of %s",
                         assay_format_name(t->options.formats[f]));
  ASSAY_TRY(assay_new_array((size_t)t->model->n_node_ids, sizeof *given, &given));
  for (int i = 0; i < t->model->n_node_ids; i++) given[i] = ASSAY_FORMAT_FP32;
  for (size_t f = 0; f < t->options.n_formats; f++)
    for (size_t i = 0; i < t->fixes[f].n_nodes; i++)
      given[t->fixes[f].nodes[i]->id] = t->options.formats[f];
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32, .given = given};
  assay_status_t st = assay_mixed_model(t->model, &precision, t->setting.seed, &mixed);
  if (!st) st = assay_onnx_write(mixed, a->save, NULL);
  assay_model_release(mixed);
  assay_free(given);
  return st;
}

static assay_status_t write_plan(const args_t* a, const assay_tuned_t* t) {
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t* engine = NULL;
  assay_str_t rules = {0};
  assay_report_tune_rules(t, a->debug.layer_precision, &rules);
  o.target = t->setting.backend->name;
  o.precision = assay_report_tune_base(t);
  o.layer_precision = rules.len ? assay_str_get(&rules) : NULL;
  o.timing_cache = a->timing_cache;
  o.measure = true;
  o.unfused = !t->setting.plan.fused;
  o.seed = t->setting.seed;
  o.fp32 = t->setting.plan.fp32;
  assay_status_t st = assay_str_status(&rules);
  if (!st) st = assay_engine_build(t->model, &o, &engine);
  if (!st) st = assay_engine_save(engine, a->plan);
  assay_engine_release(engine);
  assay_str_deinit(&rules);
  return st;
}

static assay_status_t write_options(const args_t* a, const assay_tuned_t* t) {
  assay_str_t s = {0}, options = {0}, trtexec = {0};
  assay_report_tune_options(t, a->debug.layer_precision, &options);
  assay_report_tune_trtexec(t, &trtexec);
  assay_str_printf_raw(&s,
                       "# assay and trtexec options of this assignment\n"
                       "# assay reads this file with --fix-file\n%s\n%s%s",
                       assay_str_get(&options), assay_str_get(&trtexec), trtexec.len ? "\n" : "");
  assay_status_t st = assay_str_status(&options);
  st = assay_status_join(st, assay_str_status(&trtexec));
  st = assay_status_join(st, assay_str_status(&s));
  if (!st) st = assay_file_write(a->save_options, assay_str_get(&s), s.len);
  assay_str_deinit(&s);
  assay_str_deinit(&options);
  assay_str_deinit(&trtexec);
  return st;
}

// Writes a file, where one is asked for and there is what to write. One that cannot be written is
// left out of the report, which comes first: *why says it behind.
static const char* written(const char* path, const args_t* a, const assay_tuned_t* t,
                           assay_status_t (*write)(const args_t*, const assay_tuned_t*),
                           assay_status_t* why) {
  if (!path || !t->met) return NULL;
  assay_status_t st = write(a, t);
  const bool fine = !st;
  *why = assay_status_join(*why, st);
  return fine ? path : NULL;
}

static assay_status_t tell(const args_t* a, const assay_tuned_t* t, double seconds) {
  assay_status_t unwritten = NULL;
  const assay_report_tune_t names = {
      .model = a->debug.model,
      .target = t->setting.backend->name,
      .rules = a->debug.layer_precision,
      .save = written(a->save, a, t, write_mixed, &unwritten),
      .plan = written(a->plan, a, t, write_plan, &unwritten),
      .options = written(a->save_options, a, t, write_options, &unwritten),
      .seconds = seconds};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = NULL;
  if (!assay_cli_json_to_stdout(a->json)) {
    st = assay_report_tune_text(t, &names, &text);
    if (!st) fputs(assay_str_get(&text), stdout);
    assay_str_deinit(&text);
  }
  if (!st && a->json) st = assay_report_tune_json(t, &names, &json);
  if (!st && a->json) st = assay_cli_write_json(a->json, json);
  json_decref(json);
  return assay_status_join(st, unwritten);
}

// ---- the verb -----------------------------------------------------------------------------------

static int tune(const args_t* a, const assay_tune_options_t* o, cli_debug_job_t* j) {
  const double start = assay_clock_seconds();
  assay_tuned_t tuned = {0};
  assay_status_t st =
      assay_tune(j->model, &j->options, o, &j->inputs, j->golden.n ? &j->golden : NULL, &tuned);
  assay_cli_progress("", 1);
  if (st) return assay_tuned_deinit(&tuned), cli_debug_fail(st);
  st = tell(a, &tuned, assay_clock_seconds() - start);
  const bool met = tuned.met;
  assay_tuned_deinit(&tuned);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return met ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  const args_t* a = p;
  assay_tune_options_t o = {0};
  cli_debug_job_t j = {0};
  cli_debug_args_t debug = a->debug;
  int code;
  if (!is_asked(a, &o)) return ASSAY_EXIT_USAGE;
  debug.precision = assay_format_name(o.formats[0]);
  if (cli_debug_open(&debug, &j, &code)) code = tune(a, &o, &j);
  cli_debug_close(&j);
  return code;
}

static const opt_t options[] = {
    CLI_DEBUG_OPTIONS,
    CLI_DEBUG_REQUIREMENTS,
    CLI_DEBUG_FUSED,
    {"--device", 0, OPT_STRING, offsetof(args_t, device), "NAME",
     "whose time is to be small: here (measured; default for cpu), or\nby its roofline generic "
     "(default for emu), h100, h200, a100, l4,\nl40s, t4, rtx4090, orin; the report has its rates",
     false},
    {"--layers", 0, OPT_FLAG, offsetof(args_t, layers), NULL,
     "as few layers in fp32 as possible, rather than the least time", false},
    {"--pareto", 0, OPT_INT, offsetof(args_t, pareto), "N",
     "points of the front of time against error (default: 5)", false},
    {"--no-pareto", 0, OPT_FLAG, offsetof(args_t, no_pareto), NULL, "no front", false},
    {"--runs", 0, OPT_INT, offsetof(args_t, runs), "N",
     "at most so many assignments are run (default: 8), besides all in\none format", false},
    {"--seconds", 0, OPT_FLOAT, offsetof(args_t, seconds), "S",
     "how long to time each format here (default: 0.5)", false},
    {"--timing-cache", 0, OPT_OUT_CACHE, offsetof(args_t, timing_cache), "FILE",
     "read how fast kernels are, and add what is measured", false},
    {"--save", 'o', OPT_OUT_FILE, offsetof(args_t, save), "FILE",
     "the model in mixed precision, with explicit Casts", false},
    {"--save-plan", 0, OPT_OUT_FILE, offsetof(args_t, plan), "FILE", "a plan file for the target",
     false},
    {"--save-options", 0, OPT_OUT_FILE, offsetof(args_t, save_options), "FILE",
     "--layer-precision, and --layerPrecisions for trtexec", false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_tune = {
    .name = VERB,
    .summary = "find the fastest precisions whose outputs meet what is required",
    .usage = "MODEL [--precision FORMAT,...] [--require DEMAND] [options]",
    .examples =
        "  assay tune model.onnx --inputs inputs.npz --require 'cosine >= 0.9999' -o mixed.onnx\n"
        "  assay tune model.onnx -i in.npz --precision fp16,bf16 --require 'top1 >= 0.99' --device "
        "orin\n"
        "  assay tune model.onnx -i in.npz --target cpu --precision bf16 --save-plan model.plan\n"
        "  assay tune model.onnx -i in.npz --check './judge {outputs}' --pareto 10 --json -\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
