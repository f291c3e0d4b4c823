// What verbs of the family debug share that are clients of the library: the model, how it is run,
// inputs and golden.
#include "cli/verbs/debug_client.h"

#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"

int cli_debug_fail(assay_status_t status) {
  const assay_code_t c = assay_status_code(status);
  const bool input = c == ASSAY_INVALID_ARGUMENT || c == ASSAY_CORRUPT;
  return assay_cli_fail(status, input ? ASSAY_EXIT_INPUT : ASSAY_EXIT_FAILED);
}

static assay_status_t create_with(const cli_debug_args_t* a, const char* const* requirements,
                                  size_t n_requirements, cli_debug_client_t* c) {
  assay_debug_options_t o = ASSAY_DEBUG_OPTIONS_INIT;
  ASSAY_TRY(cli_client_fp32(a->fp32, &o.fp32));
  ASSAY_TRY(cli_client_precision(a->precision, &o.precision));
  o.layer_precision = a->layer_precision;
  o.target = a->target;
  o.fusion = a->fused ? ASSAY_FUSION_ON : a->unfused ? ASSAY_FUSION_OFF : ASSAY_FUSION_TARGET;
  // Without some passes the plan is a fused one.
  if (a->unfused && a->no_pass.n) o.fusion = ASSAY_FUSION_ON;
  o.passes_off = a->no_pass.items;
  o.n_passes_off = a->no_pass.n;
  o.requirements = requirements;
  o.n_requirements = n_requirements;
  o.unquantized = a->truth != NULL;
  o.seed = (uint64_t)a->seed;
  o.inject = a->inject;
  o.progress = cli_client_progress;
  ASSAY_TRY(assay_debug_create(c->model, &o, &c->debug));
  if (a->golden.n || !assay_debug_needs_golden(c->debug)) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a requirement is about golden: give --golden");
}

// A command of --check is one more requirement.
static assay_status_t create(const cli_debug_args_t* a, cli_debug_client_t* c) {
  const char** all = NULL;
  size_t n = a->require.n;
  if (a->fused && a->unfused)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fused and --unfused do not go together");
  if (a->truth && strcmp(a->truth, "unquantized") != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--truth is unquantized, not '%s'", a->truth);
  if (a->check && !strstr(a->check, "{outputs}"))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check '%s': the command is given what to judge as {outputs}", a->check);
  ASSAY_TRY(assay_new_array(n + 1, sizeof *all, &all));
  for (size_t i = 0; i < n; i++) all[i] = a->require.items[i];
  if (a->check) all[n++] = a->check;
  assay_status_t st = create_with(a, all, n, c);
  assay_free(all);
  return st;
}

static assay_status_t read_files(const cli_debug_args_t* a, cli_debug_client_t* c) {
  assay_golden_options_t o = ASSAY_GOLDEN_OPTIONS_INIT;
  const assay_samples_options_t reading = cli_client_reading(&c->client);
  ASSAY_TRY(cli_client_inputs(&c->client, &a->inputs, c->model, (uint64_t)a->seed, &c->inputs));
  o.reading = &reading;
  if (a->golden.n)
    ASSAY_TRY(assay_golden_load_files(c->model, a->golden.n, a->golden.items,
                                      assay_samples_count(c->inputs), &o, &c->golden));
  if (a->inner) ASSAY_TRY(assay_golden_add_intermediates(c->model, a->inner, &o, &c->golden));
  for (size_t i = 0; c->golden && i < reading.n_dtypes; i++)
    c->client.met[i] |= assay_golden_dtype_used(c->golden, i);
  return NULL;
}

static assay_status_t open_all(const cli_debug_args_t* a, cli_debug_client_t* c, int* out_exit) {
  *out_exit = ASSAY_EXIT_USAGE;
  ASSAY_TRY(cli_client_begin(&a->reading, &a->shape, &c->client));
  *out_exit = ASSAY_EXIT_INPUT;
  ASSAY_TRY(cli_client_model(&c->client, a->model, false, &c->model));
  *out_exit = ASSAY_EXIT_USAGE;
  ASSAY_TRY(cli_client_want_target(a->target));
  ASSAY_TRY(create(a, c));
  *out_exit = ASSAY_EXIT_INPUT;
  return cli_client_read(&c->client, read_files(a, c));
}

bool cli_debug_client_open(const cli_debug_args_t* a, cli_debug_client_t* c, int* out_exit) {
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  assay_status_t st = open_all(a, c, out_exit);
  if (!st) return true;
  *out_exit = assay_cli_fail(st, *out_exit);
  return false;
}

void cli_debug_client_tell_notes(const cli_debug_client_t* c) {
  if (c->golden) fputs(assay_golden_notes(c->golden), stderr);
}

const char* cli_debug_client_exec_conflict(const cli_debug_args_t* a) {
  if (a->exec && (a->target || a->fused || a->unfused || a->inject))
    return "--exec is an engine of its own: --target, --fused and --inject do not go with it";
  if (!a->exec && a->exec_seconds != 0) return "--exec-timeout is for --exec";
  if (!(a->exec_seconds >= 0)) return "--exec-timeout is a number of seconds";
  if (a->exec && !(strstr(a->exec, "{inputs}") && strstr(a->exec, "{outputs}")))
    return "--exec needs {inputs} and {outputs}: the files that the command is to read and to "
           "write";
  return NULL;
}

void cli_debug_client_close(cli_debug_client_t* c) {
  assay_golden_destroy(c->golden);
  assay_samples_destroy(c->inputs);
  assay_debug_release(c->debug);
  assay_model_release(c->model);
  cli_client_end(&c->client);
}
