// assay audit: what can be said of a model without running it on data.
#include <assay/audit.h>
#include <assay/memory.h>

#include "cli/client.h"

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
  const args_t* args;
  cli_client_t client, late;  // --shape, and with it --dim and --batch
  assay_model_t* model;
  assay_samples_t* samples;
  assay_audit_t* audit;
} job_t;

static void job_deinit(job_t* j) {
  assay_audit_destroy(j->audit);
  assay_samples_destroy(j->samples);
  assay_model_release(j->model);
  cli_client_end(&j->client);
  cli_client_end(&j->late);
}

// Named sizes and the batch are for the ranges only: what is baked shows beside open ones.
static assay_status_t begin(const args_t* a, job_t* j) {
  const cli_shape_args_t shapes = {.shapes = a->shape.shapes};
  ASSAY_TRY(cli_client_begin(&a->reading, &shapes, &j->client));
  return cli_client_begin(&a->reading, &a->shape, &j->late);
}

static assay_status_t load(const args_t* a, job_t* j) {
  // Operators that nobody knows are told, not refused.
  ASSAY_TRY(cli_client_model(&j->client, a->model, true, &j->model));
  return cli_client_read(&j->client,
                         cli_client_samples(&j->client, &a->inputs, j->model, false, &j->samples));
}

static assay_status_t audit(const args_t* a, job_t* j) {
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  ASSAY_TRY(cli_client_format("precision", a->precision, &o.precision));
  ASSAY_TRY(cli_client_format("accumulator", a->accumulate, &o.accumulator));
  o.layer_precision = a->layer_precision;
  o.boxes = a->boxes.items;
  o.n_boxes = a->boxes.n;
  o.samples = j->samples;
  o.shapes = j->late.shapes.shapes;
  o.n_shapes = j->late.shapes.n;
  o.dims = j->late.shapes.dims;
  o.n_dims = j->late.shapes.n_dims;
  o.batch = j->late.shapes.batch;
  o.no_radius = a->no_radius;
  o.no_witness = a->no_witness;
  if (a->seconds > 0) o.seconds = a->seconds;
  o.seed = (uint64_t)a->seed;
  o.progress = cli_client_progress;
  return assay_audit_run(j->model, &o, &j->audit);
}

static unsigned topics(const args_t* a) {
  unsigned in_full = a->all ? ~0u : 0;
  if (a->values) in_full |= 1u << ASSAY_AUDIT_HAZARDS;
  if (a->broadcasts) in_full |= 1u << ASSAY_AUDIT_BROADCASTS | 1u << ASSAY_AUDIT_BAKED;
  if (a->constants) in_full |= 1u << ASSAY_AUDIT_CONSTANTS;
  if (a->operators) in_full |= 1u << ASSAY_AUDIT_OPERATORS;
  return in_full;
}

static assay_status_t report(const void* job, assay_report_kind_t kind, assay_report_fn_t* write,
                             void* user) {
  const job_t* j = job;
  assay_audit_report_options_t o = ASSAY_AUDIT_REPORT_OPTIONS_INIT;
  o.topics = topics(j->args);
  return assay_audit_report(j->audit, kind, &o, write, user);
}

static int run_job(const args_t* a, job_t* j) {
  assay_status_t st = begin(a, j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = load(a, j);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = audit(a, j);
  assay_cli_progress("", 1);
  if (st) {
    const assay_code_t code = assay_status_code(st);
    const bool usage =
        code == ASSAY_INVALID_ARGUMENT || code == ASSAY_NOT_FOUND || code == ASSAY_UNSUPPORTED;
    return assay_cli_fail(st, usage ? ASSAY_EXIT_USAGE : ASSAY_EXIT_FAILED);
  }
  cli_client_tell_batch(&j->late, assay_audit_batch_used(j->audit));
  cli_client_report_ones(assay_audit_open_sizes(j->audit));
  // What was found is told whatever becomes of the file.
  assay_status_t unwritten = a->save_witness && assay_audit_has_witness(j->audit)
                                 ? assay_audit_save_witness(j->audit, a->save_witness)
                                 : NULL;
  st = assay_status_join(cli_client_report(report, j, a->json), unwritten);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return assay_audit_verdict(j->audit) == ASSAY_AUDIT_SAFE ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  const args_t* a = p;
  job_t j = {.args = a};
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
