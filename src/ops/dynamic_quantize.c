#include "ops/dynamic_quantize.h"

#include <math.h>
#include <string.h>

#include "ops/quant_bound.h"

void assay_dynamic_quantize(const assay_eval_t* c, int64_t n, const double* x, double* y) {
  double min = 0, max = 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] < min) min = x[i];
    if (x[i] > max) max = x[i];
  }
  double scale = (max - min) / 255;
  if (c->mode == ASSAY_MODE_NATIVE) scale = (double)(float)scale;
  if (c->unquantized || !(scale > 0) || !isfinite(scale)) {
    memmove(y, x, (size_t)n * sizeof *y);
    return;
  }
  const double zero = rint(fmin(fmax(-min / scale, 0), 255));
  for (int64_t i = 0; i < n; i++) {
    y[i] = (fmin(fmax(rint(x[i] / scale) + zero, 0), 255) - zero) * scale;
  }
}

// The scale takes a difference and a division; the zero point and each element are divided by it.
// A zero point of another step moves elements only where they saturate.
void assay_dynamic_quantize_bound(const assay_rounding_t* r, int64_t n, const double* x,
                                  double* error) {
  double min = 0, max = 0;
  for (int64_t i = 0; i < n; i++) {
    if (x[i] < min) min = x[i];
    if (x[i] > max) max = x[i];
  }
  const double size = (max - min) / 255;
  const assay_steps_t steps = assay_steps_of(r, ASSAY_TYPE_UINT8, true, ASSAY_FORMAT_FP32);
  // Where the scale vanishes an engine may take 1 or what is left of it.
  if (!(size > 0) || !isfinite(size)) {
    for (int64_t i = 0; i < n; i++) error[i] = size == 0 ? 0 : (double)INFINITY;
    return;
  }
  const assay_near_t scale = {size, 4 * steps.u * size + assay_bound_tiny(r, r->compute)};
  const assay_near_t none = {0, 0};
  const double zero = rint(fmin(fmax(-min / size, 0), 255));
  const double zero_steps = assay_steps_limit(&steps, (assay_near_t){-min, 0}, scale, none, zero);
  for (int64_t i = 0; i < n; i++) {
    const double q = fmin(fmax(rint(x[i] / size) + zero, 0), 255);
    const assay_near_t at = {x[i], 0};
    double most = 0;
    for (double z = fmax(zero - zero_steps, 0); z <= fmin(zero + zero_steps, 255); z++) {
      // From (q - zero) + z, so that a zero point that all elements move with does not count.
      const double y = q - zero + z;
      most = fmax(most, assay_steps_limit(&steps, at, scale, (assay_near_t){z, 0}, y));
    }
    error[i] = most * (scale.value + scale.error) + fabs(q - zero) * scale.error;
    error[i] += 2 * steps.u * (fabs(q - zero) * size + error[i]);
  }
}
