// assay edit ...: models changed, with a proof that truth is what it was or of how far it moved.
#include <assay/edit.h>
#include <assay/memory.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/client.h"

typedef struct args {
  const char *model, *output, *json, *format, *calib, *calibrator;
  bool allow_hard_links;
  opt_list_t inputs, shapes, ops, nodes, not_nodes, operators, from, to, values, renamed, dims,
      attrs, set_shapes, types;
  int64_t seed, samples, memory_limit, opset;
  double percentile;
  bool no_proof, force, all, per_tensor, residuals, numbers, no_fold, no_dedupe, no_names,
      no_shapes, store_codes;
  cli_reading_args_t reading;
} args_t;

// ---- requests -----------------------------------------------------------------------------------

// Requests made of the options of a verb that are the edit's, too.
typedef struct asked {
  assay_edit_request_t* at;
  size_t n, capacity;
  char numbers[2][32];  // texts of those
  size_t n_numbers;
} asked_t;

static assay_status_t ask(asked_t* x, const char* option, const char* value) {
  ASSAY_TRY(assay_grow(&x->at, &x->capacity, x->n + 1, sizeof *x->at));
  x->at[x->n++] = (assay_edit_request_t){option, value};
  return NULL;
}

static assay_status_t ask_number(asked_t* x, const char* option, bool whole, const void* field) {
  char* text = x->numbers[x->n_numbers++];
  if (whole)
    snprintf(text, sizeof *x->numbers, "%lld", (long long)*(const int64_t*)field);
  else
    snprintf(text, sizeof *x->numbers, "%.17g", *(const double*)field);
  return ask(x, option, text);
}

// What was not given is 0.
static assay_status_t ask_option(asked_t* x, const opt_t* o, const args_t* a) {
  const void* field = (const char*)a + o->offset;
  const char* name = o->name + strlen("--");
  assay_status_t st = NULL;
  if (o->kind == OPT_LIST) {
    const opt_list_t* list = field;
    for (size_t i = 0; !st && i < list->n; i++) st = ask(x, name, list->items[i]);
  } else if (o->kind == OPT_FLAG) {
    if (*(const bool*)field) st = ask(x, name, NULL);
  } else if (o->kind == OPT_INT) {
    if (*(const int64_t*)field) st = ask_number(x, name, true, field);
  } else if (o->kind == OPT_FLOAT) {
    if (*(const double*)field != 0) st = ask_number(x, name, false, field);
  } else if (*(const char* const*)field) {
    st = ask(x, name, *(const char* const*)field);
  }
  return st;
}

static bool is_of_edit(size_t edit, const opt_t* o) {
  const char* name;
  for (size_t k = 0; (name = assay_edit_option_name(edit, k)); k++)
    if (strncmp(o->name, "--", 2) == 0 && strcmp(o->name + 2, name) == 0) return true;
  return false;
}

static assay_status_t ask_all(const char* edit, const opt_t* options, const args_t* a,
                              asked_t* out) {
  size_t i = 0;
  while (assay_edit_name(i) && strcmp(assay_edit_name(i), edit) != 0) i++;
  for (const opt_t* o = options; o->name; o++)
    if (is_of_edit(i, o)) ASSAY_TRY(ask_option(out, o, a));
  return NULL;
}

// ---- running ------------------------------------------------------------------------------------

typedef struct job {
  const args_t* args;
  cli_client_t client;
  assay_model_t* model;
  assay_samples_t* samples;
  asked_t asked;
  assay_edited_t* edited;
} job_t;

static void job_deinit(job_t* j) {
  assay_edited_destroy(j->edited);
  assay_free(j->asked.at);
  assay_samples_destroy(j->samples);
  assay_model_release(j->model);
  cli_client_end(&j->client);
}

static assay_status_t report(const void* job, assay_report_kind_t kind, assay_report_fn_t* write,
                             void* user) {
  const job_t* j = job;
  assay_edit_report_options_t o = ASSAY_EDIT_REPORT_OPTIONS_INIT;
  o.path = j->args->output;
  o.all = j->args->all;
  return assay_edited_report(j->edited, kind, &o, write, user);
}

static int exit_code(const args_t* a, const assay_edited_t* e) {
  if (assay_edited_verdict(e) == ASSAY_EDIT_NOT_PROVEN)
    return a->no_proof ? ASSAY_EXIT_OK : ASSAY_EXIT_FAILED;
  return assay_edited_kept_promise(e) ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int fail(assay_status_t st) {
  const assay_code_t code = assay_status_code(st);
  return assay_cli_fail(st, code == ASSAY_CORRUPT ? ASSAY_EXIT_INPUT
                            : code == ASSAY_INVALID_ARGUMENT || code == ASSAY_NOT_FOUND
                                ? ASSAY_EXIT_USAGE
                                : ASSAY_EXIT_FAILED);
}

// A file that is not there is no input, whatever it is an option of.
static assay_status_t check_readable(const char* path) {
  assay_mapping_t* m = NULL;
  if (path) ASSAY_TRY(assay_mapping_open(path, &m));
  assay_mapping_release(m);
  return NULL;
}

static assay_status_t load(const args_t* a, job_t* j) {
  ASSAY_TRY(check_readable(a->calib));
  ASSAY_TRY(cli_client_model(&j->client, a->model, true, &j->model));
  return cli_client_read(&j->client,
                         cli_client_samples(&j->client, &a->inputs, j->model, true, &j->samples));
}

static assay_status_t edit(const char* name, const opt_t* options, const args_t* a, job_t* j) {
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  ASSAY_TRY(ask_all(name, options, a, &j->asked));
  o.requests = j->asked.at;
  o.n_requests = j->asked.n;
  o.samples = j->samples;
  o.shapes = j->client.shapes.shapes;
  o.n_shapes = j->client.shapes.n;
  if (a->samples > 0) o.n_samples = (int)(a->samples < 1000 ? a->samples : 1000);
  o.seed = (uint64_t)a->seed;
  o.no_proof = a->no_proof;
  o.force = a->force;
  o.progress = cli_client_progress;
  return assay_edit_run(j->model, name, &o, &j->edited);
}

static int run_job(const char* name, const opt_t* options, const args_t* a, job_t* j) {
  const cli_shape_args_t shapes = {.shapes = a->shapes};
  assay_status_t st = cli_client_begin(&a->reading, &shapes, &j->client);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = load(a, j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = edit(name, options, a, j);
  assay_cli_progress("", 1);
  if (st) return fail(st);
  // The verdict is told whatever became of the file.
  assay_status_t unwritten = a->output && assay_edited_may_write(j->edited)
                                 ? assay_edited_write(j->edited, a->output)
                                 : NULL;
  st = assay_status_join(cli_client_report(report, j, a->json), unwritten);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : exit_code(a, j->edited);
}

static int run_edit(const char* name, const opt_t* options, const args_t* a) {
  job_t j = {.args = a};
  char verb[32];
  snprintf(verb, sizeof verb, "edit %s", name);
  if (!a->output && !a->json)
    return assay_cli_usage(
        verb, "say where the model goes: --output FILE (or --json FILE for the proof alone)");
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  const int code = run_job(name, options, a, &j);
  job_deinit(&j);
  return code;
}

// ---- verbs --------------------------------------------------------------------------------------

#define TEXT(option, letter, field, value, help) \
  { option, letter, OPT_STRING, offsetof(args_t, field), value, help, false }
#define WRITTEN(option, letter, field, value, help) \
  { option, letter, OPT_OUT_FILE, offsetof(args_t, field), value, help, false }
#define LIST(option, letter, field, value, help) \
  { option, letter, OPT_LIST, offsetof(args_t, field), value, help, false }
#define FLAG(option, field, help) \
  { option, 0, OPT_FLAG, offsetof(args_t, field), NULL, help, false }

#define COMMON_FIRST                                                              \
  {"MODEL", 0, OPT_STRING, offsetof(args_t, model), NULL, "the ONNX file", true}, \
      WRITTEN("--output", 'o', output, "FILE", "where the edited model goes")

#define NODE_OPTIONS                                                                       \
  LIST("--nodes", 0, nodes, "PATTERN", "only nodes with such a name; may be given again"), \
      LIST("--not-nodes", 0, not_nodes, "PATTERN", "no nodes with such a name")

#define COMMON                                                                               \
  LIST("--inputs", 'i', inputs, "FILE",                                                      \
       "samples for the proof (default: made from the seed);\n" CLI_INPUTS_HELP),            \
      CLI_READING_OPTIONS(reading),                                                          \
      LIST("--input-shape", 0, shapes, "NAME=DIMS", "shape of an input in the proof"),       \
      {"--samples", 0,                                                                       \
       OPT_INT,     offsetof(args_t, samples),                                               \
       "N",         "how many samples are made (default: 1)",                                \
       false},                                                                               \
      {"--seed", 0, OPT_INT, offsetof(args_t, seed), "N", "seed of what is made", false},    \
      FLAG("--no-proof", no_proof, "write the model without running it"),                    \
      FLAG("--force", force, "write it even if truth moves by more than it may"),            \
      FLAG("--all", all, "tell of all outputs and all notes"),                               \
      WRITTEN("--json", 0, json, "FILE", "everything as JSON; - is stdout"), CLI_OPS_OPTION, \
      CLI_HARD_LINKS_OPTION(allow_hard_links), CLI_MEMORY_OPTION, {                          \
    0                                                                                        \
  }

#define EDIT_VERB(word, text, use, shown)                                             \
  static int run_##word(void* args) { return run_edit(#word, word##_options, args); } \
  const verb_t assay_verb_edit_##word = {.name = "edit " #word,                       \
                                         .summary = text,                             \
                                         .usage = "MODEL -o FILE " use,               \
                                         .examples = shown,                           \
                                         .options = word##_options,                   \
                                         .args_bytes = sizeof(args_t),                \
                                         .run = run_##word}

static const opt_t extract_options[] = {
    COMMON_FIRST,
    LIST("--from", 0, from, "VALUE", "an input of the part (default: the model's inputs)"),
    LIST("--to", 0, to, "VALUE", "an output of the part (default: the model's outputs)"),
    NODE_OPTIONS, COMMON};
EDIT_VERB(extract, "a part of a model as a model of its own",
          "[--from VALUE] [--to VALUE] [options]",
          "  assay edit extract model.onnx -o head.onnx --from features\n"
          "  assay edit extract model.onnx -o block.onnx --nodes '/encoders.0/*'\n");

static const opt_t cast_options[] = {
    COMMON_FIRST,
    TEXT("--to", 0, format, "FORMAT", "fp16 or bf16, of float32 values; fp32, of fp16, bf16, fp64"),
    NODE_OPTIONS, COMMON};
EDIT_VERB(
    cast, "float32 values become fp16 or bf16, or all floats float32", "--to FORMAT [options]",
    "  assay edit cast model.onnx -o half.onnx --to fp16 --not-nodes '/head/*' -i inputs.npz\n");

static const opt_t quantize_options[] = {
    COMMON_FIRST,
    NODE_OPTIONS,
    TEXT("--format", 0, format, "FORMAT",
         "int8 (default), fp8 (float8e4m3fn), or int4: of products' weights\n"
         "alone, in blocks"),
    TEXT("--calibrator", 0, calibrator, "NAME",
         "an activation's range: minmax (default), its largest magnitude;\n"
         "entropy, where codes diverge least from the magnitudes; percentile"),
    {"--percentile", 0, OPT_FLOAT, offsetof(args_t, percentile), "P",
     "with --calibrator percentile, or alone: this part of the magnitudes\n"
     "is in range (default: 99.99)",
     false},
    FLAG("--per-tensor", per_tensor, "one scale for a weight, not one a channel"),
    FLAG("--residuals", residuals, "quantize what residual sums add to a product, too"),
    TEXT("--calib", 0, calib, "FILE",
         "scales of activations from TensorRT's INT8 calibration cache;\n"
         "nodes that read a value without one are left"),
    COMMON};
EDIT_VERB(
    quantize, "insert QuantizeLinear and DequantizeLinear, scales from samples", "[options]",
    "  assay edit quantize model.onnx -o int8.onnx -i calibration.npz --not-nodes '/head/*'\n"
    "  assay edit quantize model.onnx -o int8.onnx -i calibration.npz --calibrator entropy\n");

static const opt_t broadcasts_options[] = {
    COMMON_FIRST, NODE_OPTIONS, FLAG("--numbers", numbers, "constants of one element, too"),
    COMMON};
EDIT_VERB(broadcasts, "make implicit broadcasts explicit: an Expand before each", "[options]",
          "  assay edit broadcasts model.onnx -o explicit.onnx\n");

static const opt_t decompose_options[] = {
    COMMON_FIRST,
    LIST("--op", 0, operators, "NAME",
         "only this operator (Gelu, LayerNormalization ...); may be\n"
         "given again (default: those that engines lack)"),
    NODE_OPTIONS, COMMON};
EDIT_VERB(decompose, "write operators out in simpler ones: Mish, Gelu, LayerNormalization ...",
          "[options]",
          "  assay edit decompose model.onnx -o plain.onnx --op Mish --op LayerNormalization\n");

static const opt_t assemble_options[] = {
    COMMON_FIRST, LIST("--op", 0, operators, "NAME", "only this operator; may be given again"),
    COMMON};
EDIT_VERB(assemble, "put operators together that were written out", "[options]",
          "  assay edit assemble model.onnx -o whole.onnx --op LayerNormalization\n");

static const opt_t sanitize_options[] = {
    COMMON_FIRST,
    FLAG("--no-fold", no_fold, "leave nodes that read only constants"),
    FLAG("--no-dedupe", no_dedupe, "leave equal nodes and constants"),
    FLAG("--store-codes", store_codes,
         "weights after quantizers become their codes: int8 and fp8 take a\n"
         "quarter of the room, int4 an eighth"),
    FLAG("--no-names", no_names, "leave nodes without a name"),
    FLAG("--no-shapes", no_shapes, "do not write inferred types"),
    COMMON};
EDIT_VERB(sanitize, "fold constants, remove what is dead or idle, share what is equal", "[options]",
          "  assay edit sanitize model.onnx -o clean.onnx\n");

static const opt_t rename_options[] = {
    COMMON_FIRST,
    LIST("--value", 0, values, "OLD=NEW", "rename an input, an output or a value within"),
    LIST("--node", 0, renamed, "OLD=NEW", "rename a node"),
    LIST("--dim", 0, dims, "OLD=NEW", "rename an open dimension"), COMMON};
EDIT_VERB(
    rename, "rename values, nodes and open dimensions", "[--value OLD=NEW] [options]",
    "  assay edit rename model.onnx -o named.onnx --value input.1=image --dim batch_size=N\n");

static const opt_t set_options[] = {
    COMMON_FIRST,
    LIST("--attr", 0, attrs, "NAME=VALUE",
         "set an attribute of the nodes that --nodes names;\n"
         "NAME= takes it away"),
    NODE_OPTIONS,
    LIST("--shape", 0, set_shapes, "INPUT=DIMS",
         "shape that an input declares, such as image=Nx3x224x224"),
    LIST("--type", 0, types, "NAME=TYPE",
         "element type of an input or output, by a Cast: image=uint8;\n"
         "int8*SCALE: by a quantizer"),
    {"--opset", 0, OPT_INT, offsetof(args_t, opset), "N",
     "operator set to import, where no operator of the model\nis another one there", false},
    COMMON};
EDIT_VERB(set, "set attributes, shapes and types of inputs and outputs, the operator set",
          "[options]",
          "  assay edit set model.onnx -o wide.onnx --shape image=Nx3xHxW\n"
          "  assay edit set model.onnx -o eps.onnx --nodes '*/norm' --attr epsilon=1e-5\n");
