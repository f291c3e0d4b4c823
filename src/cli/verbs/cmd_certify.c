// assay certify: what a run of a model was, in a small file; and whether another run is the same.
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "certify/certify.h"
#include "certify/verify.h"
#include "cli/verbs/debug_job.h"
#include "exec/targets.h"
#include "formats/format.h"
#include "report/certify.h"
#include "runtime/engine.h"

#define VERB "certify"
#define CLI_DEBUG_TARGET_HELP "{look}; with --verify: of the run that is verified"

typedef struct args {
  cli_debug_args_t debug;
  const char *output, *verify, *plan, *json, *inject;
  opt_list_t thresholds;
  int64_t size;
  bool bits;
  double timeout;
} args_t;

// A file is at most 1 % of its model, but may have so many bytes.
enum { PART = 100, FLOOR_BYTES = 512 };

typedef struct work {
  cli_debug_job_t job;
  assay_samples_t rows;  // the inputs, row by row; empty: they cannot be cut
  assay_certificate_t certificate;
  assay_str_t shapes;      // "a=1x2;b=3"
  assay_engine_t* engine;  // of a plan file; NULL: made of the model
  double start;
} work_t;

static const assay_samples_t* samples_of(const work_t* w) {
  return w->rows.n ? &w->rows : &w->job.inputs;
}

static assay_status_t cut_rows(work_t* w) {
  const assay_graph_t* g = w->job.model->graph;
  bool cut;
  return assay_samples_cut_batch(&w->job.inputs, g->inputs, &w->rows, &cut);
}

static assay_status_t write_report(const args_t* a, assay_str_t* text, json_t* json) {
  assay_status_t st = NULL;
  if (!assay_cli_json_to_stdout(a->json)) fputs(assay_str_get(text), stdout);
  if (a->json) st = assay_cli_write_json(a->json, json);
  json_decref(json);
  return st;
}

// ---- making -------------------------------------------------------------------------------------

static size_t allowed_bytes(const args_t* a, const assay_certificate_t* c) {
  if (a->size) return (size_t)a->size;
  const uint64_t part = c->model_bytes / PART;
  return part > FLOOR_BYTES ? (size_t)part : FLOOR_BYTES;
}

// written: the certificate is in its file.
static assay_status_t tell_made(const args_t* a, const work_t* w, bool written, size_t bytes) {
  const assay_certify_names_t names = {.model = a->debug.model,
                                       .certificate = written ? a->output : NULL,
                                       .target = w->certificate.target,
                                       .graph = w->job.model,
                                       .bytes = bytes,
                                       .most = allowed_bytes(a, &w->certificate),
                                       .seconds = assay_clock_seconds() - w->start};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = assay_report_certify_text(&w->certificate, &names, &text);
  if (!st && a->json) st = assay_report_certify_json(&w->certificate, &names, &json);
  if (!st) st = write_report(a, &text, json);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t make(const args_t* a, work_t* w) {
  const assay_certify_job_t job = {.model = w->job.model,
                                   .check = &w->job.options,
                                   .inputs = samples_of(w),
                                   .given = a->debug.inputs.n > 0,
                                   .precision = a->debug.precision,
                                   .rules = a->debug.layer_precision,
                                   .shapes = assay_str_get(&w->shapes),
                                   .fp32 = a->debug.fp32,
                                   .thresholds = a->thresholds.items,
                                   .n_thresholds = a->thresholds.n};
  assay_str_t bytes = {0};
  ASSAY_TRY(assay_certify(&job, &w->certificate));
  assay_status_t st =
      assay_certificate_encode(&w->certificate, allowed_bytes(a, &w->certificate), &bytes);
  assay_cli_progress("", 1);
  // What was found is told whatever becomes of the file.
  if (!st) {
    assay_status_t unwritten = assay_file_write(a->output, assay_str_get(&bytes), bytes.len);
    st = assay_status_join(tell_made(a, w, !unwritten, bytes.len), unwritten);
  }
  assay_str_deinit(&bytes);
  return st;
}

static int run_make(args_t* a, work_t* w) {
  int code;
  assay_decision_request_t* requests = NULL;
  size_t n;
  if (!cli_debug_open(&a->debug, &w->job, &code)) return code;
  assay_status_t st = cli_shapes_print(&w->job.shapes, &w->shapes);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  st = assay_decisions_ask(w->job.model, a->thresholds.n, a->thresholds.items, &requests, &n);
  assay_free(requests);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  w->job.options.plan.inject = a->inject;
  st = cut_rows(w);
  if (!st) st = make(a, w);
  return st ? cli_debug_fail(st) : ASSAY_EXIT_OK;
}

// ---- verifying ----------------------------------------------------------------------------------

// The options that the certificate was made by take the place of the user's.
static assay_status_t take_over(work_t* w, args_t* a) {
  const assay_certificate_t* c = &w->certificate;
  cli_debug_args_t* d = &a->debug;
  d->precision = *c->precision ? c->precision : NULL;
  d->layer_precision = *c->rules ? c->rules : NULL;
  d->truth = c->unquantized ? "unquantized" : NULL;
  d->seed = (int64_t)c->seed;
  d->drawn = true;
  if (!d->fp32 && *c->fp32) d->fp32 = c->fp32;
  if (!d->target && !a->plan) {
    d->target = c->target;
    if (!d->fused && !d->unfused) *(c->fused ? &d->fused : &d->unfused) = true;
  }
  if (a->plan) d->target = assay_target_default(ASSAY_TARGET_BUILD)->name;
  // The shapes, cut apart where they stand.
  assay_str_append(&w->shapes, c->shapes);
  for (char* at = w->shapes.text; at && *at;) {
    char* end = strchr(at, ';');
    if (end) *end = 0;
    ASSAY_TRY(assay_grow(&d->shape.shapes.items, &d->shape.shapes.capacity, d->shape.shapes.n + 1,
                         sizeof *d->shape.shapes.items));
    d->shape.shapes.items[d->shape.shapes.n++] = at;
    at = end ? end + 1 : NULL;
  }
  return assay_str_status(&w->shapes);
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

static assay_status_t tell_held(const args_t* a, const work_t* w, const assay_verified_t* v) {
  const assay_certify_names_t names = {.model = a->debug.model,
                                       .certificate = a->verify,
                                       .target = a->plan ? a->plan : w->job.options.backend->name,
                                       .graph = w->job.model,
                                       .seconds = assay_clock_seconds() - w->start};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = assay_report_verify_text(&w->certificate, v, &names, &text);
  if (!st && a->json) st = assay_report_verify_json(&w->certificate, v, &names, &json);
  if (!st) st = write_report(a, &text, json);
  assay_str_deinit(&text);
  return st;
}

static int hold(const args_t* a, work_t* w) {
  const assay_verify_job_t job = {.model = w->job.model,
                                  .check = &w->job.options,
                                  .inputs = samples_of(w),
                                  .plan = w->engine ? assay_engine_plan(w->engine) : NULL,
                                  .bits = a->bits};
  assay_verified_t v = {0};
  assay_status_t st = assay_certificate_verify(&w->certificate, &job, &v);
  if (st && assay_status_code(st) == ASSAY_INVALID_ARGUMENT && a->bits)
    return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  if (st) return cli_debug_fail(st);
  st = tell_held(a, w, &v);
  const bool holds = v.holds;
  assay_verified_deinit(&v);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return holds ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

// A plan keeps the precision that it was built in.
static assay_status_t load_plan(const args_t* a, work_t* w) {
  ASSAY_TRY(assay_engine_load(a->plan, &w->engine));
  ASSAY_TRY(assay_status_note(assay_engine_check_whole(w->engine), "'%s'", a->plan));
  const assay_plan_recipe_t* r = assay_plan_recipe(assay_engine_plan(w->engine));
  if (!r || r->format == w->job.options.precision.format) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' was built in %s, the certificate is of %s",
                     a->plan, assay_format_info(r->format)->name, w->job.options.precision_name);
}

static int run_verify(args_t* a, work_t* w) {
  int code;
  assay_status_t st = assay_certificate_read(a->verify, &w->certificate);
  if (st)
    return assay_cli_fail(
        st, assay_status_code(st) == ASSAY_NO_MEMORY ? ASSAY_EXIT_FAILED : ASSAY_EXIT_INPUT);
  if (w->certificate.given && !a->debug.inputs.n)
    return assay_cli_usage(VERB, "'%s' was made of given inputs: give them with --inputs",
                           a->verify);
  st = take_over(w, a);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  if (!cli_debug_open(&a->debug, &w->job, &code)) return code;
  w->job.options.plan.inject = a->inject;
  if (a->plan) st = load_plan(a, w);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = cut_rows(w);
  if (st) return cli_debug_fail(st);
  return hold(a, w);
}

static int run(void* p) {
  args_t* a = p;
  work_t w = {.start = assay_clock_seconds()};
  if (conflict(a)) return assay_cli_usage(VERB, "%s", conflict(a));
  const int code = a->verify ? run_verify(a, &w) : run_make(a, &w);
  assay_cli_progress("", 1);
  if (w.engine) assay_engine_release(w.engine);
  assay_samples_deinit(&w.rows);
  cli_debug_close(&w.job);
  assay_certificate_deinit(&w.certificate);
  assay_str_deinit(&w.shapes);
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
