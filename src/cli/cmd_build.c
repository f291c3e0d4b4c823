// assay build: compiles a model into a plan file.
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/memory.h"
#include "cli/engine_source.h"

typedef struct args {
  cli_engine_args_t engine;
  const char* save;
  int64_t memory_limit;
} args_t;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// One run with made-up inputs: kernels are made and weights packed, and the plan keeps those.
static assay_status_t try_out(assay_engine_t* engine, uint64_t seed, size_t* out_emulated,
                              size_t* out_bytes) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  const assay_graph_t* g = layers->model->graph;
  assay_executor_t* e = NULL;
  assay_samples_t samples = {0};
  ASSAY_TRY(assay_samples_generate(layers->model, seed, &samples));
  assay_status_t st = assay_executor_run_engine(engine, NULL, &e);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    assay_tensor_t* t = assay_samples_get(&samples, 0)[i];
    if (t) st = assay_executor_set(e, g->inputs[i], t);
  }
  if (!st) st = assay_executor_run(e);
  *out_emulated = 0;
  for (size_t i = 0; !st && i < layers->n_layers; i++)
    *out_emulated += strcmp(assay_executor_tactic(e, i), "emu") == 0;
  if (!st) *out_bytes = assay_executor_planned_bytes(e);
  assay_executor_destroy(e);
  assay_samples_deinit(&samples);
  return st;
}

static int run(void* p) {
  const args_t* a = p;
  assay_engine_t* engine = NULL;
  size_t emulated = 0, bytes = 0;
  int code;
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  if (!a->save) return assay_cli_usage("build", "say where the plan goes: --output FILE");
  const double start = now();
  assay_status_t st = cli_engine_open(&a->engine, &engine, &code);
  if (st) return assay_cli_fail(st, code);
  st = try_out(engine, (uint64_t)a->engine.seed, &emulated, &bytes);
  if (!st) st = assay_engine_save(engine, a->save);
  if (!st) {
    const assay_layers_t* l = assay_plan_layers(assay_engine_plan(engine));
    struct stat info = {0};
    stat(a->save, &info);
    printf("built %s: %zu layers, %s, in %.2f s\n", a->save, l->n_layers,
           ASSAY_BYTES_TEXT((uint64_t)info.st_size), now() - start);
    printf("a run takes %s besides the weights", ASSAY_BYTES_TEXT(bytes));
    if (emulated) printf("; %zu layers have no kernel and are emulated, slowly", emulated);
    putchar('\n');
  }
  assay_engine_release(engine);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static const opt_t options[] = {
    CLI_ENGINE_OPTIONS,
    {"--output", 'o', OPT_STRING, offsetof(args_t, save), "FILE", "the plan file to write", false},
    CLI_MEMORY_OPTION,
    {0}};

const verb_t assay_verb_build = {
    .name = "build",
    .summary = "compile a model into a plan file",
    .usage = "MODEL --output PLAN [options]",
    .examples =
        "  assay build model.onnx -o model.plan --precision bf16 --batch 8\n"
        "  assay bench model.plan\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
