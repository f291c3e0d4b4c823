// assay audit: what can be said of a model without running it on data.
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "cli/verbs/reading.h"
#include "io/npz.h"
#include "onnx/onnx.h"
#include "ranges/audit.h"
#include "report/audit_report.h"

typedef struct args {
  const char *model, *precision, *layer_precision, *accumulate, *save_witness, *json;
  opt_list_t inputs, boxes, ops;
  bool allow_hard_links;
  int64_t seed, memory_limit;
  double seconds;
  bool all, operators, broadcasts, constants, values, no_radius, no_witness;
  cli_reading_args_t reading;
  cli_shape_args_t shape;
  double timeout;
} args_t;

typedef struct job {
  assay_model_t *open, *model;  // as declared, and with its sizes closed
  cli_shapes_t shapes, late;
  assay_tensor_reading_t reading;
  assay_samples_t samples;
  assay_precision_t precision;
  assay_audit_t audit;
} job_t;

static void job_deinit(job_t* j) {
  assay_audit_deinit(&j->audit);
  assay_precision_deinit(&j->precision);
  assay_samples_deinit(&j->samples);
  cli_shapes_free(&j->shapes);
  cli_shapes_free(&j->late);
  cli_reading_deinit(&j->reading);
  assay_model_release(j->model);
  assay_model_release(j->open);
}

static assay_status_t parse_precision(const args_t* a, const assay_model_t* m,
                                      assay_precision_t* out) {
  out->format = ASSAY_FORMAT_FP32;
  if (a->precision && strcmp(a->precision, "int8") == 0) {
    ASSAY_TRY(cli_want_quantizers(m));
  } else if (a->precision) {
    out->format = assay_format_parse(a->precision);
    if (!assay_format_info(out->format)->is_float)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "unknown precision '%s'; use fp32, tf32, bf16, fp16, fp8e4m3, fp64 ...",
                         a->precision);
  }
  if (a->accumulate) {
    out->accumulator = assay_format_parse(a->accumulate);
    if (!assay_format_info(out->accumulator)->is_float)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown accumulator '%s'; use fp32 or fp16",
                         a->accumulate);
  }
  return a->layer_precision ? assay_precision_parse(out, a->layer_precision) : NULL;
}

// Samples settle the sizes of the inputs that they are of.
static assay_status_t read_samples(const args_t* a, job_t* j) {
  return cli_reading_end(&a->reading, &j->reading,
                         cli_samples_given(&a->inputs, j->open, &j->reading, false, &j->samples));
}

// Loads the model in the shapes of --shape. Named sizes and the batch wait until sizes are closed:
// what is baked shows beside open ones only. Operators that nobody knows are told, not refused.
static assay_status_t load(const args_t* a, job_t* j) {
  assay_model_t* raw = NULL;
  ASSAY_TRY(assay_onnx_read(a->model, &raw));
  assay_status_t st = cli_shapes_settle(raw, &j->late);
  assay_model_release(raw);
  return st ? st : cli_shapes_load(a->model, true, &j->shapes, &j->open);
}

static assay_status_t close_sizes(job_t* j) {
  const assay_graph_t* g = j->open->graph;
  assay_input_shape_t* settled = NULL;
  size_t n = 0;
  assay_model_t* shaped = NULL;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *settled, &settled));
  for (size_t i = 0; j->samples.n && i < g->n_inputs; i++) {
    const assay_tensor_t* t = assay_samples_get(&j->samples, 0)[i];
    if (t && t->kind == ASSAY_KIND_TENSOR)
      settled[n++] = (assay_input_shape_t){g->inputs[i]->name, t->rank, t->dims};
  }
  assay_status_t st = assay_onnx_reshape(j->open, j->late.n, j->late.shapes, &shaped);
  if (!st) st = cli_shapes_close(shaped, n, settled, &j->model);
  assay_model_release(shaped);
  assay_free(settled);
  return st;
}

static void show_progress(void* user, const char* what, double fraction) {
  (void)user;
  assay_cli_progress(what, fraction);
}

static assay_status_t save_witness(const args_t* a, const job_t* j) {
  assay_set_t set = {0};
  const assay_witness_t* w = &j->audit.witness;
  assay_status_t st = NULL;
  if (!a->save_witness || !w->found) return NULL;
  for (size_t i = 0; !st && i < w->n; i++)
    if (w->inputs[i])
      st = assay_set_add(&set, j->model->graph->inputs[i]->name, assay_tensor_retain(w->inputs[i]));
  if (!st) st = assay_npz_write(a->save_witness, &set, false);
  assay_set_deinit(&set);
  return st;
}

// saved: --save-witness was carried out, if it was asked for.
static assay_status_t tell(const args_t* a, const job_t* j, bool saved) {
  const assay_audit_names_t names = {
      .model = a->model,
      .precision = a->precision ? a->precision : "as declared",
      .witness = saved && j->audit.witness.found ? a->save_witness : NULL,
      .broadcasts = a->broadcasts || a->all,
      .constants = a->constants || a->all,
      .operators = a->operators || a->all,
      .hazards = a->values || a->all};
  if (!assay_cli_json_to_stdout(a->json)) {
    assay_str_t text = {0};
    assay_status_t st = assay_report_audit_text(&j->audit, &names, &text);
    fputs(assay_str_get(&text), stdout);
    assay_str_deinit(&text);
    if (st) return st;
  }
  if (!a->json) return NULL;
  json_t* json = NULL;
  ASSAY_TRY(assay_report_audit_json(&j->audit, &names, &json));
  assay_status_t st = assay_cli_write_json(a->json, json);
  json_decref(json);
  return st;
}

static int run_job(const args_t* a, job_t* j) {
  assay_status_t st = cli_reading_begin(&a->reading, &j->reading);
  if (!st) st = cli_shapes_parse(&a->shape, &j->late);
  if (!st) st = cli_shapes_parse(&(cli_shape_args_t){.shapes = a->shape.shapes}, &j->shapes);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = load(a, j);
  if (!st) st = read_samples(a, j);
  if (!st) st = close_sizes(j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = parse_precision(a, j->model, &j->precision);
  const assay_audit_options_t options = {.precision = &j->precision,
                                         .boxes = a->boxes.items,
                                         .n_boxes = a->boxes.n,
                                         .samples = j->samples.n ? &j->samples : NULL,
                                         .no_radius = a->no_radius,
                                         .no_witness = a->no_witness,
                                         .seconds = a->seconds > 0 ? a->seconds : 30,
                                         .seed = (uint64_t)a->seed,
                                         .progress = show_progress};
  if (!st) st = assay_audit_run(j->open, j->model, &options, &j->audit);
  assay_cli_progress("", 1);
  if (st) {
    const assay_code_t code = assay_status_code(st);
    const bool usage =
        code == ASSAY_INVALID_ARGUMENT || code == ASSAY_NOT_FOUND || code == ASSAY_UNSUPPORTED;
    return assay_cli_fail(st, usage ? ASSAY_EXIT_USAGE : ASSAY_EXIT_FAILED);
  }
  assay_status_t unwritten = save_witness(a, j);
  st = assay_status_join(tell(a, j, !unwritten), unwritten);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return j->audit.ranges.n_hazards ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
}

static int run(void* p) {
  const args_t* a = p;
  job_t j = {0};
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  int code = run_job(a, &j);
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
    {"--box", 0, OPT_LIST, offsetof(args_t, boxes), "NAME=LO:HI",
     "between which numbers an input lies; LO:HI or R (for -R:R) without\na name: all float inputs "
     "(default: -1:1, or the range of --inputs)",
     false},
    {"--inputs", 'i', OPT_LIST, offsetof(args_t, inputs), "FILE",
     "samples, whose range is the box;\n" CLI_INPUTS_HELP, false},
    CLI_READING_OPTIONS(reading),
    CLI_SHAPE_OPTIONS(shape),
    {"--save-witness", 0, OPT_OUT_FILE, offsetof(args_t, save_witness), "FILE.npz",
     "save the input that breaks the model, if one was found", false},
    {"--search-time", 0, OPT_FLOAT, offsetof(args_t, seconds), "SECONDS",
     "how long to look for such an input (default: 30)", false},
    {"--no-witness", 0, OPT_FLAG, offsetof(args_t, no_witness), NULL, "do not look for one", false},
    {"--no-radius", 0, OPT_FLAG, offsetof(args_t, no_radius), NULL,
     "do not look for the largest box that is safe", false},
    {"--hazards", 0, OPT_FLAG, offsetof(args_t, values), NULL,
     "list every layer that may pass its range", false},
    {"--broadcasts", 0, OPT_FLAG, offsetof(args_t, broadcasts), NULL,
     "list every implicit broadcast and every baked batch size", false},
    {"--constants", 0, OPT_FLAG, offsetof(args_t, constants), NULL,
     "list every constant that the format changes out of recognition", false},
    {"--operators", 0, OPT_FLAG, offsetof(args_t, operators), NULL,
     "list which operators our backends and TensorRT lack, node by node", false},
    {"--all", 0, OPT_FLAG, offsetof(args_t, all), NULL, "all of these lists", false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    {"--seed", 0, OPT_INT, offsetof(args_t, seed), "N", "seed of the search", false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    CLI_MEMORY_OPTION,
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_audit = {
    .name = "audit",
    .summary =
        "what a model does in a precision for any input in a range; broadcasts, constants, "
        "operators",
    .usage = "MODEL [options]",
    .examples =
        "  assay audit model.onnx --precision fp16 --box image=0:1 --save-witness bad.npz\n"
        "  assay audit model.onnx --precision fp16 --inputs inputs.npz --all --json audit.json\n"
        "  assay audit model.onnx --operators --broadcasts --no-radius\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
