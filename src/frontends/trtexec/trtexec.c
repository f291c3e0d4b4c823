// assay trtexec: TensorRT's trtexec, over this program's own ways.
#include "frontends/trtexec/trtexec.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process.h"
#include "base/shell.h"
#include "base/shown.h"
#include "exec/targets.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"
#include "runtime/engine.h"

// As in "&&&& RUNNING Assay.trtexec [Assay v10100] [b1]": MAJOR * 10000 + MINOR * 100 + PATCH.
static int version_number(void) {
  int major = 0, minor = 0, patch = 0;
  sscanf(ASSAY_VERSION, "%d.%d.%d", &major, &minor, &patch);
  return 10000 * major + 100 * minor + patch;
}

static void banner(const char* state, const char* command_line) {
  fflush(stderr);
  assay_print(stdout, "&&&& %s Assay.trtexec [Assay v%d] [b1] # %s\n", state, version_number(),
              command_line);
  fflush(stdout);
}

static assay_status_t make_command_line(assay_arena_t* arena, int argc, char** argv,
                                        const char** out) {
  assay_str_t text = {0};
  assay_shell_line(&text, "trtexec", argc, argv);
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_arena_strdup(arena, assay_str_get(&text), out);
  assay_str_deinit(&text);
  return st;
}

// What --device means to the native commands. Where it is not given, all is as on a machine without
// a GPU.
static assay_status_t choose_device(trt_job_t* j) {
  const trt_options_t* o = j->options;
  const assay_backend_t* b;
  if (!trt_given(o, TRT_FLAG_device)) return NULL;
  ASSAY_TRY(
      assay_arena_printf(j->arena, &j->native.target, "cuda:%s", trt_text(o, TRT_FLAG_device)));
  assay_status_t st = assay_target_find(j->native.target, ASSAY_TARGET_BUILD, &b);
  if (!st) st = assay_target_want(b);
  if (!st) return NULL;
  j->native.target = NULL;
  if (trt_number(o, TRT_FLAG_device) == 0) return assay_status_free(st), NULL;
  return assay_status_note(
      st, "--device=%s: there is no such device; without a GPU the CPU is number 0",
      trt_text(o, TRT_FLAG_device));
}

static void report_device(const trt_job_t* j) {
  assay_str_t text = {0};
  const assay_backend_t* b = j->native.target ? assay_backend_find(j->native.target)
                                              : assay_target_default(ASSAY_TARGET_BUILD);
  assay_backend_describe(b, &text);
  trt_info("=== Device Information ===");
  if (b->driver) {
    trt_info("Device %d: %s", b->device, assay_str_get(&text));
  } else {
    trt_info("Device 0: this CPU, %d threads (%s)", omp_get_max_threads(), assay_str_get(&text));
    trt_info(
        "The device is a CPU: 'GPU Compute Time' is its compute time, and nothing is transferred");
  }
  trt_info("%s", "");
  assay_str_deinit(&text);
}

// How long the plan takes to load that was just written.
static assay_status_t time_load(const char* path, const char* target) {
  assay_engine_t* engine = NULL;
  const double start = trt_now_ms();
  ASSAY_TRY(assay_engine_load_on(path, target, &engine));
  trt_info("Engine deserialized in %g sec.", 1e-3 * (trt_now_ms() - start));
  assay_engine_release(engine);
  return NULL;
}

static assay_status_t run_job(trt_job_t* j) {
  const trt_options_t* o = j->options;
  if (trt_given(o, TRT_FLAG_getPlanVersionOnly)) {
    const char* version = NULL;
    ASSAY_TRY(trt_refuse_tensorrt(trt_text(o, TRT_FLAG_loadEngine)));
    ASSAY_TRY(assay_engine_plan_version(j->arena, trt_text(o, TRT_FLAG_loadEngine), &version));
    trt_info("Plan was created with Assay version %s", version);
    return NULL;
  }
  if (trt_given(o, TRT_FLAG_onnx)) ASSAY_TRY(trt_translate(j));
  if (trt_given(o, TRT_FLAG_show_native)) return trt_print_native(j);
  ASSAY_TRY(trt_open_engine(j));
  if (trt_given(o, TRT_FLAG_dumpOptimizationProfile)) trt_dump_optimization_profile(j);
  if (trt_given(o, TRT_FLAG_dumpRefit)) ASSAY_TRY(trt_dump_refit(j));
  if (trt_given(o, TRT_FLAG_dumpLayerInfo) || trt_given(o, TRT_FLAG_exportLayerInfo)) {
    ASSAY_TRY(trt_find_facts(j));
    ASSAY_TRY(trt_report_layers(j));
  }
  if (trt_given(o, TRT_FLAG_timeDeserialize)) {
    if (trt_given(o, TRT_FLAG_loadEngine)) return NULL;
    if (trt_given(o, TRT_FLAG_saveEngine))
      return time_load(trt_text(o, TRT_FLAG_saveEngine), j->native.target);
    trt_warn(
        "--timeDeserialize has no effect without --loadEngine or --saveEngine: there is no plan "
        "to load");
  }
  if (trt_given(o, TRT_FLAG_skipInference)) {
    trt_info("Skipped inference phase since --skipInference is added.");
    return NULL;
  }
  if (j->native.strip_weights) {
    trt_info("Skipped inference phase since the engine is stripped: it has to be refitted first.");
    return NULL;
  }
  ASSAY_TRY(trt_check_weights(j));
  return trt_infer(j);
}

static void print_unknown(const trt_options_t* o) {
  const char* at = assay_str_get(&o->unknown);
  trt_print_help(stdout);
  for (size_t n; *at; at += n + 1) {
    n = strcspn(at, "\n");
    trt_error("Unknown option: %.*s", (int)n, at);
  }
}

// Reads the command line and does what it says; what was allocated is in the job.
static int run(trt_options_t* o, trt_job_t* j, int argc, char** argv) {
  const char* command_line = "trtexec";
  trt_outcome_t outcome;
  assay_status_t st = assay_arena_create(&j->arena);
  if (!st) st = make_command_line(j->arena, argc, argv, &command_line);
  j->command_line = command_line;
  banner("RUNNING", command_line);
  if (!st) st = trt_options_parse(argc, argv, o, &outcome);
  if (!st && outcome == TRT_OUTCOME_HELP) trt_print_help(stdout);
  if (!st && outcome == TRT_OUTCOME_UNKNOWN) {
    print_unknown(o);
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "The command line was not understood; nothing was done");
  } else if (!st && outcome == TRT_OUTCOME_RUN) {
    trt_log_verbose(trt_given(o, TRT_FLAG_verbose));
    trt_options_note(o);
    st = trt_options_take_fix(o);
    if (!st) st = trt_options_check(o);
    if (!st && !trt_given(o, TRT_FLAG_show_native)) st = trt_options_check_outputs(o);
    if (!st) st = trt_rule_temporary(o);
    if (!st) st = choose_device(j);
    if (!st && !trt_given(o, TRT_FLAG_show_native)) {
      trt_print_options(o);
      report_device(j);
    }
    if (!st) st = run_job(j);
  }
  if (st) trt_error("%s", assay_status_message(st));
  banner(st ? "FAILED" : "PASSED", command_line);
  const int code = st ? 1 : 0;
  assay_status_free(st);
  return code;
}

int assay_trtexec(int argc, char** argv) {
  trt_options_t options = {0};
  trt_job_t job = {.options = &options};
  const int code = run(&options, &job, argc, argv);
  assay_folder_rule_temporary(NULL, NULL);  // it borrows from the options
  trt_job_deinit(&job);
  trt_options_deinit(&options);
  if (fflush(stdout) || ferror(stdout)) return 1;
  return code;
}
