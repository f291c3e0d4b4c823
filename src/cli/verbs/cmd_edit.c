// assay edit ...: models changed, with a proof that truth is what it was or of how far it moved.
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/verbs/reading.h"
#include "edit/editor.h"
#include "edit/weights/calibration_cache.h"
#include "onnx/onnx.h"
#include "report/edit_report.h"

typedef struct args {
  const char *model, *output, *json, *format, *calib, *calibrator;
  bool allow_hard_links;
  opt_list_t inputs, shapes, ops, nodes, not_nodes, operators, from, to, values, renamed, dims,
      attrs, set_shapes, types;
  int64_t seed, samples, memory_limit, opset;
  double percentile;
  bool no_proof, force, all, per_tensor, numbers, no_fold, no_dedupe, no_names, no_shapes,
      store_codes;
  cli_reading_args_t reading;
} args_t;

static assay_words_t words(const opt_list_t* list) { return (assay_words_t){list->items, list->n}; }

static assay_edit_requests_t requests_of(const args_t* a) {
  return (assay_edit_requests_t){.nodes = words(&a->nodes),
                                 .not_nodes = words(&a->not_nodes),
                                 .ops = words(&a->operators),
                                 .from = words(&a->from),
                                 .to = words(&a->to),
                                 .values = words(&a->values),
                                 .renamed_nodes = words(&a->renamed),
                                 .dims = words(&a->dims),
                                 .attrs = words(&a->attrs),
                                 .shapes = words(&a->set_shapes),
                                 .types = words(&a->types),
                                 .opset = a->opset,
                                 .format = a->format,
                                 .calibrator = a->calibrator,
                                 .percentile = a->percentile,
                                 .per_tensor = a->per_tensor,
                                 .numbers = a->numbers,
                                 .no_fold = a->no_fold,
                                 .no_dedupe = a->no_dedupe,
                                 .no_names = a->no_names,
                                 .no_shapes = a->no_shapes,
                                 .store_codes = a->store_codes};
}

static void show_progress(void* user, const char* what, double fraction) {
  (void)user;
  assay_cli_progress(what, fraction);
}

// Samples of the model's own inputs.
static assay_status_t read_samples(const args_t* a, assay_model_t* raw, const cli_shapes_t* shapes,
                                   assay_samples_t* out) {
  assay_model_t* m = NULL;
  assay_tensor_reading_t reading = {0};
  ASSAY_TRY(cli_reading_begin(&a->reading, &reading));
  assay_status_t st = NULL;
  if (a->inputs.n) st = assay_onnx_prepare_known(raw, shapes->n, shapes->shapes, &m);
  if (!st && m) st = cli_samples_given(&a->inputs, m, &reading, true, out);
  assay_model_release(m);
  return cli_reading_end(&a->reading, &reading, st);
}

static assay_status_t tell(const args_t* a, const assay_edit_result_t* r) {
  const assay_edit_names_t names = {.model = a->model, .out = a->output, .all = a->all};
  if (!assay_cli_json_to_stdout(a->json)) {
    assay_str_t text = {0};
    assay_status_t st = assay_report_edit_text(r, &names, &text);
    fputs(assay_str_get(&text), stdout);
    assay_str_deinit(&text);
    if (st) return st;
  }
  if (!a->json) return NULL;
  json_t* json = NULL;
  ASSAY_TRY(assay_report_edit_json(r, &names, &json));
  assay_status_t st = assay_cli_write_json(a->json, json);
  json_decref(json);
  return st;
}

static int exit_code(const args_t* a, const assay_edit_result_t* r) {
  if (r->verdict == ASSAY_EDIT_NOT_PROVEN) return a->no_proof ? ASSAY_EXIT_OK : ASSAY_EXIT_FAILED;
  return r->kept_promise ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int fail(assay_status_t st) {
  const assay_code_t code = assay_status_code(st);
  return assay_cli_fail(st, code == ASSAY_CORRUPT ? ASSAY_EXIT_INPUT
                            : code == ASSAY_INVALID_ARGUMENT || code == ASSAY_NOT_FOUND
                                ? ASSAY_EXIT_USAGE
                                : ASSAY_EXIT_FAILED);
}

static int run_edit(const char* name, const args_t* a) {
  assay_model_t* raw = NULL;
  cli_shapes_t shapes = {0};
  assay_samples_t samples = {0};
  assay_edit_result_t r = {0};
  assay_arena_t* arena = NULL;  // of the scales
  assay_edit_scale_t* scales = NULL;
  size_t n_scales = 0;
  char verb[32];
  snprintf(verb, sizeof verb, "edit %s", name);
  if (!a->output && !a->json)
    return assay_cli_usage(
        verb, "say where the model goes: --output FILE (or --json FILE for the proof alone)");
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  assay_status_t st = cli_shapes_parse(&(cli_shape_args_t){.shapes = a->shapes}, &shapes);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = assay_onnx_read(a->model, &raw);
  if (!st) st = cli_shapes_settle(raw, &shapes);
  if (!st) st = read_samples(a, raw, &shapes, &samples);
  if (!st) st = assay_arena_create(&arena);
  if (!st && a->calib) st = assay_calibration_cache_read(arena, a->calib, &scales, &n_scales);
  if (!st && a->calib && !n_scales)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' has no scales", a->calib);
  int code = ASSAY_EXIT_OK;
  if (st) code = assay_cli_fail(st, ASSAY_EXIT_INPUT);
  if (!st) {
    assay_edit_requests_t requests = requests_of(a);
    requests.scales = scales;
    requests.n_scales = n_scales;
    const assay_edit_options_t options = {.given = a->inputs.n ? &samples : NULL,
                                          .n_shapes = shapes.n,
                                          .shapes = shapes.shapes,
                                          .seed = (uint64_t)a->seed,
                                          .n_samples = (int)(a->samples < 1000 ? a->samples : 1000),
                                          .no_proof = a->no_proof,
                                          .force = a->force,
                                          .progress = show_progress};
    st = assay_editor_run(assay_editor_find(name), raw, &requests, &options, &r);
    assay_cli_progress("", 1);
    if (st) code = fail(st);
    if (!st) {
      // The verdict is told whatever became of the file.
      assay_status_t unwritten = a->output ? assay_edit_result_write(&r, a->output) : NULL;
      st = assay_status_join(tell(a, &r), unwritten);
      code = st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : exit_code(a, &r);
      assay_edit_result_deinit(&r);
    }
  }
  assay_arena_destroy(arena);
  assay_samples_deinit(&samples);
  cli_shapes_free(&shapes);
  assay_model_release(raw);
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

#define EDIT_VERB(word, text, use, shown)                               \
  static int run_##word(void* args) { return run_edit(#word, args); }   \
  const verb_t assay_verb_edit_##word = {.name = "edit " #word,         \
                                         .summary = text,               \
                                         .usage = "MODEL -o FILE " use, \
                                         .examples = shown,             \
                                         .options = word##_options,     \
                                         .args_bytes = sizeof(args_t),  \
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
         "weights behind quantizers become their codes: int8 and fp8 take a\n"
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
