// assay run: evaluates a model once on each sample and saves the outputs.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/shown.h"
#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "cli/verbs/reading.h"
#include "exec/targets.h"
#include "formats/format.h"
#include "plan/plan.h"
#include "runtime/executor.h"

typedef struct args {
  const char *model, *mode, *precision, *layer_precision, *accumulate, *save, *truth, *inject,
      *target, *fp32;
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
  assay_model_t* model;
  cli_shapes_t shapes;
  assay_samples_t samples;
  assay_precision_t precision;
  assay_plan_t* plan;      // of mode plan
  assay_engine_t* engine;  // of a plan file
  assay_executor_t* executor;
  assay_tensor_reading_t reading;
  assay_saved_t results;  // a run a sample
} job_t;

static void job_deinit(job_t* j) {
  assay_saved_deinit(&j->results);
  cli_reading_deinit(&j->reading);
  assay_executor_destroy(j->executor);
  assay_plan_destroy(j->plan);
  assay_engine_release(j->engine);
  assay_precision_deinit(&j->precision);
  assay_samples_deinit(&j->samples);
  cli_shapes_free(&j->shapes);
  assay_model_release(j->model);
}

static assay_status_t open_plan(const args_t* a, job_t* j) {
  j->precision.format = ASSAY_FORMAT_FP32;
  if (a->precision) j->precision.format = assay_format_parse(a->precision);
  if (!assay_format_info(j->precision.format)->is_float)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown precision '%s'", a->precision);
  if (a->accumulate) j->precision.accumulator = assay_format_parse(a->accumulate);
  if (a->accumulate && !assay_format_info(j->precision.accumulator)->is_float)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown accumulator '%s'", a->accumulate);
  if (a->layer_precision) ASSAY_TRY(assay_precision_parse(&j->precision, a->layer_precision));
  assay_plan_options_t plan_options = cli_plan_options(a->fused, &a->no_pass);
  plan_options.inject = a->inject;
  ASSAY_TRY(cli_parse_fp32(a->fp32, &plan_options.fp32));
  ASSAY_TRY(assay_plan_create(j->model, &j->precision, &plan_options, (uint64_t)a->seed, &j->plan));
  const assay_backend_t* backend;
  ASSAY_TRY(assay_target_find(a->target, ASSAY_TARGET_INSPECT, &backend));
  return assay_executor_run_plan(j->plan, backend, NULL, &j->executor);
}

// A plan file has all settled that a plan is made of.
static assay_status_t open_engine(const args_t* a, job_t* j) {
  ASSAY_TRY(assay_engine_load(a->model, &j->engine));
  j->model = (assay_model_t*)(uintptr_t)assay_plan_layers(assay_engine_plan(j->engine))->model;
  assay_model_retain(j->model);
  return assay_executor_run_engine(j->engine, NULL, &j->executor);
}

static assay_status_t open_evaluator(const args_t* a, job_t* j, assay_mode_t mode) {
  assay_evaluator_config_t config = {
      .mode = mode,
      .unquantized = a->truth && strcmp(a->truth, "unquantized") == 0,
      .seed = (uint64_t)a->seed,
      .keep_all = a->values};
  return assay_executor_evaluate(j->model, &config, &j->executor);
}

// The graph that is run: the model's, or what the passes have made of it.
// Runs one sample; graph outputs can be read afterwards.
static assay_status_t run_sample(job_t* j, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = assay_executor_graph(j->executor);
  const size_t n_steps = assay_executor_n_steps(j->executor);
  assay_executor_reset(j->executor);
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i]) ASSAY_TRY(assay_executor_set(j->executor, g->inputs[i], inputs[i]));
  for (size_t i = 0; i < n_steps; i++) {
    ASSAY_TRY(assay_executor_step(j->executor, i));
    assay_cli_progress("running", (double)i / (double)n_steps);
  }
  assay_cli_progress("", 1);
  return NULL;
}

static void print_value(const char* name, const assay_tensor_t* t) {
  if (t->kind != ASSAY_KIND_TENSOR) {
    assay_print(stdout, "%s: %lld items\n", name, (long long)t->n_items);
    return;
  }
  assay_print(stdout, "%s: %s%s", name, assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
  if (t->store == ASSAY_STORE_F64 && t->size) {
    double min = (double)INFINITY, max = -(double)INFINITY, sum = 0;
    int64_t bad = 0;
    for (int64_t i = 0; i < t->size; i++) {
      double x = assay_f64(t)[i];
      if (!isfinite(x)) {
        bad++;
        continue;
      }
      min = fmin(min, x);
      max = fmax(max, x);
      sum += x;
    }
    if (bad < t->size)
      printf("  min %.6g  max %.6g  mean %.6g", min, max, sum / (double)(t->size - bad));
    if (bad) printf("  not finite: %lld", (long long)bad);
  }
  putchar('\n');
}

static bool wanted(const args_t* a, const char* name) {
  for (size_t i = 0; i < a->outputs.n; i++)
    if (assay_glob_match(a->outputs.items[i], name)) return true;
  return !a->outputs.n;
}

static assay_status_t collect_value(const args_t* a, job_t* j, size_t sample, bool truth,
                                    const assay_value_t* v) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_executor_output(j->executor, v, &t));
  assay_tensor_t *wide = NULL, *typed = NULL;
  if (!t || !wanted(a, v->name)) return NULL;
  // Files hold arrays; sequences between nodes are left out.
  if (a->values && t->kind != ASSAY_KIND_TENSOR) return NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  bool floats = wide->kind == ASSAY_KIND_TENSOR && wide->store == ASSAY_STORE_F64;
  assay_status_t st = truth && floats ? assay_tensor_retype(wide, ASSAY_TYPE_DOUBLE, &typed) : NULL;
  if (!st && !typed) typed = assay_tensor_retain(wide);
  assay_tensor_release(wide);
  // Files have no more than the type holds: of many samples no more is kept, either.
  if (!st && a->save && j->samples.n > 1 && typed->kind == ASSAY_KIND_TENSOR &&
      typed->type != ASSAY_TYPE_STRING) {
    assay_tensor_t* packed = NULL;
    st = assay_tensor_pack(typed, &packed);
    assay_tensor_release(typed);
    typed = packed;
  }
  return st ? st : assay_set_add(&j->results.runs[sample], v->name, typed);
}

// Keeps the outputs of a sample, or all that its nodes made; truth is saved in float64.
static assay_status_t collect(const args_t* a, job_t* j, size_t sample, bool truth) {
  const assay_graph_t* g = assay_executor_graph(j->executor);
  for (size_t i = 0; !a->values && i < g->n_outputs; i++)
    ASSAY_TRY(collect_value(a, j, sample, truth, g->outputs[i]));
  for (size_t i = 0; a->values && i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k])
        ASSAY_TRY(collect_value(a, j, sample, truth, g->nodes[i]->outputs[k]));
  return NULL;
}

// Prints the outputs, samples one after the other, or saves them.
static assay_status_t hand_over(const args_t* a, job_t* j) {
  assay_str_t notes = {0};
  assay_set_t all = {0};
  if (a->save) {
    assay_status_t st = a->raw_bits ? assay_tensor_files_raw_bits(&j->results) : NULL;
    j->results.compress = a->compress;
    if (!st) st = assay_tensor_file_write(a->save, &j->results, "assay", &notes);
    fputs(assay_str_get(&notes), stderr);
    assay_str_deinit(&notes);
    return st;
  }
  ASSAY_TRY(assay_saved_join(&j->results, &all));
  for (size_t i = 0; i < all.n; i++) print_value(all.names[i], all.tensors[i]);
  assay_set_deinit(&all);
  return NULL;
}

static int run_job(args_t* a, job_t* j) {
  bool asks_plan = a->precision || a->layer_precision || a->accumulate || a->fused ||
                   a->no_pass.n || a->inject || a->target || a->fp32;
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
  const bool built = assay_engine_is_plan_file(a->model);
  if (built && (asks_plan || a->mode || a->values || cli_shapes_given(&a->shape) || a->truth))
    return assay_cli_usage("run",
                           "'%s' is a plan: its shapes, formats and passes were settled when it "
                           "was built; give the model instead",
                           a->model);
  if (!a->save && (a->raw_bits || a->compress))
    return assay_cli_usage("run", "%s is for --save-outputs FILE",
                           a->compress ? "--compress" : "--raw-bits");
  if (a->compress && strchr(a->save, '.') && !assay_glob_match("*.npz", a->save))
    return assay_cli_usage("run", "--compress is for npz, and '%s' is none", a->save);
  assay_status_t st = a->save ? assay_tensor_file_check_name(a->save) : NULL;
  if (!st) st = cli_reading_begin(&a->reading, &j->reading);
  if (!st) st = cli_shapes_parse(&a->shape, &j->shapes);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  double start = assay_clock_seconds();
  st = built ? open_engine(a, j) : cli_shapes_load(a->model, false, &j->shapes, &j->model);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  bool any = false;
  for (size_t i = 0; i < j->model->graph->n_outputs; i++)
    any |= wanted(a, j->model->graph->outputs[i]->name);
  if (!any && a->outputs.n && !a->values)
    return assay_cli_usage("run", "no output matches '%s'; the model has '%s'%s%s",
                           a->outputs.items[0],
                           j->model->graph->n_outputs ? j->model->graph->outputs[0]->name : "",
                           j->model->graph->n_outputs > 1 ? " and others" : "",
                           ASSAY_VALUES_NEAR_TEXT(j->model->graph->outputs,
                                                  j->model->graph->n_outputs, a->outputs.items[0]));
  if (!built)
    st =
        plan ? open_plan(a, j) : open_evaluator(a, j, truth ? ASSAY_MODE_TRUTH : ASSAY_MODE_NATIVE);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = cli_samples(&a->inputs, j->model, &j->reading, (uint64_t)a->seed, &j->samples);
  j->results.about = j->reading.about;  // what is said of a sample holds for its outputs
  j->reading.about = (assay_str_t){0};
  st = cli_reading_end(&a->reading, &j->reading, st);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  double loaded = assay_clock_seconds();
  for (size_t k = 0; !st && k < j->samples.n; k++) {
    assay_set_t* results = NULL;
    st = assay_saved_add_run(&j->results, &results);
    if (!st) st = run_sample(j, assay_samples_get(&j->samples, k));
    if (!st) st = collect(a, j, k, truth);
  }
  double ran = assay_clock_seconds();
  if (!st) st = hand_over(a, j);
  if (st) {
    bool input =
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
  int code = run_job(p, &j);
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
