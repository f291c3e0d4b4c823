// Which faults of a walk are none: what golden's digits, its rounding, its runs or another engine's
// quantizers leave open.
#include "base/alloc.h"
#include "diagnose/golden/printed_limits.h"
#include "diagnose/golden/walk.h"
#include "plan/plan.h"

// ---- another engine's integer kernels ----------------------------------------------------------

// Whether golden is no farther from truth with its quantizers than these move truth at all.
static bool is_within_steps(const assay_golden_walk_t* w, const assay_evaluator_t* plain,
                            const assay_fault_t* f) {
  const assay_tensor_t* truth = w->missed[f->value->id];
  const assay_difference_t steps = assay_difference(assay_evaluator_get(plain, f->value), truth);
  return !f->shape && steps.comparable && !f->difference.mismatched &&
         f->difference.rms <= steps.rms && f->difference.max <= 2 * steps.max;
}

// An engine that fuses quantizers into integer kernels rounds otherwise, and one step at an early
// quantizer moves others after it. Where golden has outputs alone, what lies within the error of
// the quantizers themselves says nothing against the export.
static assay_status_t forgive_steps(assay_golden_walk_t* w, assay_tensor_t* const* inputs) {
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = true, .seed = w->options->seed};
  assay_evaluator_t* plain = NULL;
  assay_export_t* e = w->out;
  size_t n = 0;
  assay_status_t st = assay_evaluator_create_run(w->model, &config, inputs, &plain);
  for (size_t i = 0; !st && i < e->n; i++)
    if (!is_within_steps(w, plain, &e->faults[i])) e->faults[n++] = e->faults[i];
  if (!st) e->n = n;
  assay_evaluator_destroy(plain);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

assay_status_t assay_golden_walk_run(assay_golden_walk_t* w, assay_tensor_t* const* inputs) {
  ASSAY_TRY(assay_golden_walk_on(w, inputs));
  if (w->options->probe) return NULL;
  if (w->out->n && assay_golden_any_printed(w)) {
    ASSAY_TRY(assay_golden_walk_fill(w, inputs));
    ASSAY_TRY(assay_golden_forgive_printed(w));
  }
  ASSAY_TRY(assay_golden_draw_again(w, inputs));
  const bool quantizes = !w->options->unquantized && assay_model_quantizes(w->model);
  return quantizes && w->out->outputs_only && w->out->n ? forgive_steps(w, inputs) : NULL;
}
