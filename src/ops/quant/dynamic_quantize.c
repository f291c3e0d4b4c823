// Quantization to uint8 by the range of the very elements.
#include "ops/quant/dynamic_quantize.h"

#include <math.h>
#include <string.h>

#include "base/larger.h"
#include "ops/quant/quant_bound.h"

// Of so many steps or more the zero point's position is not looked into.
static const double MANY = 16;

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
  const double zero = rint(fmin(assay_larger(-min / scale, 0), 255));
  for (int64_t i = 0; i < n; i++) {
    y[i] = (fmin(assay_larger(rint(x[i] / scale) + zero, 0), 255) - zero) * scale;
  }
}

// The smallest and the largest number, 0 among them; and between what they may lie.
typedef struct span {
  double min, max, minimum, maximum;  // of the numbers as they are; of what they may be
  double min_high, max_low;           // the smallest is no larger, the largest no smaller
} span_t;

static span_t span_of(int64_t n, const double* x, const double* in) {
  span_t s = {0};
  for (int64_t i = 0; i < n; i++) {
    // What is NaN, or may be, leaves the range open.
    const bool open = isnan(x[i]) || (in && isnan(in[i]));
    const double e = open ? (double)INFINITY : in ? in[i] : 0;
    s.min = fmin(s.min, x[i]), s.max = fmax(s.max, x[i]);
    s.minimum = fmin(s.minimum, open ? -e : x[i] - e),
    s.maximum = fmax(s.maximum, open ? e : x[i] + e);
    s.min_high = fmin(s.min_high, x[i] + e), s.max_low = fmax(s.max_low, x[i] - e);
  }
  return s;
}

// The scale takes a difference and a division; the zero point and each element are divided by it.
// A zero point of another step moves elements only where they saturate. Whatever the scale and the
// zero point are, a number and what it becomes are no more than a step apart, at the ends, where
// the zero point's own rounding cuts off half a step more than an element's.
void assay_dynamic_quantize_bound(const assay_rounding_t* r, int64_t n, const double* x,
                                  const double* in, double* error) {
  const span_t s = span_of(n, x, in);
  const double size = (s.max - s.min) / 255;
  const double wide = s.maximum - s.minimum, narrow = s.max_low - s.min_high;
  const double off = fmax(wide - (s.max - s.min), (s.max - s.min) - narrow) / 255;
  const assay_quant_steps_t steps = assay_steps_of(r, ASSAY_TYPE_UINT8, true, ASSAY_FORMAT_FP32);
  const assay_quant_near_t scale = {
      size, off + 4 * steps.u * (size + off) + assay_bound_tiny(r, r->compute)};
  const double step = size + scale.error, rounding = 2048 * steps.u * step;
  const double zero = size > 0 ? rint(fmin(fmax(-s.min / size, 0), 255)) : 0;
  const assay_quant_near_t none = {0, 0};
  const assay_quant_near_t start = {-s.min, fmax(s.min_high - s.min, s.min - s.minimum)};
  const double zero_steps =
      size > 0 ? assay_steps_limit(&steps, start, scale, none, zero) : (double)INFINITY;
  for (int64_t i = 0; i < n; i++) {
    const double e = in ? in[i] : 0, max_off = e + 2 * step + rounding;
    error[i] = max_off == max_off ? max_off : (double)INFINITY;
    // Where the scale vanishes an engine may take 1 or what is left of it.
    if (size == 0 && !(wide > 0)) error[i] = 0;
    if (!(size > 0) || !(zero_steps < MANY)) continue;
    const double q = fmin(fmax(rint(x[i] / size) + zero, 0), 255);
    const assay_quant_near_t at = {x[i], e};
    double maximum = 0;
    for (double z = fmax(zero - zero_steps, 0); z <= fmin(zero + zero_steps, 255); z++) {
      // From (q - zero) + z, so that a zero point that all elements move with does not count.
      const double y = q - zero + z;
      maximum = fmax(maximum, assay_steps_limit(&steps, at, scale, (assay_quant_near_t){z, 0}, y));
    }
    double near = maximum * (scale.value + scale.error) + fabs(q - zero) * scale.error;
    near += 2 * steps.u * (fabs(q - zero) * size + near);
    error[i] = fmin(error[i], near);
  }
}
