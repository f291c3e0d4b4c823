// assay certify: what a run of a model was, in a small file; and whether another run is the same.
#include <assay/certify.h>
#include <assay/memory.h>
#include <string.h>

#include "cli/client.h"
#include "cli/verbs/debug_options.h"

#define VERB "certify"
#define CLI_DEBUG_TARGET_HELP "{look};\nwith --verify: of the run that is verified"

typedef struct args {
  cli_debug_args_t debug;
  const char *output, *verify, *plan, *json, *inject;
  opt_list_t thresholds;
  int64_t size;
  bool bits;
  double timeout;
} args_t;

typedef struct job {
  cli_client_t client;
  assay_model_t* model;
  assay_samples_t* samples;
  assay_certificate_t* certificate;
  assay_engine_t* engine;  // of a plan file; NULL: made of the model
  assay_verification_t* verification;
} job_t;

static void job_deinit(job_t* j) {
  assay_verification_destroy(j->verification);
  assay_engine_release(j->engine);
  assay_certificate_destroy(j->certificate);
  assay_samples_destroy(j->samples);
  assay_model_release(j->model);
  cli_client_end(&j->client);
}

static const char* conflict(const args_t* a) {
  const cli_debug_args_t* d = &a->debug;
  if (!a->output == !a->verify) return "say -o FILE to make a certificate, or --verify FILE";
  if (a->output && (a->plan || a->bits)) return "--plan and --bits are for --verify";
  if (a->size < 0) return "--max-size is a number of bytes";
  if (!a->verify) return NULL;
  if (d->precision || d->layer_precision || cli_shapes_given(&d->shape) || d->truth || d->seed)
    return "precision, shapes, truth and seed are those of the certificate: leave them out with "
           "--verify";
  if (a->thresholds.n || a->size) return "--threshold and --max-size are for making a certificate";
  if (a->plan && (d->target || d->fused || d->unfused || d->no_pass.n || a->inject))
    return "--plan runs a plan that was built: nothing about building goes with it";
  return NULL;
}

// invalid: the exit code where options or inputs make no sense.
static int fail(assay_status_t st, int invalid) {
  const assay_code_t code = assay_status_code(st);
  return assay_cli_fail(st, code == ASSAY_INVALID_ARGUMENT || code == ASSAY_NOT_FOUND ? invalid
                            : code == ASSAY_CORRUPT ? ASSAY_EXIT_INPUT
                                                    : ASSAY_EXIT_FAILED);
}

// Passes that are left out are of a fused plan, whatever else is said.
static assay_status_t fusion_of(const cli_debug_args_t* d, assay_fusion_t* out) {
  if (d->fused && d->unfused)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "fused and unfused do not go together");
  *out = d->fused || d->no_pass.n ? ASSAY_FUSION_ON
         : d->unfused             ? ASSAY_FUSION_OFF
                                  : ASSAY_FUSION_TARGET;
  return NULL;
}

static assay_status_t read_samples(const args_t* a, job_t* j) {
  return cli_client_read(
      &j->client, cli_client_samples(&j->client, &a->debug.inputs, j->model, true, &j->samples));
}

// ---- making -------------------------------------------------------------------------------------

static assay_status_t make(const args_t* a, job_t* j) {
  const cli_debug_args_t* d = &a->debug;
  assay_certify_options_t o = ASSAY_CERTIFY_OPTIONS_INIT;
  if (d->truth && strcmp(d->truth, "unquantized") != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--truth is unquantized, not '%s'", d->truth);
  ASSAY_TRY(cli_client_format("precision", d->precision, &o.precision));
  ASSAY_TRY(cli_client_fp32(d->fp32, &o.fp32));
  ASSAY_TRY(fusion_of(d, &o.fusion));
  o.target = d->target;
  o.layer_precision = d->layer_precision;
  o.passes_off = d->no_pass.items;
  o.n_passes_off = d->no_pass.n;
  o.unquantized = d->truth != NULL;
  o.seed = (uint64_t)d->seed;
  o.samples = j->samples;
  o.thresholds = a->thresholds.items;
  o.n_thresholds = a->thresholds.n;
  o.max_bytes = (size_t)a->size;
  o.inject = a->inject;
  o.progress = cli_client_progress;
  return assay_certificate_make(j->model, &o, &j->certificate);
}

static assay_status_t report_made(const void* job, assay_report_kind_t kind,
                                  assay_report_fn_t* write, void* user) {
  const job_t* j = job;
  return assay_certificate_report(j->certificate, kind, write, user);
}

static int run_make(const args_t* a, job_t* j) {
  const cli_debug_args_t* d = &a->debug;
  assay_status_t st = cli_client_model(&j->client, a->debug.model, false, &j->model);
  if (!st) st = read_samples(a, j);
  if (!st && !j->samples) st = cli_client_warn_of_random(j->model);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = make(a, j);
  assay_cli_progress("", 1);
  // An option that does not go with the model, not something that cannot be carried out.
  const bool in_vain =
      d->precision && strcmp(d->precision, "int8") == 0 && !assay_model_quantizes(j->model);
  if (st && in_vain) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (st) return fail(st, ASSAY_EXIT_USAGE);
  // What was found is told whatever becomes of the file.
  assay_status_t unwritten = assay_certificate_save(j->certificate, a->output);
  st = assay_status_join(cli_client_report(report_made, j, a->json), unwritten);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

// ---- verifying ----------------------------------------------------------------------------------

static assay_status_t verify(const args_t* a, job_t* j) {
  const cli_debug_args_t* d = &a->debug;
  assay_verify_options_t o = ASSAY_VERIFY_OPTIONS_INIT;
  ASSAY_TRY(cli_client_fp32(d->fp32, &o.fp32));
  ASSAY_TRY(fusion_of(d, &o.fusion));
  o.target = d->target;
  o.other_fp32 = d->fp32 != NULL;
  o.passes_off = d->no_pass.items;
  o.n_passes_off = d->no_pass.n;
  o.samples = j->samples;
  o.engine = j->engine;
  o.engine_name = a->plan;
  o.bits = a->bits;
  o.inject = a->inject;
  o.progress = cli_client_progress;
  return assay_verification_run(j->certificate, j->model, &o, &j->verification);
}

static assay_status_t report_verified(const void* job, assay_report_kind_t kind,
                                      assay_report_fn_t* write, void* user) {
  const job_t* j = job;
  return assay_verification_report(j->verification, kind, write, user);
}

static int run_verify(const args_t* a, job_t* j) {
  assay_status_t st = assay_certificate_load(a->verify, &j->certificate);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  if (assay_certificate_needs_samples(j->certificate) && !a->debug.inputs.n)
    return assay_cli_usage(VERB, "'%s' was made of given inputs: give them with --inputs",
                           a->verify);
  st = assay_certificate_load_model(j->certificate, a->debug.model, &j->model);
  if (!st) st = read_samples(a, j);
  if (!st && !j->samples) st = cli_shapes_report_ones(j->model, "");
  if (!st && a->plan) st = assay_engine_load(a->plan, &j->engine);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = verify(a, j);
  assay_cli_progress("", 1);
  if (st) return fail(st, a->plan && !a->bits ? ASSAY_EXIT_INPUT : ASSAY_EXIT_USAGE);
  st = cli_client_report(report_verified, j, a->json);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return assay_verification_holds(j->verification) ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  const args_t* a = p;
  job_t j = {0};
  if (conflict(a)) return assay_cli_usage(VERB, "%s", conflict(a));
  if (a->debug.memory_limit) assay_memory_set_limit(a->debug.memory_limit);
  assay_status_t st = cli_client_begin(&a->debug.reading, &a->debug.shape, &j.client);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  const int code = a->verify ? run_verify(a, &j) : run_make(a, &j);
  job_deinit(&j);
  return code;
}

static const opt_t options[] = {
    CLI_DEBUG_OPTIONS,
    CLI_DEBUG_FUSED,
    {"--output", 'o', OPT_OUT_FILE, offsetof(args_t, output), "FILE", "where the certificate goes",
     false},
    {"--verify", 0, OPT_STRING, offsetof(args_t, verify), "FILE",
     "hold a run of MODEL against this certificate", false},
    {"--threshold", 0, OPT_LIST, offsetof(args_t, thresholds), "OUTPUT:VALUE",
     "elements of this output are decided by a threshold; rows of an\noutput of two dimensions are "
     "by their largest element",
     false},
    {"--max-size", 0, OPT_BYTES, offsetof(args_t, size), "SIZE",
     "how large the certificate may be (default: 1 % of the model, or 512\nbytes)", false},
    {"--plan", 0, OPT_STRING, offsetof(args_t, plan), "PLAN",
     "with --verify: run this plan, which 'assay build' wrote", false},
    {"--bits", 0, OPT_FLAG, offsetof(args_t, bits), NULL,
     "with --verify: want the certified bits, not only its bounds", false},
    {"--inject", 0, OPT_STRING, offsetof(args_t, inject), "FAULT",
     "for tests: a fault of the emulated engine's, NODE:KIND=ARGUMENTS", false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_certify = {
    .name = VERB,
    .summary = "save a fingerprint of a run in a small file, and say later what changed and where",
    .usage = "MODEL -o FILE [options]\n       assay certify --verify FILE MODEL [options]",
    .examples =
        "  assay certify model.onnx -o model.cert --precision fp16\n"
        "  assay certify --verify model.cert model.onnx --target cpu\n"
        "  assay certify --verify model.cert model.onnx --bits\n"
        "  assay certify model.onnx -o model.cert --precision fp16 --inputs testset.npz\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
