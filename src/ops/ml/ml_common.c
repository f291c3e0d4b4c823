// What the operators of ai.onnx.ml share: numbers of any type, class labels, and the transforms of
// scores.
#include "ops/ml/ml_common.h"

#include <math.h>

#include "base/functions.h"
#include "base/random.h"

assay_status_t assay_ml_rows(const assay_eval_t* c, const assay_tensor_t* x, int64_t* out_rows,
                             int64_t* out_features) {
  if (x->rank < 1 || x->rank > 2)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; [N, F] or [F] is expected", ASSAY_DIMS_TEXT(x));
  *out_rows = x->rank == 2 ? x->dims[0] : 1;
  *out_features = x->dims[x->rank - 1];
  return NULL;
}

assay_status_t assay_ml_infer_rows(assay_infer_t* c, assay_shape_t* out) {
  assay_shape_t in = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 2));
  *out = (assay_shape_t){.known = true, .rank = 1};
  if (in.known) out->dims[0] = in.rank == 2 ? in.dims[0] : assay_dim_const(c->dims, 1);
  return NULL;
}

assay_status_t assay_ml_labels(const assay_node_t* n, const char* ints, const char* strings,
                               assay_ml_labels_t* out) {
  size_t n_ints = 0, n_strings = 0;
  const int64_t* i = assay_attr_ints(n, ints, &n_ints);
  const assay_string_t* s = assay_attr_strings(n, strings, &n_strings);
  if ((n_ints > 0) == (n_strings > 0))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "one of '%s' and '%s' must be given", ints, strings);
  *out = (assay_ml_labels_t){.ints = n_ints ? i : NULL,
                             .strings = n_ints ? NULL : s,
                             .n = (int64_t)(n_ints ? n_ints : n_strings)};
  return NULL;
}

assay_status_t assay_ml_set_label(assay_tensor_t* y, int64_t i, const assay_ml_labels_t* l,
                                  int64_t which) {
  if (!l->ints) return assay_tensor_set_string(y, i, l->strings[which].text, l->strings[which].len);
  assay_i64(y)[i] = l->ints[which];
  return NULL;
}

assay_status_t assay_ml_post_read(const assay_node_t* n, assay_ml_post_t* out) {
  static const char* const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  for (int i = 0; i < 5; i++) {
    if (!assay_attr_is(n, "post_transform", names[i])) continue;
    *out = (assay_ml_post_t)i;
    return NULL;
  }
  return ASSAY_NODE_ERROR(
      n, ASSAY_CORRUPT,
      "post_transform is '%s'; NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT is "
      "expected",
      assay_attr_str(n, "post_transform", ""));
}

// From the side where nothing cancels.
double assay_ml_logistic(double x) {
  double e = assay_exp(-fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

// The inverse of the normal distribution function.
double assay_ml_probit(double p) {
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  return p > 0 && p < 1 ? assay_normal_quantile(p) : NAN;
}

static void softmax(double* x, int64_t n, bool keep_zeros) {
  double max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++)
    if (x[i] > max) max = x[i];
  for (int64_t i = 0; i < n; i++) {
    bool zero = keep_zeros && fabs(x[i]) <= 1e-7;
    x[i] = zero ? x[i] * assay_exp(-max) : assay_exp(x[i] - max);
    sum += x[i];
  }
  for (int64_t i = 0; i < n; i++) x[i] = sum == 0 ? 0.5 : x[i] / sum;
}

void assay_ml_post_apply(assay_ml_post_t post, double* x, int64_t n) {
  if (post == ASSAY_ML_SOFTMAX || post == ASSAY_ML_SOFTMAX_ZERO)
    softmax(x, n, post == ASSAY_ML_SOFTMAX_ZERO);
  for (int64_t i = 0; i < n; i++) {
    if (post == ASSAY_ML_LOGISTIC) x[i] = assay_ml_logistic(x[i]);
    if (post == ASSAY_ML_PROBIT) x[i] = assay_ml_probit(x[i]);
  }
}

int64_t assay_ml_argmax(const double* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (x[i] > x[best] || (isnan(x[best]) && !isnan(x[i]))) best = i;
  return best;
}
