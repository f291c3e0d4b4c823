// What verbs of the family debug share: a model, how it is run, on which samples, and what its
// outputs have to keep.
#include "cli/verbs/debug_job.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/shown.h"
#include "data/script.h"
#include "exec/targets.h"
#include "formats/format.h"
#include "passes/float_types.h"

int cli_debug_fail(assay_status_t status) {
  const assay_code_t c = assay_status_code(status);
  const bool input = c == ASSAY_INVALID_ARGUMENT || c == ASSAY_CORRUPT;
  return assay_cli_fail(status, input ? ASSAY_EXIT_INPUT : ASSAY_EXIT_FAILED);
}

static void show_progress(void* user, const char* what, double fraction) {
  (void)user;
  assay_cli_progress(what, fraction);
}

static assay_status_t parse_precision(const cli_debug_args_t* a, cli_debug_job_t* j) {
  assay_check_setting_t* o = &j->options;
  o->precision.format = ASSAY_FORMAT_FP32;
  const bool typed = assay_float_types_has_narrow(j->model);
  o->precision_name = a->precision ? a->precision : typed ? "as declared" : "fp32, as declared";
  if (a->precision && strcmp(a->precision, "int8") == 0) {
    ASSAY_TRY(assay_model_want_quantizers(j->model));
  } else if (a->precision) {
    o->precision.format = assay_format_parse(a->precision);
    if (!assay_format_info(o->precision.format)->is_float)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "unknown precision '%s'; use fp32, tf32, bf16, fp16, fp8e4m3, fp64 ...",
                         a->precision);
  }
  return a->layer_precision ? assay_precision_parse(&o->precision, a->layer_precision) : NULL;
}

static assay_status_t parse_requirements(const cli_debug_args_t* a, cli_debug_job_t* j) {
  for (size_t i = 0; i < a->require.n; i++)
    ASSAY_TRY(assay_require_parse(&j->require, a->require.items[i]));
  if (a->check && !assay_script_is_command(a->check))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check '%s': the command is given what to judge as {outputs}", a->check);
  if (a->check) ASSAY_TRY(assay_require_parse(&j->require, a->check));
  ASSAY_TRY(assay_require_resolve(&j->require, j->model->graph));
  if (!a->golden && assay_require_needs_golden(&j->require))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a requirement is about golden: give --golden");
  return NULL;
}

static assay_status_t parse(const cli_debug_args_t* a, cli_debug_job_t* j) {
  assay_plan_t* plan = NULL;
  if (a->fused && a->unfused)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fused and --unfused do not go together");
  if (a->truth && strcmp(a->truth, "unquantized") != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--truth is unquantized, not '%s'", a->truth);
  if (!j->options.backend)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown target '%s'; this build has emu and cpu",
                       a->target);
  ASSAY_TRY(cli_parse_fp32(a->fp32, &j->options.plan.fp32));
  ASSAY_TRY(parse_precision(a, j));
  ASSAY_TRY(parse_requirements(a, j));
  // Finds what is wrong with rules and passes before anything is read or run.
  ASSAY_TRY(
      assay_plan_create(j->model, &j->options.precision, &j->options.plan, j->options.seed, &plan));
  assay_plan_destroy(plan);
  return NULL;
}

static assay_status_t read_golden(const cli_debug_args_t* a, cli_debug_job_t* j) {
  const assay_graph_t* g = j->model->graph;
  assay_set_t set = {0};
  bool any = false;
  if (!a->golden) return NULL;
  assay_saved_t runs = {0};
  ASSAY_TRY(cli_read_golden(a->golden, j->model, &j->reading, &runs, &set));
  assay_status_t st = cli_golden_samples(&runs, &set, g, j->inputs.n, &j->golden);
  assay_saved_deinit(&runs);
  char near[512];
  const char* misspelt = assay_golden_misspelt(&set, g, near, sizeof near);
  assay_set_deinit(&set);
  if (st) return st;
  for (size_t i = 0; i < g->n_outputs; i++)
    any |= j->golden.n && assay_samples_get(&j->golden, 0)[i] != NULL;
  if (!any)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "'%s' has no array with the name of an output (such as '%s')%s", a->golden,
                       g->n_outputs ? g->outputs[0]->name : "", misspelt);
  if (*misspelt) assay_print(stderr, "assay: an output has no golden%s\n", misspelt);
  if (j->golden.n != j->inputs.n && j->golden.n != 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' holds %zu samples, the inputs %zu", a->golden,
                       j->golden.n, j->inputs.n);
  return NULL;
}

// The first file that has a name tells.
static assay_status_t add_known(const char* path, cli_debug_job_t* j) {
  assay_set_t set = {0};
  assay_saved_t runs = {0};
  if (!path) return NULL;
  ASSAY_TRY(cli_read_golden(path, j->model, &j->reading, &runs, &set));
  assay_saved_deinit(&runs);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < set.n; i++)
    if (!assay_set_find(&j->known, set.names[i]))
      st = assay_set_add(&j->known, set.names[i], assay_tensor_retain(set.tensors[i]));
  assay_set_deinit(&set);
  return st;
}

static assay_status_t read_files(const cli_debug_args_t* a, cli_debug_job_t* j) {
  if (a->drawn && !a->inputs.n) {
    ASSAY_TRY(cli_shapes_report_ones(j->model, ""));
    ASSAY_TRY(assay_samples_generate(j->model, (uint64_t)a->seed, &j->inputs));
  } else {
    ASSAY_TRY(cli_samples(&a->inputs, j->model, &j->reading, (uint64_t)a->seed, &j->inputs));
  }
  ASSAY_TRY(read_golden(a, j));
  for (size_t i = 0; i < sizeof a->known / sizeof *a->known; i++)
    ASSAY_TRY(add_known(a->known[i], j));
  return NULL;
}

static assay_status_t open_all(const cli_debug_args_t* a, cli_debug_job_t* j, int* out_exit) {
  *out_exit = ASSAY_EXIT_USAGE;
  ASSAY_TRY(cli_reading_begin(&a->reading, &j->reading));
  ASSAY_TRY(cli_shapes_parse(&a->shape, &j->shapes));
  *out_exit = ASSAY_EXIT_INPUT;
  ASSAY_TRY(cli_shapes_load(a->model, false, &j->shapes, &j->model));
  *out_exit = ASSAY_EXIT_USAGE;
  const assay_backend_t* backend;
  ASSAY_TRY(assay_target_find(a->target, ASSAY_TARGET_INSPECT, &backend));
  const bool fused = a->fused || (!a->unfused && !backend->emulates);
  j->options = (assay_check_setting_t){.backend = backend,
                                       .unquantized = a->truth != NULL,
                                       .require = &j->require,
                                       .seed = (uint64_t)a->seed,
                                       .plan = cli_plan_options(fused, &a->no_pass),
                                       .progress = show_progress};
  j->options.plan.inject = a->inject;
  ASSAY_TRY(parse(a, j));
  *out_exit = ASSAY_EXIT_INPUT;
  return cli_reading_end(&a->reading, &j->reading, read_files(a, j));
}

assay_status_t cli_debug_print(const cli_debug_report_t* r, const void* found,
                               const assay_report_debug_t* names, const char* path) {
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = NULL;
  if (!assay_cli_json_to_stdout(path)) {
    st = r->text(found, names, &text);
    if (!st) fputs(assay_str_get(&text), stdout);
    assay_str_deinit(&text);
  }
  if (st || !path) return st;
  ASSAY_TRY(r->json(found, names, &json));
  st = assay_cli_write_json(path, json);
  json_decref(json);
  return st;
}

const char* cli_debug_exec_conflict(const cli_debug_args_t* a) {
  if (a->exec && (a->target || a->fused || a->unfused || a->inject))
    return "--exec is an engine of its own: --target, --fused and --inject do not go with it";
  if (!a->exec && a->exec_seconds != 0) return "--exec-timeout is for --exec";
  if (!(a->exec_seconds >= 0)) return "--exec-timeout is a number of seconds";
  if (a->exec && !(strstr(a->exec, "{inputs}") && strstr(a->exec, "{outputs}")))
    return "--exec needs {inputs} and {outputs}: the files that the command is to read and to "
           "write";
  return NULL;
}

assay_external_engine_command_t cli_debug_exec(const cli_debug_args_t* a) {
  return (assay_external_engine_command_t){.command = a->exec,
                                           .model = a->model,
                                           .precision = a->precision ? a->precision : "fp32",
                                           .seconds = a->exec_seconds > 0 ? a->exec_seconds : 600};
}

bool cli_debug_open(const cli_debug_args_t* a, cli_debug_job_t* j, int* out_exit) {
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  assay_status_t st = open_all(a, j, out_exit);
  if (!st) return true;
  *out_exit = assay_cli_fail(st, *out_exit);
  return false;
}

void cli_debug_close(cli_debug_job_t* j) {
  assay_precision_deinit(&j->options.precision);
  assay_samples_deinit(&j->inputs);
  assay_samples_deinit(&j->golden);
  assay_set_deinit(&j->known);
  assay_requirements_deinit(&j->require);
  cli_shapes_free(&j->shapes);
  cli_reading_deinit(&j->reading);
  assay_model_release(j->model);
}
