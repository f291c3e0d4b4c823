// Limits of what ai.onnx.ml's models do to scores.
#include "ops/ml/ml_bound.h"

#include "base/functions.h"

typedef assay_number_t num_t;

// With the maximum taken off; its own error moves all exponents alike, and cancels.
static void softmax(const assay_arithmetic_t* a, num_t* x, int64_t n, bool keep_zeros) {
  num_t max = assay_number_exact(-(double)INFINITY);
  for (int64_t i = 0; i < n; i++)
    if (x[i].v > max.v) max = x[i];
  assay_number_sum_t sum = {0};
  for (int64_t i = 0; i < n; i++) {
    // Zeros keep their place; near the threshold rounding decides which ones are.
    const double far = fabs(fabs(x[i].v) - 1e-7);
    const bool zero = keep_zeros && fabs(x[i].v) <= 1e-7, certain = !keep_zeros || far > x[i].g;
    if (zero && max.g < (double)INFINITY)
      x[i] = assay_number_mul(
          a, x[i], assay_number_function(a, assay_exp, (double)INFINITY, assay_number_neg(max)));
    else
      x[i] = assay_number_function(a, assay_exp, (double)INFINITY, assay_number_sub(a, x[i], max));
    if (!certain) x[i].g = (double)INFINITY;
    assay_number_sum_add(&sum, x[i]);
  }
  const num_t total = assay_number_sum_end(a, &sum);
  for (int64_t i = 0; i < n; i++)
    x[i] = total.v == 0 ? assay_number_exact(0.5) : assay_number_div(a, x[i], total);
}

void assay_ml_post_numbers(const assay_arithmetic_t* a, assay_ml_post_t post, num_t* x, int64_t n) {
  if (post == ASSAY_ML_SOFTMAX || post == ASSAY_ML_SOFTMAX_ZERO)
    softmax(a, x, n, post == ASSAY_ML_SOFTMAX_ZERO);
  for (int64_t i = 0; i < n; i++) {
    // 1 / (1 + e^-x): two roundings besides the exponential's.
    if (post == ASSAY_ML_LOGISTIC)
      x[i] = assay_number_round(
          a, 2 * a->inner.u, assay_number_function(a, assay_ml_logistic, (double)INFINITY, x[i]));
    // Approximations of the probit work on 2 p - 1 or log p: a few roundings of p itself.
    if (post == ASSAY_ML_PROBIT)
      x[i] = assay_number_function(a, assay_ml_probit, (double)INFINITY,
                                   assay_number_round(a, 4 * a->inner.u, x[i]));
  }
}

bool assay_ml_top_is_certain(const num_t* x, int64_t n, bool zero) {
  if (zero && n == 1) return fabs(x[0].v) > x[0].g;
  double low = -(double)INFINITY;
  int64_t best = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(x[i].g < (double)INFINITY)) return false;
    if (x[i].v > x[best].v) best = i;
  }
  if (n > 0) low = x[best].v - x[best].g;
  // Equal scores without errors are a tie that every engine sees.
  for (int64_t i = 0; i < n; i++)
    if (i != best && x[i].v + x[i].g >= low && (x[i].g > 0 || x[best].g > 0)) return false;
  return true;
}

assay_status_t assay_ml_limits_begin(assay_bound_t* c, size_t scores, assay_ml_limits_t* out) {
  *out = (assay_ml_limits_t){0};
  if (scores > 0) ASSAY_TRY(assay_bound_output(c, 0, &out->label_guaranteed, &out->label_probable));
  ASSAY_TRY(assay_bound_output(c, scores, &out->guaranteed, &out->probable));
  const assay_tensor_t* y = scores < c->n_out ? c->out[scores] : NULL;
  out->columns = y && y->rank == 2 ? y->dims[1] : 1;
  return NULL;
}

void assay_ml_limits_row(const assay_arithmetic_t* a, const assay_ml_limits_t* l, int64_t row,
                         const num_t* x, bool label_is_certain) {
  if (l->label_guaranteed)
    l->label_guaranteed[row] = l->label_probable[row] = label_is_certain ? 0 : (double)INFINITY;
  for (int64_t k = 0; l->guaranteed && k < l->columns; k++) {
    const int64_t at = row * l->columns + k;
    assay_number_limits(a, x[k], &l->guaranteed[at], &l->probable[at]);
  }
}
