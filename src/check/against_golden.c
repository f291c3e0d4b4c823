// What golden shows: faults of the export, quantizers with wrong scales, and what quantizers lose.
#include "check/against_golden.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "check/rounded_golden.h"
#include "diagnose/chain.h"
#include "diagnose/golden/golden_kind.h"
#include "diagnose/kinds/arithmetic_find.h"
#include "diagnose/kinds/undone_find.h"
#include "ops/quant/book.h"
#include "plan/plan.h"

// ---- which network it is of --------------------------------------------------------------------

// Whether golden fits the model without its quantizers, by what half a step of weights explains.
static assay_status_t fits_unquantized(const assay_check_t* c, const assay_samples_t* inputs,
                                       const assay_golden_t* golden, bool* out) {
  const assay_export_options_t options = {
      .unquantized = true, .seed = c->options.seed, .no_search = true};
  const assay_samples_t* whole = c->options.whole_batch;
  assay_export_t found = {0};
  assay_status_t st = assay_chain_run(c->model, whole ? whole : inputs, golden, &options, &found);
  *out = !st && !found.n && found.values_compared;
  assay_export_deinit(&found);
  return st;
}

assay_status_t assay_check_find_golden_kind(assay_check_t* c, const assay_samples_t* inputs,
                                            const assay_golden_t* golden,
                                            const assay_samples_t* outputs) {
  bool sure = true, fits = false;
  c->golden_quantized = false;
  if (!golden || c->options.unquantized || !inputs->n) return NULL;
  ASSAY_TRY(assay_golden_is_quantized(golden, c->model, assay_samples_get(inputs, 0),
                                      outputs && outputs->n ? assay_samples_get(outputs, 0) : NULL,
                                      c->options.seed, &c->golden_quantized, &sure));
  if (!c->golden_quantized && !sure && outputs)
    return assay_golden_outputs_are_quantized(c->model, inputs, outputs, c->options.seed,
                                              &c->golden_quantized);
  // About as far from both: a fault of the export is not to be made of what a quantizer may lose.
  if (!c->golden_quantized || sure || !outputs) return NULL;
  ASSAY_TRY(fits_unquantized(c, inputs, golden, &fits));
  c->golden_quantized = !fits;
  return NULL;
}

bool assay_check_compares_unquantized(const assay_check_t* c) {
  return c->options.unquantized || (!c->golden_quantized && assay_model_has_few_bits(c->model));
}

// ---- the export ---------------------------------------------------------------------------------

// What the search for wrong quantizers has left of the time that there is; 0: the default.
static double seconds_left(const assay_check_t* c) {
  static const double LEAST = 1;
  const double all = c->options.search_seconds;
  return all > 0 ? fmax(all - c->seconds_of_quantizers, fmin(all, LEAST)) : all;
}

// Truth against golden; where they differ, golden's arithmetic may be why. What is left is
// searched.
static assay_status_t run_export(assay_check_t* c, const assay_samples_t* inputs,
                                 const assay_export_options_t* options) {
  const assay_golden_t* golden = c->options.golden;
  assay_export_options_t o = *options;
  o.no_search = true;
  ASSAY_TRY(assay_chain_run(c->model, inputs, golden, &o, &c->export));
  if (!c->export.n) return NULL;
  ASSAY_TRY(assay_golden_arithmetic_find(c->model, inputs, golden, &o, &c->golden_arithmetic));
  o.arithmetic = c->golden_arithmetic;
  if (o.arithmetic.format != ASSAY_FORMAT_NONE) {
    assay_export_deinit(&c->export);
    ASSAY_TRY(assay_chain_run(c->model, inputs, golden, &o, &c->export));
  }
  ASSAY_TRY(assay_undone_find(c->model, inputs, golden, &o, &c->export, &c->undone));
  if (!c->export.n) return NULL;
  if (o.arithmetic.format == ASSAY_FORMAT_NONE && !o.unquantized) {
    bool done = false;
    o.no_search = options->no_search;
    ASSAY_TRY(assay_check_rounded(c, inputs, &o, &done));
    if (done) return NULL;
  }
  if (options->no_search) return NULL;
  o.no_search = false;
  assay_export_deinit(&c->export);
  return assay_chain_run(c->model, inputs, golden, &o, &c->export);
}

// A quantizer that golden of a network which quantizes points at, in place of the output that shows
// it. How often it is the one: 0.8 is of the checks of bench/strangers that were looked at.
static assay_status_t blame_quantizer(assay_check_t* c) {
  static const double PROBABILITY = 0.8;
  assay_export_t* e = &c->export;
  const assay_quantizers_t* q = &c->quantizers;
  assay_fault_t f = {.node = q->blamed, .probability = PROBABILITY};
  double worst = 0;
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_output_check_t* o = &c->outputs[i];
    const assay_error_sum_t* d = &o->engine_golden;
    if (!o->has_golden || !d->finite || !(d->sum_err2 > worst * d->sum_ref2)) continue;
    worst = d->sum_err2 / d->sum_ref2;
    f.value = c->model->graph->outputs[i];
    f.difference.rms = sqrt(d->sum_err2 / (double)d->finite);
  }
  if (!f.value) return NULL;
  ASSAY_TRY(assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults));
  for (size_t i = 0; i < e->n; i++) {
    if (e->faults[i].value == f.value) f.explained = e->faults[i].explained;
    assay_repair_deinit(&e->faults[i].repair);
  }
  for (size_t i = 0; i < q->n_rivals; i++) f.rivals[f.n_rivals++] = q->rivals[i];
  e->faults[0] = f;
  e->n = 1;
  return NULL;
}

// Truth against golden.
static assay_status_t check_export(assay_check_t* c, const assay_samples_t* inputs) {
  if (!c->options.golden) return NULL;
  c->has_golden = true;
  const assay_export_options_t options = {
      .unquantized = assay_check_compares_unquantized(c),
      .seed = c->options.seed,
      .seconds = seconds_left(c),
      .no_search = c->options.no_fix || c->quantizers.suspected || c->quantizers.blamed,
      .progress = c->options.progress,
      .user = c->options.user};
  const assay_samples_t* whole = c->options.whole_batch;
  ASSAY_TRY(run_export(c, whole ? whole : inputs, &options));
  if (c->quantizers.blamed) return blame_quantizer(c);
  if (!c->quantizers.suspected) return NULL;
  // The quantizer is told, not the output that shows it.
  const size_t n = c->export.values_compared;
  assay_export_deinit(&c->export);
  c->export.values_compared = n;
  c->export.outputs_only = true;
  return NULL;
}

// ---- quantizers ---------------------------------------------------------------------------------

static assay_quantizers_options_t quantizers_options(const assay_check_t* c,
                                                     const assay_samples_t* inputs,
                                                     const assay_samples_t* golden) {
  return (assay_quantizers_options_t){.inputs = inputs,
                                      .golden = golden,
                                      .require = c->options.require,
                                      .seed = c->options.seed,
                                      .seconds = c->options.search_seconds,
                                      .no_fix = c->options.no_fix,
                                      .progress = c->options.progress,
                                      .user = c->options.user};
}

bool assay_check_compares_quantizers(const assay_check_t* c, const assay_samples_t* golden) {
  return golden && golden->n && !c->options.unquantized && !c->options.whole_batch &&
         assay_model_has_few_bits(c->model);
}

// Whether the engine is off golden by more than this part of its energy, or a part of it is.
static bool misses_golden(const assay_check_t* c, double part) {
  bool any = false;
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_output_check_t* o = &c->outputs[i];
    const assay_error_sum_t* e = &o->engine_golden;
    any |= o->has_golden && (e->mismatched || e->sum_err2 > part * e->sum_ref2);
    if (!o->slices || o->slices_of_truth) continue;
    const assay_slices_found_t f = assay_slices_judge(o->slices);
    any |= f.dead || f.small_loss > part;
  }
  return any;
}

// As wrong scales do (60 dB), and from where on losses are told (40 dB).
static const double SUSPECT = 1e-6, LOST = 1e-4;

// Scales that outputs alone show to be wrong; golden's inner values show it better.
static assay_status_t suspect_quantizers(assay_check_t* c, const assay_samples_t* inputs,
                                         const assay_samples_t* golden) {
  const assay_quantizers_options_t options = quantizers_options(c, inputs, golden);
  if (!assay_check_compares_quantizers(c, golden) || c->options.no_fix ||
      !misses_golden(c, SUSPECT))
    return NULL;
  for (size_t i = 0; c->options.golden && i < c->options.golden->n; i++) {
    const assay_value_t* v = c->options.golden->at[i].value;
    if (v && !v->is_output) return NULL;
  }
  const double start = assay_clock_seconds();
  const assay_model_t* model = NULL;
  assay_status_t st = assay_quantizers_view(&c->quantizers, c->model, &model);
  if (!st) st = assay_quantizers_suspect(model, &options, &c->quantizers);
  c->seconds_of_quantizers = assay_clock_seconds() - start;
  if (st) return st;
  if (!c->quantizers.suspected || c->quantizers.certain || c->golden_quantized) return NULL;
  // Golden of the float network is nearer with better scales, too; that is a loss, not a fault.
  bool fits = false;
  ASSAY_TRY(fits_unquantized(c, inputs, c->options.golden, &fits));
  if (fits) assay_quantizers_deinit(&c->quantizers);
  return NULL;
}

// Golden of the network before quantization shows what the quantizers cost, where the export is
// right. What the user requires beside truth does not ask for it.
static assay_status_t check_quantizers(assay_check_t* c, const assay_samples_t* inputs,
                                       const assay_samples_t* golden) {
  const assay_requirements_t* r = c->options.require;
  const assay_quantizers_options_t options = quantizers_options(c, inputs, golden);
  if (!assay_check_compares_quantizers(c, golden) || c->golden_quantized || c->export.n ||
      c->quantizers.suspected || (r && r->n && !assay_require_needs_golden(r)))
    return NULL;
  if (!(r && r->n) && !c->options.shares && !misses_golden(c, LOST)) return NULL;
  const assay_model_t* model = NULL;
  ASSAY_TRY(assay_quantizers_view(&c->quantizers, c->model, &model));
  return assay_quantizers_run(model, &options, c->options.shares, &c->quantizers);
}

// What weights in books may be off from the float network's, outputs of a faulty export may be off
// from the model's own as well, and outputs alone do not say whose they are. A repair that brings
// them back to rounding does: no network before the books gives them so.
static assay_status_t look_behind_books(assay_check_t* c, const assay_samples_t* inputs) {
  static const double PART = 0.5, SECONDS = 20;
  const double left = seconds_left(c);
  const assay_export_options_t options = {.seed = c->options.seed,
                                          .seconds = PART * (left > 0 ? left : SECONDS),
                                          .progress = c->options.progress,
                                          .user = c->options.user};
  assay_export_t found = {0};
  if (!c->has_golden || c->export.n || !c->export.outputs_only || c->golden_quantized ||
      c->options.unquantized || c->options.no_fix || c->options.whole_batch ||
      assay_model_quantizes(c->model) || !assay_model_has_books(c->model) ||
      !misses_golden(c, LOST))
    return NULL;
  assay_status_t st = assay_chain_run(c->model, inputs, c->options.golden, &options, &found);
  if (st || !assay_check_is_proof(c, &found)) return assay_export_deinit(&found), st;
  assay_export_deinit(&c->export);
  c->export = found;
  c->golden_quantized = true;
  return NULL;
}

assay_status_t assay_check_against_golden(assay_check_t* c, const assay_samples_t* inputs,
                                          const assay_samples_t* golden) {
  ASSAY_TRY(suspect_quantizers(c, inputs, golden));
  ASSAY_TRY(check_export(c, inputs));
  ASSAY_TRY(look_behind_books(c, inputs));
  return check_quantizers(c, inputs, golden);
}
