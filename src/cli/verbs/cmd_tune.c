// assay tune: the fastest assignment of formats to layers that meets what is required.
#include <assay/engine.h>
#include <assay/tune.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "cli/client.h"
#include "cli/verbs/debug_options.h"

#define VERB "tune"
#define CLI_DEBUG_TARGET_HELP "{look}:\nwhat outputs are measured on"
#undef CLI_DEBUG_FORMAT_HELP
#define CLI_DEBUG_FORMAT_HELP "formats for layers below fp32, FORMAT[,FORMAT...]\n(default: fp16)"

enum { DEFAULT_POINTS = 5, MAX_POINTS = 64, NAME = 32, MAX_FORMATS = 3 };

typedef struct args {
  cli_debug_args_t debug;
  const char *device, *save, *plan, *save_options, *json, *timing_cache;
  int64_t pareto, runs;
  double seconds;
  bool layers, no_pareto;
  double timeout;
} args_t;

// ---- what is asked ------------------------------------------------------------------------------

typedef struct formats {
  assay_format_t at[MAX_FORMATS];
  size_t n;
} formats_t;

static const char* parse_formats(const char* text, formats_t* out) {
  while (*text) {
    char name[NAME] = {0};
    const size_t n = strcspn(text, ",");
    if (!n || n >= sizeof name) return "--precision is FORMAT[,FORMAT...], such as fp16,bf16";
    memcpy(name, text, n);
    const assay_format_t f = cli_client_find_float(name);
    if (!f || f == ASSAY_FORMAT_FP32 || f == ASSAY_FORMAT_FP64)
      return "--precision names formats below fp32: fp16, bf16, tf32, fp8e4m3 ...";
    for (size_t i = 0; i < out->n; i++)
      if (out->at[i] == f) return "--precision names a format twice";
    if (out->n == MAX_FORMATS) return "--precision takes at most three formats";
    out->at[out->n++] = f;
    text += n + (text[n] == ',');
  }
  return NULL;
}

static bool is_device(const char* name) {
  for (size_t i = 0; assay_tune_device_name(i); i++)
    if (strcmp(assay_tune_device_name(i), name) == 0) return true;
  return false;
}

static int unknown_device(const char* name) {
  assay_str_t names = {0};
  for (size_t i = 0; assay_tune_device_name(i); i++)
    assay_str_printf(&names, "%s%s", i ? ", " : "", assay_tune_device_name(i));
  const int code = assay_cli_usage(VERB, "--device '%s' is not known; there are here, %s", name,
                                   assay_str_get(&names));
  assay_str_deinit(&names);
  return code;
}

// Says what does not go together; NULL: nothing.
static const char* conflict(const args_t* a, formats_t* out) {
  const cli_debug_args_t* d = &a->debug;
  const bool target_here = assay_target_is_here(d->target);
  const bool here = a->device ? strcmp(a->device, "here") == 0 : target_here;
  const char* wrong = parse_formats(d->precision ? d->precision : "fp16", out);
  if (wrong) return wrong;
  if (here && !target_here)
    return "--device here measures this machine's CPU: it goes with --target cpu";
  if (!here && a->timing_cache)
    return "--timing-cache is for times measured here: --target cpu without --device";
  if (a->pareto < 0 || a->pareto > MAX_POINTS) return "--pareto is 2 to 64 points";
  if (a->runs < 0 || a->seconds < 0) return "--runs and --seconds are not negative";
  return NULL;
}

// ---- the tuning ---------------------------------------------------------------------------------

typedef struct job {
  assay_model_t* model;
  assay_samples_t* inputs;
  assay_golden_t* golden;
  cli_client_t client;
  assay_tune_t* tune;
} job_t;

static void job_deinit(job_t* j) {
  assay_tune_destroy(j->tune);
  assay_golden_destroy(j->golden);
  assay_samples_destroy(j->inputs);
  cli_client_end(&j->client);
  assay_model_release(j->model);
}

static assay_status_t create_with(const args_t* a, const formats_t* formats,
                                  const char* const* requirements, size_t n_requirements,
                                  job_t* j) {
  const cli_debug_args_t* d = &a->debug;
  assay_tune_options_t o = ASSAY_TUNE_OPTIONS_INIT;
  ASSAY_TRY(cli_client_fp32(d->fp32, &o.fp32));
  o.formats = formats->at;
  o.n_formats = formats->n;
  o.layer_precision = d->layer_precision;
  o.target = d->target;
  o.fusion = d->fused ? ASSAY_FUSION_ON : d->unfused ? ASSAY_FUSION_OFF : ASSAY_FUSION_TARGET;
  o.passes_off = d->no_pass.items;
  o.n_passes_off = d->no_pass.n;
  o.requirements = requirements;
  o.n_requirements = n_requirements;
  o.unquantized = d->truth != NULL;
  o.device = a->device;
  o.fewest_layers = a->layers;
  o.front = a->no_pareto ? 0 : a->pareto ? (size_t)a->pareto : DEFAULT_POINTS;
  o.max_runs = (size_t)a->runs;
  o.seconds = a->seconds;
  o.timing_cache = a->timing_cache;
  o.seed = (uint64_t)d->seed;
  o.progress = cli_client_progress;
  ASSAY_TRY(assay_tune_create(j->model, &o, &j->tune));
  if (d->golden.n || !assay_tune_needs_golden(j->tune)) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a requirement is about golden: give --golden");
}

// A command of --check is one more requirement.
static assay_status_t create(const args_t* a, const formats_t* formats, job_t* j) {
  const cli_debug_args_t* d = &a->debug;
  const char** all = NULL;
  size_t n = d->require.n;
  if (d->fused && d->unfused)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fused and --unfused do not go together");
  if (d->truth && strcmp(d->truth, "unquantized") != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--truth is unquantized, not '%s'", d->truth);
  if (d->check && !strstr(d->check, "{outputs}"))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check '%s': the command is given what to judge as {outputs}", d->check);
  ASSAY_TRY(assay_new_array(n + 1, sizeof *all, &all));
  for (size_t i = 0; i < n; i++) all[i] = d->require.items[i];
  if (d->check) all[n++] = d->check;
  assay_status_t st = create_with(a, formats, all, n, j);
  assay_free(all);
  return st;
}

static assay_status_t read_files(const args_t* a, job_t* j) {
  const cli_debug_args_t* d = &a->debug;
  assay_golden_options_t o = ASSAY_GOLDEN_OPTIONS_INIT;
  const assay_samples_options_t reading = cli_client_reading(&j->client);
  ASSAY_TRY(cli_client_inputs(&j->client, &d->inputs, j->model, (uint64_t)d->seed, &j->inputs));
  if (!d->golden.n) return NULL;
  o.reading = &reading;
  ASSAY_TRY(assay_golden_load_files(j->model, d->golden.n, d->golden.items,
                                    assay_samples_count(j->inputs), &o, &j->golden));
  for (size_t i = 0; i < reading.n_dtypes; i++)
    j->client.met[i] |= assay_golden_dtype_used(j->golden, i);
  return NULL;
}

// ---- what is handed over ------------------------------------------------------------------------

// Writes a file, where one is asked for and there is what to write. One that cannot be written is
// left out of the report, which comes first: *why says it afterwards.
static const char* written(const char* path, const assay_tune_t* t,
                           assay_status_t (*write)(const assay_tune_t*, const char*),
                           assay_status_t* why) {
  if (!path || !assay_tune_met(t)) return NULL;
  assay_status_t st = write(t, path);
  const bool fine = !st;
  *why = assay_status_join(*why, st);
  return fine ? path : NULL;
}

static assay_status_t report(const args_t* a, const assay_tune_t* t) {
  assay_status_t unwritten = NULL;
  const assay_tune_report_options_t names = {
      .struct_size = sizeof names,
      .model = a->debug.model,
      .saved_model = written(a->save, t, assay_tune_write_model, &unwritten),
      .saved_plan = written(a->plan, t, assay_tune_write_plan, &unwritten),
      .saved_options = written(a->save_options, t, assay_tune_write_options, &unwritten)};
  const bool json_to_stdout = assay_cli_json_to_stdout(a->json);
  const assay_report_kind_t kind = json_to_stdout ? ASSAY_REPORT_JSON : ASSAY_REPORT_TEXT;
  assay_status_t st = assay_tune_report(t, kind, &names, cli_client_print, NULL);
  if (!st && a->json && !json_to_stdout)
    st = assay_tune_write_report(t, ASSAY_REPORT_JSON, &names, a->json);
  return assay_status_join(st, unwritten);
}

// ---- the verb -----------------------------------------------------------------------------------

static int tune(const args_t* a, job_t* j) {
  assay_status_t st = assay_tune_run(j->tune, j->inputs, j->golden);
  assay_cli_progress("", 1);
  if (st) return cli_debug_fail(st);
  if (j->golden) fputs(assay_golden_notes(j->golden), stderr);
  st = report(a, j->tune);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return assay_tune_met(j->tune) ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run_job(const args_t* a, const formats_t* formats, job_t* j) {
  assay_status_t st = cli_client_begin(&a->debug.reading, &a->debug.shape, &j->client);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = cli_client_model(&j->client, a->debug.model, false, &j->model);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = cli_client_want_target(a->debug.target);
  if (!st) st = create(a, formats, j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = cli_client_read(&j->client, read_files(a, j));
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  return tune(a, j);
}

static int run(void* p) {
  const args_t* a = p;
  formats_t formats = {.n = 0};
  job_t j = {.model = NULL};
  if (a->device && strcmp(a->device, "here") != 0 && !is_device(a->device))
    return unknown_device(a->device);
  const char* wrong = conflict(a, &formats);
  if (wrong) return assay_cli_usage(VERB, "%s", wrong);
  if (a->debug.memory_limit) assay_memory_set_limit(a->debug.memory_limit);
  const int code = run_job(a, &formats, &j);
  job_deinit(&j);
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
