#include "ops/dynamic_quantize.h"

#include <math.h>
#include <string.h>

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
