// What a value loses in being stored in a format, foretold from truth.
#include "account/stored.h"

#include <math.h>

#include "formats/format.h"

enum { MAX = 1024 };

static assay_storage_loss_t stored_of(const double* x, int64_t size, assay_format_t format) {
  // An odd step falls on all places of dims whose sizes are powers of two.
  const int64_t step = size / MAX | 1;
  const double range = assay_format_info(format)->max;
  double at[MAX], rounded[MAX], square = 0, lost = 0;
  size_t n = 0;
  for (int64_t i = 0; i < size && n < MAX; i += step)
    if (fabs(x[i]) <= range) at[n++] = x[i];
  assay_format_round_n(format, at, rounded, n, ASSAY_OVERFLOW_SATURATE);
  for (size_t i = 0; i < n; i++) {
    square += at[i] * at[i];
    lost += (rounded[i] - at[i]) * (rounded[i] - at[i]);
  }
  return n ? (assay_storage_loss_t){sqrt(square / (double)n), sqrt(lost / (double)n)}
           : (assay_storage_loss_t){0};
}

assay_status_t assay_stored_of(assay_tensor_t* t, assay_format_t format,
                               assay_storage_loss_t* out) {
  *out = (assay_storage_loss_t){0};
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->type != ASSAY_TYPE_FLOAT) return NULL;
  if (t->store != ASSAY_STORE_F64 && t->size > MAX) return NULL;
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  *out = stored_of(assay_f64(wide), wide->size, format);
  assay_tensor_release(wide);
  return NULL;
}
