// Elements that a quantizer may round to either of two integers.
#include "diagnose/golden/near_ties.h"

#include <math.h>
#include <string.h>

#include "formats/format.h"
#include "ops/quant/quant.h"

// Golden's quotient is x / scale in float32: two roundings of x and scale, one of the quotient.
static const double QUOTIENT = 0x1p-22;
// Times the distance of the run's x from truth's: as far as golden may be without a fault.
static const double NOISE = 8;

typedef struct turn {
  const double *x, *noisy, *scale;
  const int64_t* zero;  // NULL: 0
  int64_t n_zero, min, max;
  int64_t* y;
} turn_t;

static void turn_run(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                     int64_t s_step) {
  const turn_t* t = user;
  for (int64_t i = 0; i < n; i++, x += x_step, s += s_step) {
    const double quotient = t->x[x] / t->scale[s], nearest = rint(quotient);
    const double spread = NOISE * fabs(t->noisy[x] - t->x[x]) / fabs(t->scale[s]);
    if (!(0.5 - fabs(quotient - nearest) <= QUOTIENT * fabs(quotient) + spread)) continue;
    const double other = nearest + (quotient >= nearest ? 1 : -1);
    const double y = other + (t->zero ? (double)t->zero[t->n_zero > 1 ? s : 0] : 0);
    t->y[x] = y < (double)t->min ? t->min : y > (double)t->max ? t->max : (int64_t)y;
  }
}

// An input in float64 or int64, of which the caller has a reference; NULL: it is not known.
static assay_status_t widened(const assay_evaluator_t* truth, const assay_node_t* n, size_t i,
                              assay_tensor_t** out) {
  const assay_value_t* v = i < n->n_inputs ? n->inputs[i] : NULL;
  assay_tensor_t* t = v ? assay_evaluator_get(truth, v) : NULL;
  *out = NULL;
  return t && t->kind == ASSAY_KIND_TENSOR ? assay_tensor_widen(t, out) : NULL;
}

// One scale, or one for each index of an axis; false: blocks, which stay as they are.
static bool find_scales(const assay_node_t* n, const assay_tensor_t* x, const assay_tensor_t* scale,
                        assay_scales_t* out) {
  int64_t axis = assay_attr_i64(n, "axis", 1);
  *out = (assay_scales_t){.axis = -1};
  if (scale->size == 1) return true;
  if (axis < 0) axis += x->rank;
  if (scale->rank != 1 || axis < 0 || axis >= x->rank || scale->size != x->dims[axis]) return false;
  out->axis = (int)axis;
  return true;
}

static assay_status_t turn(const assay_node_t* n, const assay_tensor_t* x,
                           const assay_tensor_t* noisy_x, const assay_tensor_t* scale,
                           const assay_tensor_t* zero, assay_tensor_t** y) {
  assay_scales_t where;
  assay_tensor_t *copy = NULL, *wide = NULL;
  const bool integer_zero = zero && zero->store == ASSAY_STORE_I64;
  if (x->store != ASSAY_STORE_F64 || scale->store != ASSAY_STORE_F64 ||
      !assay_tensor_alike(x, noisy_x) || !find_scales(n, x, scale, &where) ||
      (integer_zero && zero->size != 1 && zero->size != scale->size))
    return NULL;
  ASSAY_TRY(assay_tensor_widen(*y, &wide));
  assay_status_t st = wide->store == ASSAY_STORE_I64 && wide->size == x->size
                          ? assay_tensor_copy(wide, &copy)
                          : NULL;
  if (!st && copy) {
    const int bits = assay_type_bits((*y)->type);
    const bool is_signed = assay_type_is_signed((*y)->type);
    const turn_t t = {.x = assay_f64(x),
                      .noisy = assay_f64(noisy_x),
                      .scale = assay_f64(scale),
                      .zero = integer_zero ? assay_i64(zero) : NULL,
                      .n_zero = integer_zero ? zero->size : 0,
                      .min = is_signed ? -(INT64_C(1) << (bits - 1)) : 0,
                      .max = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1,
                      .y = assay_i64(copy)};
    assay_scales_run(&where, x, turn_run, &t);
    assay_tensor_release(*y);
    *y = copy;
  }
  assay_tensor_release(wide);
  return st;
}

assay_status_t assay_near_ties_turn(const assay_evaluator_t* truth, const assay_node_t* n,
                                    assay_tensor_t* noisy_x, assay_tensor_t** y) {
  assay_tensor_t *x = NULL, *scale = NULL, *zero = NULL, *noisy = NULL;
  if (strcmp(n->op_type, "QuantizeLinear") != 0 || !noisy_x || !*y ||
      noisy_x->kind != ASSAY_KIND_TENSOR || (*y)->kind != ASSAY_KIND_TENSOR ||
      !assay_type_is_integer((*y)->type) || assay_type_bits((*y)->type) > 16)
    return NULL;
  assay_status_t st = widened(truth, n, 0, &x);
  if (!st) st = widened(truth, n, 1, &scale);
  if (!st) st = widened(truth, n, 2, &zero);
  if (!st) st = assay_tensor_widen(noisy_x, &noisy);
  if (!st && x && scale) st = turn(n, x, noisy, scale, zero, y);
  assay_tensor_release(x);
  assay_tensor_release(scale);
  assay_tensor_release(zero);
  assay_tensor_release(noisy);
  return st;
}
