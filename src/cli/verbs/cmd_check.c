// assay check: the main job.
#include <assay/check.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/shown.h"
#include "cli/client.h"
#include "cli/target_option.h"
#include "cli/timeout.h"

typedef struct args {
  const char *model, *precision, *accumulate, *layer_precision, *target, *like, *reference, *json,
      *truth;
  const char *output_folder, *golden_intermediates, *name_map, *exec, *engine_outputs, *inject,
      *fp32;
  const char *report, *annotate;
  opt_list_t inputs, golden, no_pass, require, ops;
  bool allow_hard_links;
  double search_seconds, exec_timeout;
  bool shares;
  int64_t seed, memory_limit;
  bool no_fix, fused, unfused, annotate_names;
  const char* fix;
  cli_reading_args_t reading;
  cli_shape_args_t shape;
  double timeout;
} args_t;

// Everything that a check holds on to, freed together.
typedef struct job {
  const args_t* args;
  assay_model_t* model;
  assay_samples_t* inputs;
  assay_golden_t* golden;
  cli_client_t client;
  assay_check_t* check;
  char* files[3];  // that were written
  size_t n_files;
  char* mended;              // the one with other constants; NULL: none was written
  assay_str_t to_write;      // the command that writes those, where no folder is given
  assay_status_t unwritten;  // why files could not be written; the report goes before it
} job_t;

static void job_deinit(job_t* j) {
  assay_check_destroy(j->check);
  assay_golden_destroy(j->golden);
  assay_samples_destroy(j->inputs);
  cli_client_end(&j->client);
  assay_model_release(j->model);
  for (size_t i = 0; i < j->n_files; i++) assay_free(j->files[i]);
  assay_free(j->mended);
  assay_str_deinit(&j->to_write);
  assay_status_free(j->unwritten);
}

// Where golden is from; NULL: there is none.
static const char* golden_name(const args_t* a) {
  return a->reference ? a->reference : a->golden.n ? a->golden.items[0] : NULL;
}

// ---- what is asked ------------------------------------------------------------------------------

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

static const char* conflict(const args_t* a) {
  if (a->annotate_names && !a->annotate)
    return "--annotate-names marks nodes of the file that --annotate names";
  if (a->golden.n && a->reference)
    return "--golden reads outputs, --reference runs a model that gives them: not both";
  if (a->fix && a->no_fix) return "--fix and --no-fix do not go together";
  if (a->unfused && a->fused) return "--fused and --unfused do not go together";
  if (a->unfused && a->no_pass.n) return "--no-pass and --unfused do not go together";
  return engine_conflict(a);
}

static void keep_verdict(void* user, const assay_check_t* check);

static assay_status_t create(const args_t* a, job_t* j) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  ASSAY_TRY(cli_client_fp32(a->fp32, &o.fp32));
  ASSAY_TRY(cli_client_precision(a->precision, &o.precision));
  ASSAY_TRY(cli_client_accumulator(a->accumulate, &o.accumulator));
  ASSAY_TRY(cli_client_fix(a->fix, &o.fix));
  o.layer_precision = a->layer_precision;
  o.target = a->target;
  o.fusion = a->fused ? ASSAY_FUSION_ON : a->unfused ? ASSAY_FUSION_OFF : ASSAY_FUSION_TARGET;
  o.passes_off = a->no_pass.items;
  o.n_passes_off = a->no_pass.n;
  o.requirements = a->require.items;
  o.n_requirements = a->require.n;
  o.unquantized = a->truth != NULL;
  o.no_fix = a->no_fix;
  o.shares = a->shares;
  o.pictures = a->report || a->annotate;
  o.search_seconds = a->search_seconds;
  o.seed = (uint64_t)a->seed;
  o.inject = a->inject;
  o.progress = cli_client_progress;
  o.judged = keep_verdict;
  o.user = j;
  ASSAY_TRY(assay_check_create(j->model, &o, &j->check));
  if (golden_name(a) || !assay_check_needs_golden(j->check)) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "a requirement is about golden: give --golden or --reference");
}

// ---- files of tensors ---------------------------------------------------------------------------

static assay_status_t read_golden(const args_t* a, job_t* j) {
  const assay_samples_options_t reading = cli_client_reading(&j->client);
  assay_golden_options_t o = ASSAY_GOLDEN_OPTIONS_INIT;
  const size_t n = assay_samples_count(j->inputs);
  assay_status_t st = NULL;
  o.reading = &reading;
  o.name_map = a->name_map;
  if (a->reference) {
    assay_cli_progress("running the reference", 0);
    st = assay_golden_run(j->model, a->reference, j->inputs, (uint64_t)a->seed, &o, &j->golden);
    assay_cli_progress("", 1);
  } else if (a->golden.n) {
    st = assay_golden_load_files(j->model, a->golden.n, a->golden.items, n, &o, &j->golden);
  }
  if (!st && a->golden_intermediates)
    st = assay_golden_add_intermediates(j->model, a->golden_intermediates, &o, &j->golden);
  for (size_t i = 0; !st && j->golden && i < reading.n_dtypes; i++)
    j->client.met[i] |= assay_golden_dtype_used(j->golden, i);
  return st;
}

static assay_status_t read_files(const args_t* a, job_t* j) {
  ASSAY_TRY(cli_client_inputs(&j->client, &a->inputs, j->model, (uint64_t)a->seed, &j->inputs));
  ASSAY_TRY(read_golden(a, j));
  if (!a->engine_outputs) return NULL;
  const assay_samples_options_t reading = cli_client_reading(&j->client);
  bool* met = j->client.met;
  ASSAY_TRY(assay_check_use_outputs(j->check, a->engine_outputs, &reading, j->inputs, a->name_map));
  for (size_t i = 0; i < reading.n_dtypes; i++) met[i] |= assay_check_dtype_used(j->check, i);
  return NULL;
}

static assay_status_t run_engine(const args_t* a, job_t* j) {
  if (!a->exec) return NULL;
  assay_cli_progress("running the engine", 0);
  assay_status_t st =
      assay_check_use_command(j->check, a->exec, a->model, a->exec_timeout, j->inputs, a->name_map);
  assay_cli_progress("", 1);
  return st;
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

// Writes a file of the fix, if a folder was given for them. A file that cannot be written takes
// nothing from the report: it names what there is, and the failure is told after it.
static assay_status_t add_file(const args_t* a, job_t* j, const char* end,
                               assay_status_t (*write)(job_t*, const char*)) {
  char* path = NULL;
  if (!a->output_folder) return NULL;
  ASSAY_TRY(beside(a, end, &path));
  assay_status_t st = write(j, path);
  if (!st) return j->files[j->n_files++] = path, NULL;
  assay_free(path);
  j->unwritten = assay_status_join(j->unwritten, st);
  return NULL;
}

static assay_status_t write_mixed(job_t* j, const char* path) {
  return assay_check_write_model(j->check, path);
}

static assay_status_t write_options(job_t* j, const char* path) {
  return assay_check_write_options(j->check, path);
}

// Whether the repairs hold is found without a folder, too: the report says it.
static assay_status_t hand_over_repair(const args_t* a, job_t* j) {
  char* path = NULL;
  size_t n = 0;
  const assay_blame_t blame = assay_check_blame(j->check);
  if (blame != ASSAY_BLAME_EXPORT && blame != ASSAY_BLAME_PRECISION) return NULL;
  if (!j->golden) return NULL;
  if (a->output_folder) ASSAY_TRY(beside(a, ".repaired.onnx", &path));
  assay_status_t st = assay_check_repair(j->check, a->model, j->inputs, j->golden, path, &n, NULL);
  if (!st && n && path)
    j->files[j->n_files++] = path;
  else
    assay_free(path);
  j->unwritten = assay_status_join(j->unwritten, st);
  return NULL;
}

static assay_status_t hand_over_fix(const args_t* a, job_t* j) {
  if (!assay_check_fix_count(j->check)) return NULL;
  if (assay_check_fix_has_model(j->check))
    ASSAY_TRY(add_file(a, j, ".fixed.onnx", write_mixed));
  else if (a->output_folder && a->precision && strcmp(a->precision, "bf16") == 0)
    fputs("assay: no mixed model is written: ONNX's operators take bfloat16 from set 13 on\n",
          stderr);
  return add_file(a, j, ".fix.txt", write_options);
}

static assay_status_t hand_over_mended(const args_t* a, job_t* j) {
  char* path = NULL;
  if (!a->output_folder || !assay_check_mended_count(j->check)) return NULL;
  ASSAY_TRY(beside(a, ".mended.onnx", &path));
  assay_status_t st = assay_check_write_mended(j->check, a->model, path);
  if (!st) return j->mended = path, NULL;
  assay_free(path);
  j->unwritten = assay_status_join(j->unwritten, st);
  return NULL;
}

// Without a folder nothing is written: the report says how to get the files.
static assay_status_t hand_over(const args_t* a, job_t* j) {
  ASSAY_TRY(hand_over_repair(a, j));
  ASSAY_TRY(hand_over_fix(a, j));
  ASSAY_TRY(hand_over_mended(a, j));
  if (a->output_folder) return NULL;
  assay_cli_command_with("-o fix", &j->to_write);
  return assay_str_status(&j->to_write);
}

// ---- reports ------------------------------------------------------------------------------------

static assay_check_report_options_t names_of(const args_t* a, const job_t* j) {
  return (assay_check_report_options_t){
      .struct_size = sizeof(assay_check_report_options_t),
      .model = a->model,
      .precision = a->precision,
      .golden = golden_name(a),
      .inputs = a->inputs.items,
      .n_inputs = a->inputs.n,
      .files = (const char* const*)j->files,
      .n_files = j->n_files,
      .to_write = j->to_write.len ? assay_str_get(&j->to_write) : NULL,
      .mended = j->mended};
}

static assay_status_t print_kind(const job_t* j, assay_report_kind_t kind,
                                 const assay_check_report_options_t* names) {
  return assay_check_report(j->check, kind, names, cli_client_print, NULL);
}

static assay_status_t write_kind(const job_t* j, assay_report_kind_t kind,
                                 const assay_check_report_options_t* names, const char* path) {
  return path ? assay_check_write_report(j->check, kind, names, path) : NULL;
}

static assay_status_t write_annotated(const args_t* a, const job_t* j,
                                      const assay_check_report_options_t* names) {
  assay_str_t command = {0};
  if (!a->annotate) return NULL;
  assay_cli_command(&command);
  assay_status_t st = assay_str_status(&command);
  if (!st)
    st = assay_check_annotate(j->check, names, a->model, j->inputs, assay_str_get(&command),
                              a->report, a->annotate_names, a->annotate);
  assay_str_deinit(&command);
  return st;
}

static assay_status_t keep_text(void* user, const char* data, size_t size) {
  (void)user;
  (void)size;
  cli_timeout_found(data);
  return NULL;
}

// Keeps the verdict for the case that the time is over before there is a fix.
static void keep_verdict(void* user, const assay_check_t* check) {
  const job_t* j = user;
  const assay_check_report_options_t names = names_of(j->args, j);
  if (!cli_timeout_runs() || assay_cli_json_to_stdout(j->args->json)) return;
  // A failure is that of the report at the end, too, which says it.
  assay_status_free(assay_check_report(check, ASSAY_REPORT_TEXT, &names, keep_text, NULL));
}

static assay_status_t print(const args_t* a, const job_t* j) {
  const assay_check_report_options_t names = names_of(a, j);
  cli_timeout_found(NULL);
  // What goes to the standard output comes first: no file that cannot be written takes the verdict
  // along.
  const bool json_to_stdout = assay_cli_json_to_stdout(a->json);
  assay_status_t st = print_kind(j, json_to_stdout ? ASSAY_REPORT_JSON : ASSAY_REPORT_TEXT, &names);
  fflush(stdout);
  st = assay_status_join(st, write_kind(j, ASSAY_REPORT_PAGE, &names, a->report));
  st = assay_status_join(st, write_annotated(a, j, &names));
  return json_to_stdout ? st
                        : assay_status_join(st, write_kind(j, ASSAY_REPORT_JSON, &names, a->json));
}

// ---- the whole ----------------------------------------------------------------------------------

static bool is_input_fault(assay_status_t st) {
  return assay_status_code(st) == ASSAY_INVALID_ARGUMENT || assay_status_code(st) == ASSAY_CORRUPT;
}

static assay_status_t run_check(job_t* j) {
  assay_status_t st = assay_check_run(j->check, j->inputs, j->golden);
  assay_cli_progress("", 1);
  if (j->golden && !st) fputs(assay_golden_notes(j->golden), stderr);
  fputs(assay_check_notes(j->check), stderr);
  return st;
}

static int run_job(args_t* a, job_t* j) {
  if (a->truth && strcmp(a->truth, "unquantized") != 0)
    return assay_cli_usage("check", "--truth is unquantized, not '%s'", a->truth);
  if (conflict(a)) return assay_cli_usage("check", "%s", conflict(a));
  assay_status_t st = cli_client_begin(&a->reading, &a->shape, &j->client);
  if (!st) st = cli_client_want_target(a->target);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = cli_client_model(&j->client, a->model, false, &j->model);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = create(a, j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (a->output_folder) st = assay_folder_make(a->output_folder);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  st = cli_client_read(&j->client, read_files(a, j));
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = run_engine(a, j);
  if (st)
    return assay_cli_fail(
        st, assay_status_code(st) == ASSAY_INVALID_ARGUMENT ? ASSAY_EXIT_USAGE : ASSAY_EXIT_FAILED);
  st = run_check(j);
  if (st) return assay_cli_fail(st, is_input_fault(st) ? ASSAY_EXIT_INPUT : ASSAY_EXIT_FAILED);
  // The verdict is told whatever became of the files.
  st = hand_over(a, j);
  j->unwritten = assay_status_join(j->unwritten, st);
  st = assay_status_join(print(a, j), j->unwritten);
  j->unwritten = NULL;
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return assay_check_faithful(j->check) ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
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
    {"--golden", 'g', OPT_LIST, offsetof(args_t, golden), "FILE",
     "the original framework's outputs, " CLI_LIKE_INPUTS_HELP ".\nGiven again: more samples, or "
     "more outputs",
     false},
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
     "{look};\nemu judges the formats, whatever the engine; others the plan\nthat 'build' makes by "
     "the same options, to the bit",
     false},
    CLI_LIKE_OPTION(like),
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
    CLI_FIX_OPTION(fix),
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
        "  assay check model.onnx --precision fp16 --inputs inputs.npz --report out.html\n"
        "  assay check model.onnx --precision fp16 --target emu --like sm_90 -g of_the_gpu.npz\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
