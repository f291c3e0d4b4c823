// From flags to an engine: built of a model, or loaded.
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/shell.h"
#include "base/shown.h"
#include "cli/risks.h"
#include "formats/format.h"
#include "frontends/trtexec/edit.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"
#include "onnx/onnx.h"

double trt_now_ms(void) { return 1e3 * assay_clock_seconds(); }

void trt_job_deinit(trt_job_t* j) {
  assay_engine_release(j->engine);
  assay_model_release(j->model);
  assay_model_release(j->edited);
  assay_free(j->native.profiles.items);
  assay_free(j->io_types.items);
  trt_ends_deinit(&j->layouts);
  assay_free(j->facts);
  assay_map_deinit(&j->wished);
  assay_str_deinit(&j->rules);
  assay_str_deinit(&j->timings);
  assay_arena_destroy(j->arena);
}

// ---- what flags mean ----------------------------------------------------------------------------

// The limit of --memPoolSize=workspace and --workspace.
static assay_status_t choose_workspace(trt_job_t* j) {
  const trt_options_t* o = j->options;
  trt_item_t* items = NULL;
  size_t n = 0;
  uint64_t bytes = (uint64_t)(trt_number(o, TRT_FLAG_workspace) * 0x1p20);
  bool any = trt_given(o, TRT_FLAG_workspace);
  if (trt_given(o, TRT_FLAG_memPoolSize))
    ASSAY_TRY(
        trt_items_parse(j->arena, "--memPoolSize", trt_text(o, TRT_FLAG_memPoolSize), &items, &n));
  for (size_t i = 0; i < n; i++) {
    if (strcmp(items[i].name, "workspace") != 0) continue;
    any = true;
    ASSAY_TRY(trt_size_parse("--memPoolSize", items[i].value, 0x1p20, &bytes));
  }
  if (any) j->workspace = bytes ? bytes : 1;  // nothing at all is as good as one byte
  if (j->workspace > INT64_MAX) j->workspace = INT64_MAX;
  j->native.max_scratch = (int64_t)j->workspace;
  return NULL;
}

// Sources of kernels, by our name and another one of TensorRT's; native NULL: nothing here is of
// it.
typedef struct source_row {
  const char *name, *other, *native;
  bool on_cpu, on_gpu;
} source_row_t;
static const source_row_t source_rows[] = {{"OWN", NULL, "assay", true, true},
                                           {"ONEDNN", NULL, "onednn", true, false},
                                           {"CUBLAS_LT", "CUBLASLT", "cublaslt", false, true},
                                           {.name = "LIBXSMM"},
                                           {.name = "CUBLAS"},
                                           {.name = "CUDNN"},
                                           {.name = "EDGE_MASK_CONVOLUTIONS"},
                                           {.name = "JIT_CONVOLUTIONS"}};
enum { N_SOURCES = sizeof source_rows / sizeof *source_rows };

static bool is_source_here(const trt_job_t* j, size_t k) {
  return j->native.target ? source_rows[k].on_gpu : source_rows[k].on_cpu;
}

static size_t find_source(const char* name) {
  size_t k = 0;
  while (k < N_SOURCES && strcasecmp(source_rows[k].name, name) != 0 &&
         !(source_rows[k].other && strcasecmp(source_rows[k].other, name) == 0))
    k++;
  return k;
}

// Of those that this target has the list of what is on, unless all are.
static assay_status_t list_sources(trt_job_t* j, const int* state) {
  bool only = false, all = true;  // only: one was switched on, so those that were not are off
  assay_str_t list = {0};
  for (size_t k = 0; k < N_SOURCES; k++) only |= is_source_here(j, k) && state[k] > 0;
  for (size_t k = 0; k < N_SOURCES; k++) {
    if (!is_source_here(j, k)) continue;
    if (state[k] > 0 || (!only && state[k] == 0))
      assay_str_printf(&list, "%s%s", list.len ? "," : "", source_rows[k].native);
    else
      all = false;
  }
  assay_status_t st = assay_str_status(&list);
  if (!st && !list.len)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--tacticSources: no source is left");
  if (!st && !all)
    st = assay_arena_strdup(j->arena, assay_str_get(&list), &j->native.tactic_sources);
  assay_str_deinit(&list);
  return st;
}

// "+ONEDNN,-OWN" as the native list of those that are on.
static assay_status_t choose_sources(trt_job_t* j) {
  int state[N_SOURCES] = {0};  // 1: on, -1: off
  const char** words = NULL;
  size_t n = 0;
  if (!trt_given(j->options, TRT_FLAG_tacticSources)) return NULL;
  ASSAY_TRY(trt_words_parse(j->arena, "--tacticSources",
                            trt_text(j->options, TRT_FLAG_tacticSources), &words, &n));
  for (size_t i = 0; i < n; i++) {
    const char sign = words[i][0];
    if (sign != '+' && sign != '-')
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--tacticSources: '%s' needs + or - before it",
                         words[i]);
    const size_t k = find_source(words[i] + 1);
    if (k == N_SOURCES)
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT,
          "--tacticSources: '%s' is not a source: ONEDNN and OWN, or one of TensorRT's",
          words[i] + 1);
    const int value = sign == '+' ? 1 : -1;
    if (state[k] == -value)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--tacticSources: %s is on and off",
                         source_rows[k].name);
    state[k] = value;
    if (!is_source_here(j, k))
      trt_warn("--tacticSources=%s has no effect in Assay: this target has no such kernels",
               words[i]);
  }
  return list_sources(j, state);
}

static void choose_strip(trt_job_t* j) {
  const trt_options_t* o = j->options;
  const bool all = trt_given(o, TRT_FLAG_stripAllWeights);
  j->native.strip_weights = all || trt_given(o, TRT_FLAG_stripWeights);
  j->native.refittable = all || trt_given(o, TRT_FLAG_refit);
  if (j->native.strip_weights && j->quantized)
    trt_warn(
        "--%s: the plan is of the model as --int8 has quantized it: its weights are those of the "
        "model that 'assay edit quantize' writes (--show-native)",
        all ? "stripAllWeights" : "stripWeights");
}

assay_status_t trt_translate(trt_job_t* j) {
  const trt_options_t* o = j->options;
  const double start = trt_now_ms();
  const char* path = trt_text(o, TRT_FLAG_onnx);
  if (path[0] == '~' && path[1] == '/' && getenv("HOME"))
    ASSAY_TRY(assay_arena_printf(j->arena, &path, "%s%s", getenv("HOME"), path + 1));
  trt_info("Start parsing network model.");
  if (!j->model) {  // else whoever loaded it has warned
    ASSAY_TRY(assay_onnx_load(path, 0, NULL, &j->model));
    for (size_t i = 0; i < j->model->n_warnings; i++) trt_warn("%s", j->model->warnings[i]);
  }
  trt_info("Finished parsing network model. Parse time: %g", 1e-3 * (trt_now_ms() - start));
  j->native.model = path;
  j->native.loaded = j->model;
  j->native.batch_variant = trt_number(o, TRT_FLAG_builderOptimizationLevel) == 5;
  j->verbosity = trt_text(o, TRT_FLAG_profilingVerbosity);
  ASSAY_TRY(trt_mark_debug(j));
  ASSAY_TRY(trt_load_calibration(j));
  ASSAY_TRY(trt_choose_precision(j));
  ASSAY_TRY(trt_set_io_formats(j));
  ASSAY_TRY(trt_resolve_profile(j));
  ASSAY_TRY(choose_sources(j));
  ASSAY_TRY(choose_workspace(j));
  choose_strip(j);
  return trt_resolve_layers(j);
}

// ---- building -----------------------------------------------------------------------------------

static assay_status_t keep_facts(trt_job_t* j, const assay_engine_t* engine,
                                 const assay_executor_t* e) {
  const size_t n = assay_plan_layers(assay_engine_plan(engine))->n_layers;
  if (!j->facts) ASSAY_TRY(assay_new_array(n, sizeof *j->facts, &j->facts));
  j->n_facts = n;
  j->run_bytes = assay_executor_planned_bytes(e);
  j->scratch = j->n_over = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t scratch = assay_executor_scratch(e, i);
    j->facts[i] = (trt_fact_t){assay_executor_tactic(e, i), assay_executor_executed(e, i)};
    if (scratch > j->scratch) j->scratch = scratch;
    if (j->workspace && scratch > j->workspace && !j->n_over++)
      j->over = assay_plan_layers(assay_engine_plan(engine))->layers[i].name;
  }
  return NULL;
}

static assay_status_t tried(void* user, const assay_engine_t* engine, const assay_executor_t* e) {
  trt_job_t* j = user;
  const assay_backend_t* backend = assay_engine_backend(engine);
  bool measured = false;
  ASSAY_TRY(keep_facts(j, engine, e));
  if (!backend->timings) return NULL;
  assay_str_deinit(&j->timings);
  j->timings = (assay_str_t){0};
  ASSAY_TRY(backend->timings(assay_engine_shared(engine), &j->timings, &measured));
  j->timings_measured |= measured;
  if (measured && trt_given(j->options, TRT_FLAG_errorOnTimingCacheMiss))
    return ASSAY_ERROR(
        ASSAY_NOT_FOUND,
        "--errorOnTimingCacheMiss: kernels of this model are not in the timing cache "
        "and would have to be timed: build once without this flag, with "
        "--timingCacheFile");
  return NULL;
}

static void report_memory(const trt_job_t* j, const char* phase) {
  struct rusage usage;
  if (trt_given(j->options, TRT_FLAG_monitorMemory) && getrusage(RUSAGE_SELF, &usage) == 0)
    trt_info("[MemUsage] %s: the most memory taken so far is %.1f MiB", phase,
             (double)usage.ru_maxrss / 1024);
}

// What came of the limit.
static void report_workspace(const trt_job_t* j) {
  const double limit = (double)j->workspace * 0x1p-20;
  if (!j->workspace) return;
  trt_info(
      "Workspace of %g MiB: kernels that need more scratch are passed by; those that are used need "
      "%g MiB at most. A run takes %.3g MiB for values between layers and scratch together",
      limit, (double)j->scratch * 0x1p-20, (double)j->run_bytes * 0x1p-20);
  if (j->n_over)
    trt_warn(
        "%zu layers have no kernel that needs no more than the workspace of %g MiB, such as %s: "
        "they take the one that needs least",
        j->n_over, limit, j->over);
}

// Times of what is emulated say nothing of what could be.
static void report_emulated(const trt_job_t* j, const assay_layers_t* layers) {
  size_t n = 0, first = 0;
  for (size_t i = j->n_facts; i-- > 0;)
    if (assay_tactic_is_emulated(j->facts[i].tactic)) n++, first = i;
  if (n)
    trt_info("%zu of %zu layers have no kernel and are emulated, slowly, such as %s", n, j->n_facts,
             layers->layers[first].name);
}

static void add_word(assay_str_t* out, const char* flag, const char* value) {
  assay_str_t word = {0};
  assay_str_printf_raw(&word, "%s=%s", flag, value);
  assay_shell_word(out, assay_str_get(&word));
  assay_str_deinit(&word);
}

static void report_stripped(const char* plan, const char* model) {
  assay_str_t words = {0};
  add_word(&words, "--loadEngine", plan);
  assay_str_append(&words, " ");
  add_word(&words, "--refitFromOnnx", model);
  trt_info("The engine is stripped: %s puts its weights in", assay_str_get(&words));
  assay_str_deinit(&words);
}

static assay_status_t save(const trt_job_t* j) {
  const char* path = trt_text(j->options, TRT_FLAG_saveEngine);
  struct stat info = {0};
  if (!path) return NULL;
  ASSAY_TRY(assay_engine_save(j->engine, path));
  if (stat(path, &info) == 0)
    trt_info("Created engine with size: %g MiB", (double)info.st_size * 0x1p-20);
  if (j->native.strip_weights) report_stripped(path, trt_text(j->options, TRT_FLAG_onnx));
  report_memory(j, "saving");
  return NULL;
}

static void warn(const char* line) { trt_warn("%s", line); }

static assay_status_t build(trt_job_t* j) {
  const trt_options_t* o = j->options;
  const char *path = trt_cache_file(o), *timings;
  int code;
  report_memory(j, "parsing");
  const double start = trt_now_ms();
  ASSAY_TRY(trt_cache_read(j, path, &j->timings_kept, &timings));
  const double max = trt_number(o, TRT_FLAG_maxTactics);  // -1: all
  const double level = trt_number(o, TRT_FLAG_builderOptimizationLevel);
  if (j->lent && *j->lent) timings = j->lent;
  const double runs = trt_given(o, TRT_FLAG_avgTiming) ? trt_number(o, TRT_FLAG_avgTiming) : 0;
  const cli_build_t how = {.timings = *timings ? timings : NULL,
                           .forced = j->forced,
                           .unmeasured = level<2, .max_tactics = max> 0 ? (int)max : 0,
                           .timing_runs = (int)runs,
                           .tried = tried,
                           .user = j};
  ASSAY_TRY(cli_engine_build(&j->native, &how, &j->engine, &code));
  if (path && !j->lent) trt_cache_report(j, path, timings);
  ASSAY_TRY(trt_cache_write(j, j->cache_out ? j->cache_out : path));
  ASSAY_TRY(trt_check_layers(j, assay_plan_layers(assay_engine_plan(j->engine))));
  report_workspace(j);
  report_emulated(j, assay_plan_layers(assay_engine_plan(j->engine)));
  cli_warn_of_constants(j->engine, warn);
  ASSAY_TRY(trt_check_direct(j));
  const double seconds = 1e-3 * (trt_now_ms() - start);
  report_memory(j, "building");
  ASSAY_TRY(trt_note_write(j));
  ASSAY_TRY(save(j));
  trt_info("Engine built in %g sec.", seconds);
  return NULL;
}

// ---- loading ------------------------------------------------------------------------------------

assay_status_t trt_refuse_tensorrt(const char* path) {
  static const unsigned char tag[] = {0x66, 0x74, 0x72, 0x74};
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  const bool is =
      assay_mapping_size(m) >= sizeof tag && memcmp(assay_mapping_data(m), tag, sizeof tag) == 0;
  assay_mapping_release(m);
  return is ? ASSAY_ERROR(ASSAY_UNSUPPORTED,
                          "'%s' is a plan of TensorRT, which holds GPU code of that version: build "
                          "one with --onnx=MODEL --saveEngine=FILE",
                          path)
            : NULL;
}

// The model that weights come from, with the edits that the plan's model has had before its build.
static assay_status_t read_weights(const trt_job_t* j, const char* path, assay_model_t** out) {
  assay_model_t *raw = NULL, *edited = NULL, *ready = NULL;
  const assay_editor_options_t options = {0};
  const assay_edit_requests_t marked = {.to = j->ends};
  const assay_edit_requests_t typed = {.types = {j->io_types.items, j->io_types.n}};
  if (!j->n_debug_outputs && !j->io_types.n) return assay_onnx_load(path, 0, NULL, out);
  ASSAY_TRY(assay_onnx_read(path, &raw));
  assay_status_t st = NULL;
  if (j->n_debug_outputs)
    st = trt_edit_other(raw, &assay_editor_extract, &marked, &options, &edited, &ready, NULL);
  if (!st && j->n_debug_outputs) {
    assay_model_release(raw);
    raw = edited;
    edited = NULL;
  }
  if (!st && j->io_types.n) {
    assay_model_release(ready);
    ready = NULL;
    st = trt_edit_other(raw, &assay_editor_set, &typed, &options, &edited, &ready, NULL);
  }
  assay_model_release(raw);
  assay_model_release(edited);
  if (st) return assay_model_release(ready), st;
  *out = ready;
  return NULL;
}

static assay_status_t refit(trt_job_t* j) {
  const char* path = trt_text(j->options, TRT_FLAG_refitFromOnnx);
  assay_model_t* weights = NULL;
  assay_engine_t* fitted = NULL;
  assay_refit_t reported = {0};
  if (!path) return NULL;
  ASSAY_TRY(read_weights(j, path, &weights));
  const double start = trt_now_ms();
  assay_status_t st =
      assay_engine_refit_with(j->engine, weights, 0, NULL, NULL, &reported, &fitted);
  assay_model_release(weights);
  if (st) return assay_status_note(st, "--refitFromOnnx=%s", path);
  assay_engine_release(j->engine);
  j->engine = fitted;
  if (reported.n_filled)
    trt_info("Put %zu missing weights of %zu in from %s, %zu other than at the build",
             reported.n_filled, reported.n_weights, path, reported.n_changed);
  else
    trt_info("Refitted %zu of %zu weights from %s", reported.n_changed, reported.n_weights, path);
  if (trt_given(j->options, TRT_FLAG_timeRefit))
    trt_info("Engine refitted in %g sec.", 1e-3 * (trt_now_ms() - start));
  return NULL;
}

// Flags of a build beside a plan that is there: all but those that mean something then, too, or are
// refused.
static void warn_of_build_flags(const trt_options_t* o) {
  static const trt_flag_id_t others[] = {
      TRT_FLAG_minShapes,       TRT_FLAG_optShapes,          TRT_FLAG_maxShapes,
      TRT_FLAG_profile,         TRT_FLAG_profilingVerbosity, TRT_FLAG_skipInference,
      TRT_FLAG_refit,           TRT_FLAG_runtimePlatform,    TRT_FLAG_tempdir,
      TRT_FLAG_tempfileControls};
  for (int f = 0; f < TRT_N_FLAGS; f++) {
    bool warn = trt_flags[f].block == TRT_BUILD && trt_flags[f].level == TRT_WORKS;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) warn &= f != (int)others[i];
    if (warn && o->at[f].given)
      trt_warn("%s has no effect with --loadEngine: it was settled when the plan was built",
               trt_flags[f].name);
  }
}

static assay_status_t load(trt_job_t* j) {
  const char* path = trt_text(j->options, TRT_FLAG_loadEngine);
  ASSAY_TRY(trt_refuse_tensorrt(path));
  warn_of_build_flags(j->options);
  const double start = trt_now_ms();
  ASSAY_TRY(assay_engine_load_on(path, j->native.target, &j->engine));
  const double seconds = 1e-3 * (trt_now_ms() - start);
  trt_info("Engine loaded in %g sec.", seconds);
  trt_info("Engine deserialized in %g sec.", seconds);
  j->verbosity = trt_text(j->options, TRT_FLAG_profilingVerbosity);
  ASSAY_TRY(trt_note_read(j));
  return refit(j);
}

assay_status_t trt_open_engine(trt_job_t* j) {
  ASSAY_TRY(j->model ? build(j) : load(j));
  ASSAY_TRY(trt_check_debug(j));
  return trt_check_run_shapes(j);
}

assay_status_t trt_check_weights(const trt_job_t* j) {
  uint64_t bytes;
  const size_t n = assay_engine_missing_weights(j->engine, &bytes);
  if (!n) return NULL;
  return ASSAY_ERROR(
      ASSAY_UNSUPPORTED,
      "--loadEngine=%s: the plan is stripped, and its %zu weights (%s) are not in it: "
      "add --refitFromOnnx=MODEL.onnx, or --skipInference",
      trt_text(j->options, TRT_FLAG_loadEngine), n, ASSAY_BYTES_TEXT(bytes));
}

// ---- facts of a plan that was loaded ------------------------------------------------------------

// A plan without its weights does not run: what would is not told.
static assay_status_t blank_facts(trt_job_t* j) {
  const size_t n = assay_plan_layers(assay_engine_plan(j->engine))->n_layers;
  ASSAY_TRY(assay_new_array(n, sizeof *j->facts, &j->facts));
  for (size_t i = 0; i < n; i++) j->facts[i].tactic = "N/A";
  j->n_facts = n;
  trt_info("The plan is stripped and cannot run: which tactics its layers have is not told");
  return NULL;
}

assay_status_t trt_find_facts(trt_job_t* j) {
  assay_executor_t* e = NULL;
  if (j->facts) return NULL;
  if (assay_engine_missing_weights(j->engine, NULL)) return blank_facts(j);
  ASSAY_TRY(cli_engine_try(j->engine, (uint64_t)j->native.seed, &e));
  assay_status_t st = keep_facts(j, j->engine, e);
  assay_executor_destroy(e);
  return st;
}
