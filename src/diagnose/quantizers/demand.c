// Whether a loss is too large, and what chance does.
#include <math.h>

#include "diagnose/quantizers/states.h"

double assay_loss_part(double error2, double size2) {
  return size2 > 0 ? error2 / size2 : error2 > 0 ? 1 : 0;
}

double assay_golden_loss(const assay_output_check_t* o) {
  return assay_loss_part(o->engine_golden.sum_err2, o->engine_golden.sum_ref2);
}

double assay_quantizers_worst(const assay_quantizers_t* q, const assay_output_check_t* outputs) {
  double worst = 0;
  for (size_t i = 0; i < q->n_outputs; i++) {
    if (!q->outputs[i].known) continue;
    const assay_slices_found_t f = assay_slices_judge(outputs[i].slices);
    worst = fmax(worst, assay_golden_loss(&outputs[i]) / q->outputs[i].allowed);
    if (f.dead) worst = fmax(worst, 1 + (double)f.dead);
    if (f.small) worst = fmax(worst, f.small_loss / ASSAY_LOSS_MOST);
  }
  return worst;
}

bool assay_quantizers_hold(const assay_quantizers_t* q, assay_output_check_t* outputs,
                           const assay_requirements_t* require) {
  if (require && require->n) return assay_outputs_hold(outputs, q->n_outputs, require);
  return !(assay_quantizers_worst(q, outputs) > 1);
}

double assay_quantizer_chance(int64_t i) {
  const uint64_t hash = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15U;
  return (double)((hash ^ hash >> 29) * 0xbf58476d1ce4e5b9U >> 11) * 0x1p-53 - 0.5;
}
