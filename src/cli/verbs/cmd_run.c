// assay run: evaluates a model once on each sample and saves the outputs.
#include <assay/memory.h>
#include <assay/outputs.h>
#include <assay/session.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/shown.h"
#include "cli/client.h"
#include "cli/target_option.h"

typedef struct args {
  const char *model, *mode, *precision, *layer_precision, *accumulate, *save, *truth, *inject,
      *target, *like, *fp32;
  opt_list_t inputs, outputs, no_pass, ops;
  bool allow_hard_links;
  int64_t seed, memory_limit;
  bool time, fused, values, raw_bits, compress;
  cli_reading_args_t reading;
  cli_shape_args_t shape;
  double timeout;
} args_t;

// Everything a run holds on to, freed together.
typedef struct job {
  cli_client_t client;
  assay_run_mode_t mode;
  assay_model_t* model;
  assay_engine_t* engine;  // of a plan file
  assay_session_t* session;
  assay_samples_t* samples;
  assay_outputs_t* results;  // a run a sample
} job_t;

static void job_deinit(job_t* j) {
  assay_outputs_destroy(j->results);
  assay_samples_destroy(j->samples);
  assay_session_destroy(j->session);
  assay_engine_release(j->engine);
  assay_model_release(j->model);
  cli_client_end(&j->client);
}

// ---- opening ------------------------------------------------------------------------------------

static assay_status_t want_float(const char* what, const char* text, assay_format_t* out) {
  *out = text ? assay_format_parse(text) : ASSAY_FORMAT_NONE;
  if (text && !assay_format_is_float(*out))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown %s '%s'", what, text);
  return NULL;
}

static assay_status_t open_model(const args_t* a, job_t* j) {
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  o.mode = j->mode;
  ASSAY_TRY(want_float("precision", a->precision, &o.precision));
  ASSAY_TRY(want_float("accumulator", a->accumulate, &o.accumulator));
  if (a->fp32) ASSAY_TRY(cli_client_fp32(a->fp32, &o.fp32));
  o.layer_precision = a->layer_precision;
  o.seed = (uint64_t)a->seed;
  o.unquantized = a->truth != NULL;
  o.target = a->target;
  o.fusion = a->fused ? ASSAY_FUSION_ON : ASSAY_FUSION_TARGET;
  o.passes_off = a->no_pass.items;
  o.n_passes_off = a->no_pass.n;
  o.inject = a->inject;
  o.all_values = a->values;
  o.progress = cli_client_progress;
  return assay_session_create(j->model, &o, &j->session);
}

// A plan file has all settled that a plan is made of.
static assay_status_t open_engine(const args_t* a, job_t* j) {
  ASSAY_TRY(assay_engine_load_on(a->model, a->target, &j->engine));
  j->model = assay_engine_model(j->engine);
  return assay_session_of_engine(j->engine, cli_client_progress, NULL, &j->session);
}

// ---- running ------------------------------------------------------------------------------------

// Runs one sample; the session's values can be read afterwards.
static assay_status_t run_sample(job_t* j, size_t sample) {
  const size_t n = assay_samples_value_count(j->samples);
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof(assay_tensor_t*), &in));
  for (size_t i = 0; i < n; i++) in[i] = assay_samples_tensor(j->samples, sample, i);
  assay_status_t st = assay_session_evaluate(j->session, n, in);
  assay_cli_progress("", 1);
  assay_free(in);
  return st;
}

static bool wanted(const args_t* a, const char* name) {
  for (size_t i = 0; i < a->outputs.n; i++)
    if (assay_glob_match(a->outputs.items[i], name)) return true;
  return !a->outputs.n;
}

// The type that a value is kept in; UNDEFINED: as it is. Truth is kept in float64. Files have no
// more than the type holds: of many samples no more is kept, either.
static assay_type_t kept_type(const args_t* a, const job_t* j, const assay_tensor_t* t) {
  const assay_type_t type = assay_tensor_type(t);
  if (assay_tensor_kind(t) != ASSAY_KIND_TENSOR || type == ASSAY_TYPE_STRING)
    return ASSAY_TYPE_UNDEFINED;
  if (j->mode == ASSAY_RUN_TRUTH && assay_type_is_float(type)) return ASSAY_TYPE_DOUBLE;
  return a->save && assay_samples_count(j->samples) > 1 ? type : ASSAY_TYPE_UNDEFINED;
}

static assay_status_t collect_value(const args_t* a, job_t* j, size_t i) {
  const char* name = assay_session_value_name(j->session, i);
  assay_tensor_t *t = NULL, *kept = NULL;
  if (!wanted(a, name)) return NULL;
  ASSAY_TRY(assay_session_value(j->session, i, &t));
  // Files hold arrays; sequences between nodes are left out.
  if (!t || (a->values && assay_tensor_kind(t) != ASSAY_KIND_TENSOR))
    return assay_tensor_release(t), NULL;
  const assay_type_t type = kept_type(a, j, t);
  assay_status_t st = type ? assay_tensor_convert(t, type, &kept) : NULL;
  if (!st) st = assay_outputs_add(j->results, name, kept ? kept : t);
  assay_tensor_release(kept);
  assay_tensor_release(t);
  return st;
}

// Runs all samples, and keeps the outputs of each, or all that its nodes made.
static assay_status_t run_all(const args_t* a, job_t* j) {
  ASSAY_TRY(assay_outputs_create(&j->results));
  // What is said of a sample holds for its outputs.
  ASSAY_TRY(assay_outputs_set_metadata(j->results, assay_samples_metadata(j->samples)));
  for (size_t k = 0; k < assay_samples_count(j->samples); k++) {
    ASSAY_TRY(assay_outputs_begin_run(j->results));
    ASSAY_TRY(run_sample(j, k));
    for (size_t i = 0; i < assay_session_value_count(j->session); i++)
      ASSAY_TRY(collect_value(a, j, i));
  }
  return NULL;
}

// ---- results ------------------------------------------------------------------------------------

static void print_dims(const assay_tensor_t* t) {
  const int64_t* dims = assay_tensor_dims(t);
  putchar('[');
  for (int d = 0; d < assay_tensor_rank(t); d++)
    printf("%s%lld", d ? ", " : "", (long long)dims[d]);
  putchar(']');
}

static void print_statistics(const double* x, int64_t n) {
  double min = (double)INFINITY, max = -(double)INFINITY, sum = 0;
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(x[i])) {
      bad++;
      continue;
    }
    min = fmin(min, x[i]);
    max = fmax(max, x[i]);
    sum += x[i];
  }
  if (bad < n) printf("  min %.6g  max %.6g  mean %.6g", min, max, sum / (double)(n - bad));
  if (bad) printf("  not finite: %lld", (long long)bad);
}

static assay_status_t print_value(const char* name, assay_tensor_t* t) {
  const int64_t n = assay_tensor_size(t);
  double* x = NULL;
  if (assay_tensor_kind(t) != ASSAY_KIND_TENSOR) {
    assay_print(stdout, "%s: %lld items\n", name, (long long)assay_tensor_item_count(t));
    return NULL;
  }
  const bool floats = n && assay_type_is_float(assay_tensor_type(t));
  if (floats) ASSAY_TRY(assay_new_array((size_t)n, sizeof *x, &x));
  assay_status_t st = floats ? assay_tensor_read_f64(t, x, (size_t)n) : NULL;
  if (st) return assay_free(x), st;
  assay_print(stdout, "%s: %s", name, assay_type_name(assay_tensor_type(t)));
  print_dims(t);
  if (floats) print_statistics(x, n);
  putchar('\n');
  assay_free(x);
  return NULL;
}

// Prints the outputs, samples one after the other, or saves them.
static assay_status_t hand_over(const args_t* a, job_t* j) {
  assay_outputs_options_t o = ASSAY_OUTPUTS_OPTIONS_INIT;
  o.raw_bits = a->raw_bits;
  o.compress = a->compress;
  if (a->save) {
    assay_status_t st = assay_outputs_save(j->results, a->save, &o);
    fputs(assay_outputs_notes(j->results), stderr);
    return st;
  }
  ASSAY_TRY(assay_outputs_join(j->results));
  for (size_t i = 0; i < assay_outputs_joined_count(j->results); i++)
    ASSAY_TRY(print_value(assay_outputs_joined_name(j->results, i),
                          assay_outputs_joined_tensor(j->results, i)));
  return NULL;
}

// ---- the verb -----------------------------------------------------------------------------------

// Says what does not go together, and in which mode the model is run.
static int settle_options(const args_t* a, bool built, job_t* j) {
  const bool settled = a->precision || a->layer_precision || a->accumulate || a->fused ||
                       a->no_pass.n || a->inject || a->fp32;
  const bool asks_plan = settled || a->target;
  const char* mode = a->mode ? a->mode : asks_plan ? "plan" : "native";
  bool truth = strcmp(mode, "truth") == 0;
  if (!truth && strcmp(mode, "native") != 0 && strcmp(mode, "plan") != 0)
    return assay_cli_usage("run", "--mode is truth, native or plan, not '%s'", mode);
  if (a->truth && strcmp(a->truth, "unquantized") != 0)
    return assay_cli_usage("run", "--truth is unquantized, not '%s'", a->truth);
  bool plan = strcmp(mode, "plan") == 0;
  if (!plan && asks_plan)
    return assay_cli_usage("run", "%s is for --mode plan, not %s",
                           a->precision         ? "--precision"
                           : a->layer_precision ? "--layer-precision"
                           : a->accumulate      ? "--accumulate"
                           : a->inject          ? "--inject"
                           : a->target          ? "--target"
                           : a->fp32            ? "--fp32"
                                                : "--fused",
                           mode);
  if (plan && a->values)
    return assay_cli_usage("run", "--all-values is for --mode truth and native, not plan");
  if (built && (settled || a->mode || a->values || cli_shapes_given(&a->shape) || a->truth))
    return assay_cli_usage("run",
                           "'%s' is a plan: its shapes, formats and passes were settled when it "
                           "was built; give the model instead",
                           a->model);
  if (!a->save && (a->raw_bits || a->compress))
    return assay_cli_usage("run", "%s is for --save-outputs FILE",
                           a->compress ? "--compress" : "--raw-bits");
  if (a->compress && strchr(a->save, '.') && !assay_glob_match("*.npz", a->save))
    return assay_cli_usage("run", "--compress is for npz, and '%s' is none", a->save);
  j->mode = plan ? ASSAY_RUN_PLAN : truth ? ASSAY_RUN_TRUTH : ASSAY_RUN_NATIVE;
  return ASSAY_EXIT_OK;
}

// Whether an output has a name that is asked for; if not, says which there are.
static bool has_wanted(const args_t* a, const assay_model_t* m) {
  const size_t n = assay_model_output_count(m);
  assay_nearest_t near = {.wanted = a->outputs.n ? a->outputs.items[0] : ""};
  if (a->values || !a->outputs.n) return true;
  for (size_t i = 0; i < n; i++) {
    const char* name = assay_model_output_name(m, i);
    if (wanted(a, name)) return true;
    assay_nearest_offer(&near, name);
  }
  assay_cli_usage("run", "no output matches '%s'; the model has '%s'%s%s", a->outputs.items[0],
                  n ? assay_model_output_name(m, 0) : "", n > 1 ? " and others" : "",
                  ASSAY_NEAREST_TEXT(&near));
  return false;
}

static int run_job(const args_t* a, job_t* j) {
  const bool built = assay_engine_is_plan_file(a->model);
  const int code = settle_options(a, built, j);
  if (code) return code;
  assay_status_t st = a->save ? assay_outputs_check_path(a->save) : NULL;
  if (!st) st = cli_client_begin(&a->reading, &a->shape, &j->client);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  const double start = assay_clock_seconds();
  st = built ? open_engine(a, j) : cli_client_model(&j->client, a->model, false, &j->model);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  if (!has_wanted(a, j->model)) return ASSAY_EXIT_USAGE;
  if (!built) st = open_model(a, j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = cli_client_inputs(&j->client, &a->inputs, j->model, (uint64_t)a->seed, &j->samples);
  st = cli_client_read(&j->client, st);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  const double loaded = assay_clock_seconds();
  st = run_all(a, j);
  const double ran = assay_clock_seconds();
  if (!st) st = hand_over(a, j);
  if (st) {
    const bool input =
        assay_status_code(st) == ASSAY_INVALID_ARGUMENT || assay_status_code(st) == ASSAY_CORRUPT;
    return assay_cli_fail(st, input ? ASSAY_EXIT_INPUT : ASSAY_EXIT_FAILED);
  }
  if (a->time) fprintf(stderr, "loaded in %.3f s, ran in %.3f s\n", loaded - start, ran - loaded);
  return ASSAY_EXIT_OK;
}

static int run(void* p) {
  const args_t* a = p;
  job_t j = {0};
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  int code = run_job(a, &j);
  job_deinit(&j);
  return code;
}

static const opt_t options[] = {
    {"MODEL", 0, OPT_STRING, offsetof(args_t, model), NULL,
     "the ONNX file, or a plan of it (assay build)", true},
    {"--mode", 0, OPT_STRING, offsetof(args_t, mode), "MODE",
     "truth: float64 whatever the types say; native (default):\nrounded to each declared type; "
     "plan: the emu "
     "backend",
     false},
    {"--inputs", 'i', OPT_LIST, offsetof(args_t, inputs), "FILE", CLI_INPUTS_HELP, false},
    CLI_READING_OPTIONS(reading),
    CLI_SHAPE_OPTIONS(shape),
    {"--save-outputs", 'o', OPT_OUT_EITHER, offsetof(args_t, save), "FILE",
     "save the outputs (truth as float64) in the format that the name ends\nin: .npz .npy "
     ".safetensors .pb .json (Polygraphy's) .trtexec.json .txt\n.raw, or FOLDER/ for output_0.pb "
     "...",
     false},
    {"--raw-bits", 0, OPT_FLAG, offsetof(args_t, raw_bits), NULL,
     "with -o: bf16 as uint16 and fp8 as uint8, not as float32", false},
    {"--compress", 0, OPT_FLAG, offsetof(args_t, compress), NULL, "with -o FILE.npz: deflated",
     false},
    {"--all-values", 0, OPT_FLAG, offsetof(args_t, values), NULL,
     "not only the outputs: what every node of the graph gives", false},
    {"--output", 0, OPT_LIST, offsetof(args_t, outputs), "PATTERN", "only outputs that match",
     false},
    {"--precision", 0, OPT_STRING, offsetof(args_t, precision), "FORMAT",
     "mode plan: format of float32 values", false},
    CLI_RULES_OPTIONS(layer_precision, "mode plan: "),
    {"--accumulate", 0, OPT_STRING, offsetof(args_t, accumulate), "FORMAT",
     "mode plan: what sums are kept in", false},
    {"--target", 0, OPT_STRING, offsetof(args_t, target), "TARGET", "mode plan: {look}", false},
    CLI_LIKE_OPTION(like),
    {"--fp32", 0, OPT_STRING, offsetof(args_t, fp32), "SETTING",
     "mode plan: which kernels fp32 layers may use: plain, tight (default),\nbound", false},
    CLI_FUSED_OPTIONS,
    {"--truth", 0, OPT_STRING, offsetof(args_t, truth), "MODE",
     "unquantized: quantizers (QLinear operators, MatMulInteger and Cast\nto 8 bits, too) are the "
     "identity in truth",
     false},
    {"--inject", 0, OPT_STRING, offsetof(args_t, inject), "NODE:FAULT",
     "mode plan, for tests: a node computes something else, as in check", false},
    {"--seed", 0, OPT_INT, offsetof(args_t, seed), "N", "seed of random inputs and operators",
     false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    CLI_MEMORY_OPTION,
    {"--time", 0, OPT_FLAG, offsetof(args_t, time), NULL, "print how long loading and running took",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_run = {
    .name = "run",
    .summary = "run a model and save its outputs",
    .usage = "MODEL [options]",
    .examples =
        "  assay run model.onnx --inputs inputs.npz --save-outputs outputs.npz\n"
        "  assay run model.onnx --inputs test_data_set_0 --save-outputs outputs.safetensors\n"
        "  assay run model.onnx --mode truth --shape image=1x3x224x224\n"
        "  assay run model.plan --inputs inputs.npz --save-outputs outputs.npz\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
