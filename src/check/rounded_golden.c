// Golden of the network before its weights were rounded.
#include "check/rounded_golden.h"

#include "diagnose/chain.h"
#include "diagnose/kinds/rounded_find.h"
#include "diagnose/quantizers/states.h"
#include "plan/plan.h"

// The part of the search's time in which golden is taken for the model's own, where the rounding of
// weights explains it, too, and where it does not.
static const double PART = 0.5, PART_OF_MORE = 0.6, DEFAULT_SECONDS = 40;

bool assay_check_is_proof(const assay_check_t* c, const assay_export_t* e) {
  static const double MANY = 1e-9;  // of an output's energy: more than rounding
  enum { LEAST = 8 };
  size_t numbers = 0;
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_output_check_t* o = &c->outputs[i];
    if (o->has_golden && (o->golden.mismatched || o->golden.sum_err2 > MANY * o->golden.sum_ref2))
      numbers += (size_t)o->golden.n;
  }
  return numbers >= LEAST && assay_export_is_proved(e);
}

static assay_status_t search(const assay_check_t* c, const assay_samples_t* inputs,
                             const assay_export_options_t* options,
                             const assay_rounded_weights_t* rounded, double part,
                             assay_export_t* out) {
  assay_export_options_t o = *options;
  o.rounded = rounded;
  o.seconds = part * (options->seconds > 0 ? options->seconds : DEFAULT_SECONDS);
  return assay_chain_run(c->model, inputs, c->options.golden, &o, out);
}

static void take(assay_check_t* c, assay_export_t* found) {
  assay_export_deinit(&c->export);
  c->export = *found;
  *found = (assay_export_t){0};
}

// Golden may be the model's own, and a repair tells. None does where the file still has weights as
// they were: reading these brings golden back, too.
static assay_status_t search_as_own(assay_check_t* c, const assay_samples_t* inputs,
                                    const assay_export_options_t* options, double part,
                                    bool* out_proved, assay_export_t* out) {
  *out_proved = false;
  if (options->no_search || c->rounded.n_left) return NULL;
  ASSAY_TRY(search(c, inputs, options, NULL, part, out));
  *out_proved = assay_check_is_proof(c, out);
  if (*out_proved) take(c, out);
  return NULL;
}

// With the rounding of weights among what is explained; what is left is a fault besides.
static assay_status_t search_besides(assay_check_t* c, const assay_samples_t* inputs,
                                     const assay_export_options_t* options, double part,
                                     assay_export_t* out) {
  return search(c, inputs, options, &c->rounded, part, out);
}

static void leave_no_fault(assay_check_t* c) {
  const size_t compared = c->export.values_compared;
  const bool outputs_only = c->export.outputs_only;
  assay_export_deinit(&c->export);
  c->export.values_compared = compared;
  c->export.outputs_only = outputs_only;
  c->golden_rounded = true;
}

static assay_status_t answer(assay_check_t* c, const assay_samples_t* inputs,
                             const assay_export_options_t* options, assay_rounded_verdict_t verdict,
                             bool* out_done, assay_export_t* found) {
  const bool outputs_only = c->export.outputs_only, more = verdict == ASSAY_ROUNDED_MORE;
  const double part = !outputs_only ? 0 : more ? PART_OF_MORE : PART;
  bool proved = false;
  *out_done = false;
  if (more && options->no_search) return NULL;
  if (verdict == ASSAY_ROUNDED_EXACT) return leave_no_fault(c), *out_done = true, NULL;
  if (outputs_only) ASSAY_TRY(search_as_own(c, inputs, options, part, &proved, found));
  *out_done = true;
  if (proved) return NULL;
  if (outputs_only && !more) {
    leave_no_fault(c);  // all outputs are explained
    return NULL;
  }
  if (more && !c->rounded.n_left) take(c, found);  // the guess, where nothing better is found
  ASSAY_TRY(search_besides(c, inputs, options, 1 - part, found));
  c->golden_rounded = !more || assay_export_is_proved(found);
  if (c->golden_rounded || (c->rounded.n_left && found->n)) take(c, found);
  return NULL;
}

assay_status_t assay_check_rounded(assay_check_t* c, const assay_samples_t* inputs,
                                   const assay_export_options_t* options, bool* out_done) {
  assay_rounded_verdict_t verdict = ASSAY_ROUNDED_NO;
  assay_export_t found = {0};
  *out_done = false;
  ASSAY_TRY(
      assay_rounded_find(c->model, inputs, c->options.golden, options, &c->rounded, &verdict));
  if (!verdict) return NULL;
  assay_status_t st = answer(c, inputs, options, verdict, out_done, &found);
  assay_export_deinit(&found);
  if (!c->golden_rounded) assay_rounded_deinit(&c->rounded);
  return st;
}

// Whether golden is of the network before few bits that no quantizer of integers makes, which are
// measured by themselves: casts to small floats, and quantizers to those.
static bool are_few_bits_measured_here(const assay_check_t* c) {
  const assay_requirements_t* r = c->options.require;
  return c->has_golden && !c->options.unquantized && !c->options.whole_batch &&
         !c->golden_quantized && assay_model_has_few_bits(c->model) && !c->export.n &&
         !c->quantizers.n_outputs && !c->quantizers.suspected && !(r && r->n);
}

double assay_check_rounding_loss(const assay_check_t* c, size_t output) {
  static const double TOLD = 1e-4;  // as of quantizers: 40 dB
  const assay_output_check_t* o = &c->outputs[output];
  const bool known =
      o->has_golden && o->is_float && o->engine_golden.n > 0 && !o->engine_golden.mismatched;
  if (!known) return 0;
  if (c->golden_rounded) return assay_golden_loss(o);
  const double loss = are_few_bits_measured_here(c) ? assay_golden_loss(o) : 0;
  return loss > TOLD ? loss : 0;
}

bool assay_check_rounding_loses(const assay_check_t* c) {
  const assay_requirements_t* r = c->options.require;
  bool loses = false;
  for (size_t i = 0; !(r && r->n) && i < c->n_outputs; i++)
    loses |= assay_check_rounding_loss(c, i) > ASSAY_LOSS_MOST;
  return loses;
}
