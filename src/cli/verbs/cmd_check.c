// assay check: the main job.
#include <libgen.h>
#include <string.h>

#include "account/engine.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/shown.h"
#include "certify/certify.h"
#include "check/check.h"
#include "check/mixed_model.h"
#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "cli/timeout.h"
#include "cli/verbs/reading.h"
#include "cli/verbs/reference.h"
#include "diagnose/chain.h"
#include "diagnose/golden_content.h"
#include "exec/targets.h"
#include "formats/format.h"
#include "onnx/onnx.h"
#include "passes/float_types.h"
#include "report/report.h"

typedef struct args {
  const char *model, *precision, *accumulate, *layer_precision, *target, *golden, *reference, *json,
      *truth;
  const char *output_folder, *golden_intermediates, *name_map, *exec, *engine_outputs, *inject,
      *fp32;
  const char *report, *annotate;
  opt_list_t inputs, no_pass, require, ops;
  bool allow_hard_links;
  double search_seconds, exec_timeout;
  bool shares;
  int64_t seed, memory_limit;
  bool no_fix, fused, unfused, annotate_names;
  cli_reading_args_t reading;
  cli_shape_args_t shape;
  double timeout;
} args_t;

// Everything that a check holds on to, freed together.
typedef struct job {
  const args_t* args;
  assay_model_t* model;
  assay_samples_t inputs, golden;
  assay_requirements_t require;
  assay_samples_t whole;   // the batch that inputs were cut from, since it does not run
  assay_set_t golden_set;  // outputs and inner values as they were read
  assay_golden_t golden_values;
  assay_export_t repaired;  // golden against the repaired model
  size_t n_repairs;
  cli_shapes_t shapes;
  assay_tensor_reading_t reading;
  assay_pictures_t pictures;  // for the page
  assay_check_options_t options;
  assay_external_engine_t* engine;  // not ours; NULL: a backend
  assay_name_map_t engine_names;
  assay_check_t* check;
  char* files[3];
  size_t n_files;
  assay_str_t to_write;      // the command that writes those, where no folder is given
  assay_status_t unwritten;  // why files could not be written; the report goes before it
} job_t;

static void job_deinit(job_t* j) {
  assay_check_destroy(j->check);
  assay_external_engine_destroy(j->engine);
  assay_name_map_deinit(&j->engine_names);
  assay_precision_deinit(&j->options.precision);
  assay_samples_deinit(&j->inputs);
  assay_samples_deinit(&j->golden);
  assay_samples_deinit(&j->whole);
  assay_requirements_deinit(&j->require);
  assay_golden_deinit(&j->golden_values);
  assay_export_deinit(&j->repaired);
  assay_set_deinit(&j->golden_set);
  assay_pictures_deinit(&j->pictures);
  cli_shapes_free(&j->shapes);
  cli_reading_deinit(&j->reading);
  assay_model_release(j->model);
  for (size_t i = 0; i < j->n_files; i++) assay_free(j->files[i]);
  assay_str_deinit(&j->to_write);
  assay_status_free(j->unwritten);
}

static void show_progress(void* user, const char* what, double fraction) {
  (void)user;
  assay_cli_progress(what, fraction);
}

static assay_status_t parse_precision(const args_t* a, const assay_model_t* m,
                                      assay_check_options_t* o) {
  o->precision.format = ASSAY_FORMAT_FP32;
  o->precision_name = a->precision ? a->precision : "as declared";
  if (a->precision && strcmp(a->precision, "int8") == 0) {
    ASSAY_TRY(assay_model_want_quantizers(m));
  } else if (a->precision) {
    o->precision.format = assay_format_parse(a->precision);
    if (!assay_format_info(o->precision.format)->is_float)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "unknown precision '%s'; use fp32, tf32, bf16, fp16, fp8e4m3, fp64 ...",
                         a->precision);
  }
  if (a->accumulate) {
    o->precision.accumulator = assay_format_parse(a->accumulate);
    if (!assay_format_info(o->precision.accumulator)->is_float)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown accumulator '%s'; use fp32 or fp16",
                         a->accumulate);
  }
  return a->layer_precision ? assay_precision_parse(&o->precision, a->layer_precision) : NULL;
}

// Where golden is from; NULL: there is none.
static const char* golden_name(const args_t* a) { return a->reference ? a->reference : a->golden; }

static assay_status_t run_reference(const args_t* a, const job_t* j, assay_saved_t* out_runs,
                                    assay_set_t* out_set) {
  assay_str_t notes = {0};
  assay_cli_progress("running the reference", 0);
  assay_status_t st =
      cli_reference_run(a->reference, j->model, &j->inputs, (uint64_t)a->seed, &notes, out_runs);
  assay_cli_progress("", 1);
  fputs(assay_str_get(&notes), stderr);
  assay_str_deinit(&notes);
  if (st) return st;
  return cli_join_golden(out_runs, out_set);
}

static assay_status_t read_golden(const args_t* a, job_t* j) {
  assay_set_t set = {0};
  if (!golden_name(a)) return NULL;
  assay_saved_t runs = {0};
  assay_status_t st = a->reference ? run_reference(a, j, &runs, &set)
                                   : cli_read_golden(a->golden, j->model, &j->reading, &runs, &set);
  if (st) return assay_saved_deinit(&runs), st;
  const assay_graph_t* g = j->model->graph;
  if (!st) st = cli_golden_samples(&runs, &set, g, j->inputs.n, &j->golden);
  assay_saved_deinit(&runs);
  bool any = false;
  if (st && assay_status_code(st) == ASSAY_INVALID_ARGUMENT) {
    // Another shape than the model gives may be what is wrong with the model.
    assay_print(stderr, "assay: golden %s; it is held against truth as it is\n",
                assay_status_message(st));
    assay_status_free(st);
    st = NULL;
    any = true;
    assay_samples_deinit(&j->golden);
  }
  for (size_t i = 0; !st && i < g->n_outputs; i++)
    any |= j->golden.n && assay_samples_get(&j->golden, 0)[i] != NULL;
  if (!st && !any) assay_samples_deinit(&j->golden);  // names may still be told by the contents
  if (!st && j->golden.n && j->golden.n != j->inputs.n && j->golden.n != 1)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' holds %zu samples, the inputs %zu",
                     golden_name(a), j->golden.n, j->inputs.n);
  if (!st) {
    j->golden_set = set;
    return NULL;
  }
  assay_set_deinit(&set);
  return st;
}

// Adds inner values to what is known, and finds the model's value of each.
static assay_status_t match_golden(const args_t* a, const assay_model_t* m, job_t* j,
                                   assay_golden_t* out) {
  assay_name_map_t map = {0};
  assay_status_t st = a->name_map ? assay_name_map_read(a->name_map, &map) : NULL;
  if (!st) st = assay_golden_match(&j->golden_set, m, a->name_map ? &map : NULL, out);
  assay_name_map_deinit(&map);
  // In a repaired model what was found by its contents has the same name.
  for (size_t i = 0; !st && i < j->golden_values.n && i < out->n; i++) {
    const assay_golden_tensor_t* g = &j->golden_values.at[i];
    if (g->match != ASSAY_GOLDEN_BY_CONTENT) continue;
    out->at[i].value = assay_graph_find(m->graph, g->value->name);
    out->at[i].match = g->match;
  }
  return st;
}

// What no name told. Without an output there is nothing to hold the model against.
static assay_status_t match_contents(const args_t* a, job_t* j) {
  const assay_graph_t* g = j->model->graph;
  assay_golden_t found = {0};
  const assay_content_options_t options = {
      .unquantized = j->options.unquantized || assay_model_quantizes(j->model),
      .seed = j->options.seed};
  ASSAY_TRY(match_golden(a, j->model, j, &found));
  assay_status_t st = NULL;
  if (j->inputs.n)
    st = assay_golden_match_content(&found, j->model, assay_samples_get(&j->inputs, 0), &options);
  if (st) return assay_golden_deinit(&found), st;
  j->golden_values = found;
  bool any = false;
  for (size_t i = 0; i < found.n; i++)
    any |= found.at[i].value && (!golden_name(a) || found.at[i].value->is_output);
  if (any) return fputs(assay_str_get(&j->golden_values.notes), stderr), NULL;
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "'%s' has no array with the name of %s (such as '%s'), and none with the elements of one%s; "
      "--name-map tells which is which",
      golden_name(a) ? golden_name(a) : a->golden_intermediates,
      golden_name(a) ? "an output" : "a value", g->n_outputs ? g->outputs[0]->name : "",
      CLI_MISSPELT_TEXT(&j->golden_set, g));
}

static assay_status_t read_intermediates(const args_t* a, job_t* j) {
  if (a->golden_intermediates) {
    assay_saved_t runs = {0};
    assay_set_t inner = {0};
    assay_status_t st =
        cli_read_golden(a->golden_intermediates, j->model, &j->reading, &runs, &inner);
    assay_saved_deinit(&runs);
    for (size_t i = 0; !st && i < inner.n; i++)
      if (!assay_set_find(&j->golden_set, inner.names[i]))
        st = assay_set_add(&j->golden_set, inner.names[i], assay_tensor_retain(inner.tensors[i]));
    assay_set_deinit(&inner);
    if (st) return st;
  }
  if (!j->golden_set.n) return NULL;
  ASSAY_TRY(match_contents(a, j));
  if (!j->golden.n) ASSAY_TRY(assay_golden_outputs(&j->golden_values, j->model->graph, &j->golden));
  j->options.golden = &j->golden_values;
  return NULL;
}

// ---- engines that are not ours ------------------------------------------------------------------

static const char* target_name(const args_t* a, const job_t* j) {
  return a->exec ? a->exec : a->engine_outputs ? a->engine_outputs : j->options.backend->name;
}

// Says what does not go together; NULL: nothing.
static const char* engine_conflict(const args_t* a) {
  if (!a->exec && !a->engine_outputs)
    return a->exec_timeout != 0 ? "--exec-timeout is for --exec" : NULL;
  if (a->exec && a->engine_outputs)
    return "--exec runs an engine, --engine-outputs reads what one gave: not both";
  if (a->target)
    return "--target is for Assay's own engines, --exec and --engine-outputs are for others";
  if (a->fused || a->unfused || a->no_pass.n)
    return "--fused, --unfused and --no-pass are about Assay's own plan; the layers of other "
           "engines follow from their "
           "outputs";
  if (!(a->exec_timeout >= 0)) return "--exec-timeout is a number of seconds";
  return NULL;
}

// Runs the engine, or reads what it gave, so far that its layers can be told.
static assay_status_t start_engine(const args_t* a, job_t* j) {
  const assay_external_engine_command_t how = {
      .command = a->exec,
      .model = a->model,
      .precision = a->precision ? a->precision : "fp32",
      .seconds = a->exec_timeout > 0 ? a->exec_timeout : 600};
  if (a->name_map) ASSAY_TRY(assay_name_map_read(a->name_map, &j->engine_names));
  assay_cli_progress("running the engine", 0);
  assay_status_t st =
      a->exec ? assay_external_engine_run(j->model, &how, &j->inputs, &j->engine_names, &j->engine)
              : assay_external_engine_read(j->model, a->engine_outputs, &j->reading, j->inputs.n,
                                           &j->engine_names, &j->engine);
  assay_cli_progress("", 1);
  if (st) return st;
  fputs(assay_external_engine_notes(j->engine), stderr);
  j->options.backend = &assay_backend_recorded;
  j->options.plan.recorded = assay_external_engine_recorded(j->engine);
  return NULL;
}

// All that is files of tensors: inputs, golden, what another engine gave.
static assay_status_t read_files(const args_t* a, job_t* j) {
  ASSAY_TRY(cli_samples(&a->inputs, j->model, &j->reading, (uint64_t)a->seed, &j->inputs));
  ASSAY_TRY(read_golden(a, j));
  ASSAY_TRY(read_intermediates(a, j));
  return a->engine_outputs ? start_engine(a, j) : NULL;
}

// ---- the fix's files ----------------------------------------------------------------------------

// FOLDER/STEM + end, in memory of its own.
static assay_status_t beside(const args_t* a, const char* end, char** out) {
  const char* slash = strrchr(a->model, '/');
  const char* base = slash ? slash + 1 : a->model;
  const char* dot = strrchr(base, '.');
  int stem = (int)(dot && dot != base ? (size_t)(dot - base) : strlen(base));
  assay_str_t s = {0};
  assay_str_printf_raw(&s, "%s/%.*s%s", a->output_folder, stem, base, end);
  if (s.failed) return assay_str_deinit(&s), assay_status_no_memory();
  *out = s.text;
  return NULL;
}

static assay_status_t write_mixed(const job_t* j, const void* unused, const char* path) {
  assay_model_t* mixed = NULL;
  (void)unused;
  ASSAY_TRY(assay_mixed_model_of_fix(j->check, &mixed));
  assay_status_t st = assay_onnx_write(mixed, path, NULL);
  assay_model_release(mixed);
  return st;
}

static assay_status_t write_options(const job_t* j, const void* unused, const char* path) {
  assay_str_t s = {0};
  (void)unused;
  assay_report_fix_file(&j->check->fix, &s);
  assay_status_t st = assay_str_status(&s);
  if (!st) st = assay_file_write(path, assay_str_get(&s), s.len);
  assay_str_deinit(&s);
  return st;
}

static assay_status_t write_model(const job_t* j, const void* model, const char* path) {
  (void)j;
  return assay_onnx_write(model, path, NULL);
}

// Writes a file of the fix, if a folder was given for them. A file that cannot be written takes
// nothing from the report: it names what there is, and the failure is told behind it.
static assay_status_t add_file(const args_t* a, job_t* j, const char* end,
                               assay_status_t (*write)(const job_t*, const void*, const char*),
                               const void* what) {
  char* path = NULL;
  if (!a->output_folder) return NULL;
  ASSAY_TRY(beside(a, end, &path));
  assay_status_t st = write(j, what, path);
  if (!st) return j->files[j->n_files++] = path, NULL;
  assay_free(path);
  j->unwritten = assay_status_join(j->unwritten, st);
  return NULL;
}

// Makes the repairs in the model as it is in its file, holds the result against golden, and writes
// it.
static assay_status_t repair(const args_t* a, job_t* j, assay_model_t* raw) {
  assay_model_t* prepared = NULL;
  assay_golden_t golden = {0};
  const assay_export_options_t options = {
      .unquantized = j->options.unquantized || assay_model_quantizes(raw),
      .seed = j->options.seed,
      .no_search = true};
  ASSAY_TRY(assay_chain_repair(&j->check->export, raw, &j->n_repairs));
  if (!j->n_repairs) return NULL;
  assay_status_t st = assay_onnx_prepare(raw, j->shapes.n, j->shapes.shapes, &prepared);
  if (!st) st = match_golden(a, prepared, j, &golden);
  if (!st)
    st = assay_chain_run(prepared, j->options.whole_batch ? &j->whole : &j->inputs, &golden,
                         &options, &j->repaired);
  if (!st) st = add_file(a, j, ".repaired.onnx", write_model, raw);
  assay_golden_deinit(&golden);
  assay_model_release(prepared);
  return st;
}

static assay_status_t hand_over_repair(const args_t* a, job_t* j) {
  assay_model_t* raw = NULL;
  if (j->check->blame != ASSAY_BLAME_EXPORT) return NULL;
  ASSAY_TRY(assay_onnx_read(a->model, &raw));
  assay_status_t st = repair(a, j, raw);
  assay_model_release(raw);
  return st;
}

// Whether the layers below fp32 are ones that a model can be written with, by --precision or as it
// declares.
static bool has_16_bit_layers(const assay_check_t* c) {
  const assay_format_t f = c->options.precision.format;
  if (f != ASSAY_FORMAT_FP32) return f == ASSAY_FORMAT_FP16 || f == ASSAY_FORMAT_BF16;
  return assay_float_types_has_narrow(c->model);
}

static assay_status_t hand_over_fix(const args_t* a, job_t* j) {
  if (!j->check->has_fix || !j->check->fix.n_nodes) return NULL;
  if (has_16_bit_layers(j->check)) ASSAY_TRY(add_file(a, j, ".fixed.onnx", write_mixed, NULL));
  return add_file(a, j, ".fix.txt", write_options, NULL);
}

// Without a folder nothing is written: the report says how to get the files.
static assay_status_t hand_over(const args_t* a, job_t* j) {
  ASSAY_TRY(hand_over_repair(a, j));
  ASSAY_TRY(hand_over_fix(a, j));
  if (a->output_folder) return NULL;
  assay_cli_command_with("-o fix", &j->to_write);
  return assay_str_status(&j->to_write);
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t write_page(const args_t* a, const job_t* j,
                                 const assay_report_names_t* names) {
  assay_str_t page = {0};
  if (!a->report) return NULL;
  assay_status_t st = assay_report_html(j->check, names, &j->pictures, &page);
  if (!st) st = assay_file_write(a->report, assay_str_get(&page), page.len);
  assay_str_deinit(&page);
  return st;
}

static assay_status_t write_annotated(const args_t* a, const job_t* j,
                                      const assay_report_names_t* names) {
  assay_model_t* raw = NULL;
  assay_report_notes_t notes = {
      .pictures = &j->pictures, .page = a->report, .mark_names = a->annotate_names};
  assay_str_t command = {0};
  if (!a->annotate) return NULL;
  assay_cli_command(&command);
  notes.command = assay_str_get(&command);
  assay_status_t st = assay_str_status(&command);
  if (!st) st = assay_certificate_inputs(&j->inputs, &notes.inputs);
  if (!st) st = assay_onnx_read(a->model, &raw);
  if (!st) st = assay_report_annotate(j->check, names, &notes, raw);
  if (!st) st = assay_onnx_write(raw, a->annotate, NULL);
  assay_model_release(raw);
  assay_str_deinit(&command);
  return st;
}

static assay_status_t write_text(const job_t* j, const assay_report_names_t* names) {
  assay_str_t text = {0};
  assay_status_t st = assay_report_text(j->check, names, &text);
  fputs(assay_str_get(&text), stdout);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t write_json(const args_t* a, const job_t* j,
                                 const assay_report_names_t* names) {
  json_t* json = NULL;
  if (!a->json) return NULL;
  ASSAY_TRY(assay_report_json(j->check, names, &json));
  assay_status_t st = assay_cli_write_json(a->json, json);
  json_decref(json);
  return st;
}

static assay_report_names_t names_of(const args_t* a, const job_t* j) {
  return (assay_report_names_t){.model = a->model,
                                .target = target_name(a, j),
                                .precision = j->options.precision_name,
                                .files = (const char* const*)j->files,
                                .n_files = j->n_files,
                                .to_write = j->to_write.len ? assay_str_get(&j->to_write) : NULL,
                                .golden = golden_name(a),
                                .inputs = a->inputs.items,
                                .n_inputs = a->inputs.n,
                                .repairs = j->n_repairs,
                                .repairs_hold = j->n_repairs && !j->repaired.n};
}

// Keeps the verdict for the case that the time is over before there is a fix.
static void keep_verdict(void* user, const assay_check_t* check) {
  const job_t* j = user;
  const assay_report_names_t names = names_of(j->args, j);
  assay_str_t text = {0};
  if (!cli_timeout_runs() || assay_cli_json_to_stdout(j->args->json)) return;
  assay_status_t st = assay_report_text(check, &names, &text);
  if (!st) cli_timeout_found(assay_str_get(&text));
  assay_status_free(st);  // the report at the end says it
  assay_str_deinit(&text);
}

static assay_status_t tell(const args_t* a, const job_t* j) {
  const assay_report_names_t names = names_of(a, j);
  cli_timeout_found(NULL);
  // What goes to the standard output comes first: no file that cannot be written takes the verdict
  // along.
  const bool json_to_stdout = assay_cli_json_to_stdout(a->json);
  assay_status_t st = json_to_stdout ? write_json(a, j, &names) : write_text(j, &names);
  fflush(stdout);
  st = assay_status_join(st, write_page(a, j, &names));
  st = assay_status_join(st, write_annotated(a, j, &names));
  return json_to_stdout ? st : assay_status_join(st, write_json(a, j, &names));
}

// Finds what is wrong with the rules before anything is read or run.
static assay_status_t try_rules(const job_t* j) {
  assay_plan_t* plan = NULL;
  assay_status_t st =
      assay_plan_create(j->model, &j->options.precision, &j->options.plan, j->options.seed, &plan);
  assay_plan_destroy(plan);
  return st;
}

// A model that cannot take a whole batch may still be right row by row: says so, and runs it that
// way.
static assay_status_t run_rows(job_t* j, assay_status_t why) {
  const assay_graph_t* g = j->model->graph;
  assay_samples_t inputs = {0}, golden = {0};
  bool cut = false, golden_cut = false;
  assay_status_t st = assay_samples_cut_batch(&j->inputs, g->inputs, &inputs, &cut);
  if (!st && cut && j->golden.n)
    st = assay_samples_cut_batch(&j->golden, g->outputs, &golden, &golden_cut);
  if (st || !cut || golden_cut != (j->golden.n > 0)) {
    assay_samples_deinit(&inputs);
    assay_samples_deinit(&golden);
    assay_status_free(st);
    return why;
  }
  assay_print(stderr, "assay: a batch of %zu does not run: %s; each row is checked by itself\n",
              inputs.n, assay_status_message(why));
  j->whole = j->inputs;
  assay_samples_deinit(&j->golden);
  j->inputs = inputs;
  j->options.whole_batch = &j->whole;
  j->golden = golden;
  st = assay_check_run(j->model, &j->options, &j->inputs, j->golden.n ? &j->golden : NULL,
                       &j->check);
  if (st) return assay_status_free(st), why;
  assay_status_free(why);
  return NULL;
}

// Whether passes run. A target that a plan is built for is judged by the plan that 'build' makes;
// emu is about the model's own values, unless it is asked for a plan's.
static bool wants_fused(const args_t* a, const assay_backend_t* backend) {
  return a->fused || (!backend->emulates && !a->unfused);
}

static int run_job(args_t* a, job_t* j) {
  if (a->truth && strcmp(a->truth, "unquantized") != 0)
    return assay_cli_usage("check", "--truth is unquantized, not '%s'", a->truth);
  if (a->annotate_names && !a->annotate)
    return assay_cli_usage("check",
                           "--annotate-names marks nodes of the file that --annotate names");
  if (a->golden && a->reference)
    return assay_cli_usage(
        "check", "--golden reads outputs, --reference runs a model that gives them: not both");
  if (a->unfused && (a->fused || a->no_pass.n))
    return assay_cli_usage("check", "%s and --unfused do not go together",
                           a->fused ? "--fused" : "--no-pass");
  if (engine_conflict(a)) return assay_cli_usage("check", "%s", engine_conflict(a));
  assay_status_t st = cli_reading_begin(&a->reading, &j->reading);
  if (!st) st = cli_shapes_parse(&a->shape, &j->shapes);
  const assay_backend_t* backend = NULL;
  if (!st) st = assay_target_find(a->target, ASSAY_TARGET_LOOK, &backend);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = cli_shapes_load(a->model, false, &j->shapes, &j->model);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  j->options =
      (assay_check_options_t){.backend = backend,
                              .unquantized = a->truth && strcmp(a->truth, "unquantized") == 0,
                              .no_fix = a->no_fix,
                              .require = &j->require,
                              .shares = a->shares,
                              .pictures = a->report || a->annotate ? &j->pictures : NULL,
                              .seed = (uint64_t)a->seed,
                              .search_seconds = a->search_seconds,
                              .plan = cli_plan_options(wants_fused(a, backend), &a->no_pass),
                              .progress = show_progress,
                              .judged = keep_verdict,
                              .user = j};
  j->options.plan.inject = a->inject;
  st = cli_parse_fp32(a->fp32, &j->options.plan.fp32);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (!j->options.backend)
    return assay_cli_usage("check", "unknown target '%s'; this build has emu and cpu", a->target);
  st = parse_precision(a, j->model, &j->options);
  for (size_t i = 0; !st && i < a->require.n; i++)
    st = assay_require_parse(&j->require, a->require.items[i]);
  if (!st) st = assay_require_resolve(&j->require, j->model->graph);
  if (!st && !golden_name(a) && assay_require_needs_golden(&j->require))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "a requirement is about golden: give --golden or --reference");
  if (!st) st = try_rules(j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (a->output_folder) st = assay_folder_make(a->output_folder);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  st = cli_reading_end(&a->reading, &j->reading, read_files(a, j));
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  if (a->exec) st = start_engine(a, j);
  if (st && assay_status_code(st) == ASSAY_INVALID_ARGUMENT)
    return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  st = assay_check_run(j->model, &j->options, &j->inputs, j->golden.n ? &j->golden : NULL,
                       &j->check);
  if (st && !j->engine && assay_status_code(st) == ASSAY_INVALID_ARGUMENT) {
    // The options' precision went with the failed check.
    assay_status_t again = parse_precision(a, j->model, &j->options);
    st = again ? assay_status_join(st, again) : run_rows(j, st);
  }
  assay_cli_progress("", 1);
  if (st) {
    bool input =
        assay_status_code(st) == ASSAY_INVALID_ARGUMENT || assay_status_code(st) == ASSAY_CORRUPT;
    return assay_cli_fail(st, input ? ASSAY_EXIT_INPUT : ASSAY_EXIT_FAILED);
  }
  // The verdict is told whatever became of the files.
  st = hand_over(a, j);
  j->unwritten = assay_status_join(j->unwritten, st);
  st = assay_status_join(tell(a, j), j->unwritten);
  j->unwritten = NULL;
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return j->check->faithful ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  const args_t* a = p;
  job_t j = {.args = a};
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  int code = run_job(p, &j);
  job_deinit(&j);
  return code;
}

static const opt_t options[] = {
    {"MODEL", 0, OPT_STRING, offsetof(args_t, model), NULL, "the ONNX file", true},
    {"--precision", 0, OPT_STRING, offsetof(args_t, precision), "FORMAT",
     "format of float32 values: fp16, bf16, tf32, fp32, fp8e4m3 ...\n(default: as declared)",
     false},
    CLI_RULES_OPTIONS(layer_precision, ""),
    {"--accumulate", 0, OPT_STRING, offsetof(args_t, accumulate), "FORMAT",
     "what sums are kept in (default: fp32)", false},
    {"--inputs", 'i', OPT_LIST, offsetof(args_t, inputs), "FILE", CLI_INPUTS_HELP, false},
    {"--golden", 'g', OPT_STRING, offsetof(args_t, golden), "FILE",
     "the original framework's outputs, " CLI_LIKE_INPUTS_HELP, false},
    {"--reference", 0, OPT_STRING, offsetof(args_t, reference), "MODEL",
     "another ONNX model whose outputs on the same inputs, in float64,\nare golden", false},
    {"--golden-intermediates", 0, OPT_STRING, offsetof(args_t, golden_intermediates), "FILE",
     "the original framework's inner tensors, by ONNX name, else by\nshape and contents", false},
    {"--name-map", 0, OPT_STRING, offsetof(args_t, name_map), "FILE",
     "JSON: {\"name in the golden files\": \"name in the model\"};\nalso for what another engine "
     "gives",
     false},
    {"--search-time", 0, OPT_FLOAT, offsetof(args_t, search_seconds), "SECONDS",
     "how long to look for what an exporter did wrong (default: 40)", false},
    {"--target", 0, OPT_STRING, offsetof(args_t, target), "TARGET",
     "{look}; emu judges the formats, whatever the engine;\nothers the plan that 'build' makes by "
     "the same options, to the bit",
     false},
    {"--fp32", 0, OPT_STRING, offsetof(args_t, fp32), "SETTING", CLI_FP32_HELP, false},
    {"--exec", 0, OPT_STRING, offsetof(args_t, exec), "COMMAND",
     "check another engine: runs COMMAND for each sample, with {model}\n{inputs} {outputs} "
     "{precision} put in; "
     "npz in, npz out; any inner\nvalues in it are taps",
     false},
    {"--exec-timeout", 0, OPT_FLOAT, offsetof(args_t, exec_timeout), "SECONDS",
     "how long one run of it may take (default: 600)", false},
    {"--engine-outputs", 0, OPT_STRING, offsetof(args_t, engine_outputs), "FILE",
     "the same for what an engine gave elsewhere, marked outputs or "
     "all\ntensors, " CLI_LIKE_INPUTS_HELP,
     false},
    CLI_READING_OPTIONS(reading),
    CLI_SHAPE_OPTIONS(shape),
    {"--truth", 0, OPT_STRING, offsetof(args_t, truth), "MODE",
     "unquantized: quantizers (QLinear operators, MatMulInteger and Cast\nto 8 bits, too) are the "
     "identity in truth: quantization counts as\nerror (default: as written)",
     false},
    {"--require", 0, OPT_LIST, offsetof(args_t, require), "DEMAND",
     "'[OUTPUT:] STATISTIC OP VALUE', such as 'logits: top1 >= 0.99'\n(default: 'cosine >= "
     "0.999'), also of a part of an output:\n'boxes[:, 4:] max_abs <= 0.01' "
     "(docs/requirements.md); or a\ncommand with {outputs}, {truth}, {golden}, {inputs} put in "
     "(npz\nfiles): exit code 0 if they will do, 1 if not",
     false},
    {"--shares", 0, OPT_FLAG, offsetof(args_t, shares), NULL,
     "split each output's error over the layers, also where it is\nfaithful", false},
    {"--fused", 0, OPT_FLAG, offsetof(args_t, fused), NULL,
     "the fused plan: run the graph passes (default but for emu)", false},
    {"--unfused", 0, OPT_FLAG, offsetof(args_t, unfused), NULL,
     "one layer a node (default for emu)", false},
    {"--no-pass", 0, OPT_LIST, offsetof(args_t, no_pass), "NAME",
     "the fused plan without this pass", false},
    {"--no-fix", 0, OPT_FLAG, offsetof(args_t, no_fix), NULL, "do not look for a fix", false},
    {"--output-folder", 'o', OPT_OUT_FOLDER, offsetof(args_t, output_folder), "FOLDER",
     "write the fix's files there: the mixed-precision or repaired\nmodel, the options that keep "
     "its layers (default: none)",
     false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    {"--report", 0, OPT_OUT_FILE, offsetof(args_t, report), "FILE",
     "one HTML page to look at: graph, layers, histograms, maps of\nerrors, the fix; needs no "
     "network",
     false},
    {"--annotate", 0, OPT_OUT_FILE, offsetof(args_t, annotate), "FILE",
     "the model again, with what was found in metadata_props and\ndoc_string of its nodes, and "
     "types, errors and ranges of values:\nfor viewers such as Netron",
     false},
    {"--annotate-names", 0, OPT_FLAG, offsetof(args_t, annotate_names), NULL,
     "there, '!! ' in front of the names of nodes that are to blame", false},
    {"--inject", 0, OPT_STRING, offsetof(args_t, inject), "NODE:FAULT",
     "for tests: a node of the engine computes something else, such\nas 'norm1:set=epsilon=1e-3' "
     "or 'conv1:terms=1'",
     false},
    {"--seed", 0, OPT_INT, offsetof(args_t, seed), "N", "seed of random inputs and operators",
     false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    CLI_MEMORY_OPTION,
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_check = {
    .name = "check",
    .summary = "compare a model in a precision with its float64 reference (truth); explain and fix",
    .usage = "MODEL [options]",
    .examples =
        "  assay check model.onnx --precision fp16 --inputs inputs.npz --golden golden.npz\n"
        "  assay check model.onnx --precision fp16 --layer-precision '/head/*:fp32' --json "
        "out.json\n"
        "  assay check model.onnx --precision fp16 --inputs inputs.npz --report out.html\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
