// The public face of reductions: include/assay/debug.h, but for reports (report/debug_public.c).
#include <string.h>

#include "account/golden/golden.h"
#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "check/check_public.h"
#include "debug/debug_public.h"

static assay_status_t reduce(assay_reduction_t* r, const assay_reduction_options_t* o,
                             const assay_samples_t* inputs, const assay_golden_t* golden) {
  const assay_check_t* check = r->debug->check;
  ASSAY_TRY(assay_debug_copy_text(o->command, &r->command));
  const assay_external_engine_command_t exec = {
      .command = r->command,
      .model = o->model,
      .precision = check->job->engine_precision,
      .seconds = o->command_seconds > 0 ? o->command_seconds : 600};
  const assay_reduce_options_t how = {.check = &check->options,
                                      .exec = o->command ? &exec : NULL,
                                      .golden = golden ? assay_golden_arrays(golden) : NULL,
                                      .golden_runs = golden ? assay_golden_runs(golden) : NULL,
                                      .judge = o->judge,
                                      .judge_seconds = o->judge_seconds,
                                      .seconds = o->seconds};
  return assay_reduce_run(check->model, inputs, &how, &r->found);
}

assay_status_t assay_debug_reduce(assay_debug_t* d, const assay_reduction_options_t* options,
                                  const assay_samples_t* inputs, const assay_golden_t* golden,
                                  assay_reduction_t** out) {
  assay_reduction_options_t o = ASSAY_REDUCTION_OPTIONS_INIT;
  assay_reduction_t* r = NULL;
  if (options)
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(assay_debug_check_command(o.command, o.model));
  ASSAY_TRY(assay_samples_fit(inputs, d->check->model, false));
  if (assay_debug_needs_golden(d))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "a requirement is about golden; parts are held against truth");
  if (golden && assay_golden_model(golden) != d->check->model)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "golden is of another model than this");
  ASSAY_TRY(ASSAY_NEW(&r));
  r->debug = assay_debug_retain(d);
  assay_status_t st = reduce(r, &o, inputs, golden);
  if (!st) st = assay_cancel_check();
  if (st) return assay_reduction_destroy(r), st;
  *out = r;
  return NULL;
}

void assay_reduction_destroy(assay_reduction_t* r) {
  if (!r) return;
  assay_reduced_deinit(&r->found);
  assay_debug_release(r->debug);
  assay_free(r->command);
  assay_free(r);
}

assay_reduce_verdict_t assay_reduction_verdict(const assay_reduction_t* r) {
  return r->found.verdict;
}

size_t assay_reduction_node_count(const assay_reduction_t* r) { return r->found.n_nodes; }
size_t assay_reduction_nodes_before(const assay_reduction_t* r) { return r->found.n_nodes_before; }
size_t assay_reduction_tries(const assay_reduction_t* r) { return r->found.tries; }
const char* assay_reduction_why(const assay_reduction_t* r) { return r->found.after.why; }

assay_status_t assay_reduction_write(const assay_reduction_t* r, const char* folder,
                                     size_t* out_samples) {
  size_t written = 0;
  if (r->found.verdict != ASSAY_REDUCE_REDUCED)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no part to write: the verdict is '%s'",
                       assay_reduce_verdict_name(r->found.verdict));
  ASSAY_TRY(assay_reduced_write(&r->found, folder, &written));
  if (out_samples) *out_samples = written;
  return NULL;
}
