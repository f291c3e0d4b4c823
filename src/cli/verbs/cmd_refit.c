// assay refit: new weights in a built plan.
#include <string.h>

#include "base/clock.h"
#include "base/shown.h"
#include "cli/cli.h"
#include "data/tensor_files.h"
#include "onnx/load.h"
#include "runtime/engine.h"

typedef struct args {
  const char *plan, *weights, *save;
  opt_list_t ops;
  bool allow_hard_links;
  int64_t memory_limit;
  double timeout;
} args_t;

static assay_status_t refit_arrays(const args_t* a, const assay_engine_t* engine,
                                   assay_refit_t* reported, assay_engine_t** out) {
  const assay_tensor_request_t request = {.path = a->weights};
  assay_saved_t saved = {0};
  assay_set_t set = {0};
  ASSAY_TRY(assay_tensor_file_read(&request, &saved));
  assay_status_t st = assay_saved_join(&saved, &set);
  assay_saved_deinit(&saved);
  if (!st)
    st = assay_engine_refit_with(engine, NULL, set.n, (const char* const*)set.names, set.tensors,
                                 reported, out);
  assay_set_deinit(&set);
  return st;
}

static assay_status_t refit(const args_t* a, const assay_engine_t* engine, assay_refit_t* reported,
                            assay_engine_t** out) {
  assay_model_t* weights = NULL;
  if (assay_ends_with(a->weights, ".npz") || assay_ends_with(a->weights, ".safetensors"))
    return assay_status_note(refit_arrays(a, engine, reported, out), "'%s'", a->weights);
  ASSAY_TRY(assay_onnx_load(a->weights, 0, NULL, &weights));
  assay_status_t st = assay_engine_refit_with(engine, weights, 0, NULL, NULL, reported, out);
  assay_model_release(weights);
  return assay_status_note(st, "'%s'", a->weights);
}

static void report(const char* save, const assay_refit_t* reported, double seconds) {
  assay_print(stdout, "refitted %s: ", save);
  if (reported->n_filled) printf("%zu missing weights put in, ", reported->n_filled);
  printf("%zu of %zu weights changed, in %.2f s\n", reported->n_changed, reported->n_weights,
         seconds);
}

static int run(void* p) {
  const args_t* a = p;
  const char* save = a->save ? a->save : a->plan;
  assay_engine_t *engine = NULL, *fitted = NULL;
  assay_refit_t reported = {0};
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  if (!a->weights)
    return assay_cli_usage("refit", "say where the weights come from: --weights MODEL.onnx");
  const double start = assay_clock_seconds();
  assay_status_t st = assay_engine_load(a->plan, &engine);
  if (!st) st = refit(a, engine, &reported, &fitted);
  if (st) {
    assay_engine_release(engine);
    return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  }
  st = assay_engine_save(fitted, save);
  if (!st) report(save, &reported, assay_clock_seconds() - start);
  assay_engine_release(engine);
  assay_engine_release(fitted);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static const opt_t options[] = {
    {"PLAN", 0, OPT_STRING, offsetof(args_t, plan), NULL, "the plan file (assay build)", true},
    {"--weights", 'w', OPT_STRING, offsetof(args_t, weights), "FILE",
     "the same model with other weights (.onnx), or some of its\nweights by name (.npz, "
     ".safetensors)",
     false},
    {"--output", 'o', OPT_OUT_FILE, offsetof(args_t, save), "FILE",
     "the plan file to write (default: in the place of PLAN)", false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    CLI_MEMORY_OPTION,
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_refit = {
    .name = "refit",
    .summary = "put new weights into a plan, without choosing tactics again",
    .usage = "PLAN --weights MODEL.onnx|WEIGHTS.npz [options]",
    .examples =
        "  assay refit model.plan --weights trained.onnx -o new.plan\n"
        "  assay refit model.plan --weights head.npz\n"
        "  assay refit stripped.plan --weights model.onnx -o model.plan\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
