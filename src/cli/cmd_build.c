// assay build: compiles a model into a plan file.
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/engine_source.h"
#include "formats/format.h"

typedef struct args {
  cli_engine_args_t engine;
  const char *save, *timing_cache;
  int64_t memory_limit;
  bool strict;
} args_t;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct tried {
  size_t emulated;  // layers
  size_t bytes;     // that a run takes besides weights
} tried_t;

// Whether a layer ran otherwise than was asked for, and how.
static bool differs(const assay_executor_t* e, const assay_layer_t* l, size_t i,
                    const char** out_how) {
  const assay_format_t executed = assay_executor_executed(e, i);
  *out_how = NULL;
  if (strcmp(assay_executor_tactic(e, i), "emu") == 0)
    *out_how = "has no kernel and is emulated";
  else if (executed && executed != l->format)
    *out_how = "is stored so, but this CPU's kernel computes in another format";
  return *out_how;
}

static assay_status_t refuse_differences(const assay_executor_t* e, const assay_layers_t* layers) {
  const char* how;
  for (size_t i = 0; i < layers->n_layers; i++)
    if (differs(e, &layers->layers[i], i, &how))
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "layer '%s' in %s %s; build without --strict, or give it another format "
                         "with --layer-precision",
                         layers->layers[i].name, assay_format_name(layers->layers[i].format), how);
  return NULL;
}

// One run with made-up inputs: kernels are made and weights packed, and the plan keeps those.
static assay_status_t try_out(const args_t* a, assay_engine_t* engine, tried_t* out) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  assay_executor_t* e = NULL;
  ASSAY_TRY(cli_engine_try(engine, (uint64_t)a->engine.seed, &e));
  out->emulated = 0;
  for (size_t i = 0; i < layers->n_layers; i++)
    out->emulated += strcmp(assay_executor_tactic(e, i), "emu") == 0;
  out->bytes = assay_executor_planned_bytes(e);
  assay_status_t st = a->strict ? refuse_differences(e, layers) : NULL;
  assay_executor_destroy(e);
  return st;
}

// The timing cache, if there is one already.
static assay_status_t read_cache(const char* path, assay_mapping_t** out) {
  struct stat info;
  if (!path || stat(path, &info) != 0 || !info.st_size) return NULL;
  return assay_mapping_open(path, out);
}

// What was measured is used and kept. Kernels that lost have left packed weights behind: the engine
// shares anew, by the times that are known now.
static assay_status_t settle(const args_t* a, assay_engine_t* engine, tried_t* tried) {
  const assay_backend_t* backend = assay_engine_backend(engine);
  assay_str_t text = {0};
  bool measured = false;
  if (!backend->timings) return NULL;
  assay_status_t st = backend->timings(assay_engine_shared(engine), &text, &measured);
  const assay_backend_options_t known = {.tactic_sources = a->engine.tactic_sources,
                                         .timings = assay_str_get(&text),
                                         .timings_bytes = strlen(assay_str_get(&text))};
  if (!st && measured) st = assay_engine_share_again(engine, &known);
  if (!st && measured) st = try_out(a, engine, tried);
  struct stat info;
  if (!st && a->timing_cache && (measured || stat(a->timing_cache, &info) != 0))
    st = assay_file_write(a->timing_cache, known.timings, known.timings_bytes);
  assay_str_deinit(&text);
  return st;
}

static void tell(const args_t* a, const assay_engine_t* engine, const tried_t* tried,
                 double seconds) {
  const assay_layers_t* l = assay_plan_layers(assay_engine_plan(engine));
  struct stat info = {0};
  stat(a->save, &info);
  printf("built %s: %zu layers, %s, in %.2f s\n", a->save, l->n_layers,
         ASSAY_BYTES_TEXT((uint64_t)info.st_size), seconds);
  printf("a run takes %s besides the weights", ASSAY_BYTES_TEXT(tried->bytes));
  if (tried->emulated)
    printf("; %zu layers have no kernel and are emulated, slowly", tried->emulated);
  putchar('\n');
}

static int run(void* p) {
  const args_t* a = p;
  assay_engine_t* engine = NULL;
  assay_mapping_t* cache = NULL;
  tried_t tried = {0};
  int code;
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  if (!a->save) return assay_cli_usage("build", "say where the plan goes: --output FILE");
  if (assay_engine_is_plan_file(a->engine.model))
    return assay_cli_usage("build", "'%s' is a plan already; give the model", a->engine.model);
  const double start = now();
  assay_status_t st = read_cache(a->timing_cache, &cache);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  const assay_backend_options_t options = {
      .timings = cache ? (const char*)assay_mapping_data(cache) : NULL,
      .timings_bytes = cache ? assay_mapping_size(cache) : 0,
      .measure = true};
  st = cli_engine_open(&a->engine, &options, &engine, &code);
  assay_mapping_release(cache);
  if (st) return assay_cli_fail(st, code);
  st = try_out(a, engine, &tried);
  if (!st) st = settle(a, engine, &tried);
  if (!st) st = assay_engine_save(engine, a->save);
  if (!st) tell(a, engine, &tried, now() - start);
  assay_engine_release(engine);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static const opt_t options[] = {
    CLI_ENGINE_OPTIONS,
    {"--output", 'o', OPT_STRING, offsetof(args_t, save), "FILE", "the plan file to write", false},
    {"--profile", 0, OPT_LIST, offsetof(args_t, engine.profiles), "NAME=MIN:OPT:MAX",
     "shapes of an input that the plan is for: x=1x80:4x80:8x80", false},
    {"--timing-cache", 0, OPT_STRING, offsetof(args_t, timing_cache), "FILE",
     "read how fast kernels are, and add what is measured: builds with\nthe same times are the "
     "same, byte for byte",
     false},
    {"--strict", 0, OPT_FLAG, offsetof(args_t, strict), NULL,
     "fail where a layer would not run in the format asked for", false},
    CLI_MEMORY_OPTION,
    {0}};

const verb_t assay_verb_build = {
    .name = "build",
    .summary = "compile a model into a plan file",
    .usage = "MODEL --output PLAN [options]",
    .examples =
        "  assay build model.onnx -o model.plan --precision bf16 --batch 8\n"
        "  assay build model.onnx -o model.plan --profile image=1x3x224x224:4x3x224x224:8x3x224x224\n"
        "  assay bench model.plan\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
