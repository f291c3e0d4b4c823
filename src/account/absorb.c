// Layers that values past a format's range do no harm to: Clip(x, 0, 6), Sigmoid, Min, 1/x ...
#include "account/absorb.h"

#include <math.h>

#include "base/alloc.h"
#include "formats/extremes.h"
#include "formats/format.h"

// As the engine would, up to so much of the largest finite element.
static const double ALIKE = 1e-4;

typedef struct range {
  assay_format_t format;
  double max, past;  // the largest number; what numbers twice as large become
} range_t;

static range_t range_of(assay_format_t format) {
  const double max = assay_format_info(format)->max;
  return (range_t){format, max, assay_format_round(format, 2 * max, ASSAY_OVERFLOW_IEEE)};
}

static double clipped(const range_t* r, double x) {
  if (fabs(x) <= r->max || x != x) return x;
  if (fabs(x) >= 2 * r->max) return copysign(r->past, x);
  return assay_format_round(r->format, x, ASSAY_OVERFLOW_IEEE);
}

// An input as a layer in the format would read it; itself where it is within the range.
static assay_status_t clip(assay_tensor_t* t, assay_format_t format, bool* any,
                           assay_tensor_t** out) {
  *out = NULL;
  if (!t) return NULL;
  if (t->kind != ASSAY_KIND_TENSOR || t->type != ASSAY_TYPE_FLOAT)
    return *out = assay_tensor_retain(t), NULL;
  assay_tensor_t *wide = NULL, *copy = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  const double largest = assay_extremes(ASSAY_TYPE_DOUBLE, wide->data, wide->size).largest;
  const range_t range = range_of(format);
  if (largest <= range.max) return *out = wide, NULL;
  assay_status_t st = assay_tensor_copy(wide, &copy);
  assay_tensor_release(wide);
  if (st) return st;
  double* x = assay_f64(copy);
  for (int64_t i = 0; i < copy->size; i++)
    if (fabs(x[i]) > range.max) x[i] = clipped(&range, x[i]);
  *any = true;
  *out = copy;
  return NULL;
}

static bool alike(const assay_tensor_t* a, const assay_tensor_t* b, assay_format_t format) {
  if (!a || !b) return a == b;
  if (a->kind != ASSAY_KIND_TENSOR || b->kind != ASSAY_KIND_TENSOR || a->size != b->size ||
      a->store != b->store)
    return false;
  if (a->store == ASSAY_STORE_I64) {
    for (int64_t i = 0; i < a->size; i++)
      if (assay_i64(a)[i] != assay_i64(b)[i]) return false;
    return true;
  }
  if (a->store != ASSAY_STORE_F64) return false;
  const range_t range = range_of(format);
  double maximum = -1;  // not looked for where all elements are the same
  for (int64_t i = 0; i < a->size; i++) {
    if (assay_f64(a)[i] == assay_f64(b)[i]) continue;
    const double x = clipped(&range, assay_f64(a)[i]);
    const double y = clipped(&range, assay_f64(b)[i]);
    if (maximum < 0)
      maximum = fmin(assay_extremes(ASSAY_TYPE_DOUBLE, b->data, b->size).largest, range.max);
    if (x != y && !(x != x && y != y) && !(fabs(x - y) <= ALIKE * maximum)) return false;
  }
  return true;
}

assay_status_t assay_absorbs(assay_locals_t* locals, const assay_layer_t* layer,
                             const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                             size_t n_out, assay_tensor_t* const* out, bool* out_absorbs) {
  const assay_format_t format = assay_layer_storage(layer, ASSAY_TYPE_FLOAT);
  assay_tensor_t** narrow = NULL;
  assay_local_t local = {0};
  bool any = false;
  ASSAY_TRY(assay_new_array(n_in, sizeof *narrow, &narrow));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n_in; i++) st = clip(in[i], format, &any, &narrow[i]);
  if (!st && any) st = assay_locals_run(locals, layer, node, n_in, narrow, NULL, NULL, &local);
  if (!st) {
    *out_absorbs = any;
    for (size_t i = 0; any && i < n_out && i < local.n_out; i++)
      *out_absorbs &= alike(local.truth[i], out[i], format);
  }
  assay_local_deinit(&local);
  for (size_t i = 0; i < n_in; i++) assay_tensor_release(narrow[i]);
  assay_free(narrow);
  return st;
}
