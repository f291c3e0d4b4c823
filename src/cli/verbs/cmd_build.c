// assay build: compiles a model into a plan file.
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/shell.h"
#include "base/shown.h"
#include "cli/risks.h"
#include "cli/verbs/engine_source.h"
#include "formats/format.h"

typedef struct args {
  cli_engine_args_t engine;
  const char *save, *timing_cache;
  opt_list_t ops;
  bool allow_hard_links;
  int64_t memory_limit;
  bool strict;
  double timeout;
} args_t;

typedef struct tried {
  size_t emulated;  // layers
  size_t bytes;     // that a run takes besides weights
} tried_t;

typedef struct job {
  const args_t* args;
  tried_t tried;
} job_t;

static assay_status_t tried(void* p, const assay_engine_t* engine, const assay_executor_t* e) {
  job_t* j = p;
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  j->tried = (tried_t){.bytes = assay_executor_planned_bytes(e)};
  for (size_t i = 0; i < layers->n_layers; i++)
    j->tried.emulated += assay_tactic_is_emulated(assay_executor_tactic(e, i));
  return j->args->strict ? assay_engine_check_strict(engine, e) : NULL;
}

// The command that puts the weights of a stripped plan in.
static void print_refit(const args_t* a) {
  assay_str_t words = {0};
  assay_shell_word(&words, a->save);
  assay_str_append(&words, " --weights ");
  assay_shell_word(&words, a->engine.model);
  assay_print(stdout, "its weights are left out: assay refit %s\n", assay_str_get(&words));
  assay_str_deinit(&words);
}

static void report(const args_t* a, const assay_engine_t* engine, const tried_t* tried,
                   double seconds) {
  const assay_layers_t* l = assay_plan_layers(assay_engine_plan(engine));
  struct stat info = {0};
  stat(a->save, &info);
  assay_print(stdout, "built %s: %zu layers, %s, in %.2f s\n", a->save, l->n_layers,
              ASSAY_BYTES_TEXT((uint64_t)info.st_size), seconds);
  assay_print(stdout, "activation memory: %s", ASSAY_BYTES_TEXT(tried->bytes));
  if (tried->emulated)
    printf("; %zu layers have no kernel and are emulated, slowly", tried->emulated);
  putchar('\n');
  if (a->engine.strip_weights) print_refit(a);
}

static int run(void* p) {
  const args_t* a = p;
  assay_engine_t* engine = NULL;
  job_t j = {.args = a};
  int code;
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  if (!a->save) return assay_cli_usage("build", "say where the plan goes: --output FILE");
  if (assay_engine_is_plan_file(a->engine.model))
    return assay_cli_usage("build", "'%s' is a plan already; give the model", a->engine.model);
  const double start = assay_clock_seconds();
  const cli_build_t build = {.timing_cache = a->timing_cache, .tried = tried, .user = &j};
  assay_status_t st = cli_engine_build(&a->engine, &build, &engine, &code);
  if (st) return assay_cli_fail(st, code);
  cli_warn_of_constants(engine, cli_warn_stderr);
  st = assay_engine_save(engine, a->save);
  if (!st) report(a, engine, &j.tried, assay_clock_seconds() - start);
  assay_engine_release(engine);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static const opt_t options[] = {
    CLI_ENGINE_OPTIONS,
    {"--output", 'o', OPT_OUT_FILE, offsetof(args_t, save), "FILE", "the plan file to write",
     false},
    {"--profile", 0, OPT_LIST, offsetof(args_t, engine.profiles), "NAME=MIN:OPT:MAX",
     "shapes of an input that the plan is for: x=1x80:4x80:8x80; values of\none that holds a "
     "shape: "
     "s=[1,80]:[4,80]:[8,80]. An input given again\nbelongs to the plan's next profile",
     false},
    {"--max-scratch", 0, OPT_BYTES, offsetof(args_t, engine.max_scratch), "SIZE",
     "skip kernels that need more workspace, such as 16M, where others\ntake the layer", false},
    {"--timing-cache", 0, OPT_OUT_CACHE, offsetof(args_t, timing_cache), "FILE",
     "read how fast kernels are, and add what is measured: builds with\nthe same times are the "
     "same, byte for byte",
     false},
    {"--strip-weights", 0, OPT_FLAG, offsetof(args_t, engine.strip_weights), NULL,
     "leave the elements of weights out of the plan; 'assay refit' puts\nthem in from the model",
     false},
    {"--refittable", 0, OPT_FLAG, offsetof(args_t, engine.refittable), NULL,
     "with --strip-weights: other weights may be put in, too (plans that\nhave their weights "
     "always "
     "take others)",
     false},
    {"--strict", 0, OPT_FLAG, offsetof(args_t, strict), NULL,
     "fail where a layer would not run in the format asked for", false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    CLI_MEMORY_OPTION,
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_build = {
    .name = "build",
    .summary = "compile a model into a plan file",
    .usage = "MODEL --output PLAN [options]",
    .examples =
        "  assay build model.onnx -o model.plan --precision bf16 --batch 8\n"
        "  assay build model.onnx -o model.plan --profile "
        "image=1x3x224x224:4x3x224x224:8x3x224x224\n"
        "  assay build model.onnx -o model.plan --strip-weights\n"
        "  assay bench model.plan\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
