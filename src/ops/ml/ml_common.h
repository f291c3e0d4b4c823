// What the operators of ai.onnx.ml share: numbers of any type, class labels, and the transforms of
// scores.
#ifndef ASSAY_OPS_ML_ML_COMMON_H_
#define ASSAY_OPS_ML_ML_COMMON_H_

#include "ops/op.h"

// Element i of a tensor of floats or integers (not uint64).
static inline double assay_ml_number(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
}

// [N, F], or [F] as one row. Fails for other ranks.
assay_status_t assay_ml_rows(const assay_eval_t* c, const assay_tensor_t* x, int64_t* out_rows,
                             int64_t* out_features) ASSAY_MUST_USE;
// The same in inference: a shape [N], to which columns may be added.
assay_status_t assay_ml_infer_rows(assay_infer_t* c, assay_shape_t* out) ASSAY_MUST_USE;

// Class labels: integers or strings, from one of two attributes.
typedef struct assay_ml_labels {
  const int64_t* ints;  // NULL: strings
  const assay_string_t* strings;
  int64_t n;
} assay_ml_labels_t;

// Errors: CORRUPT unless exactly one of the attributes is set.
assay_status_t assay_ml_labels(const assay_node_t* n, const char* ints, const char* strings,
                               assay_ml_labels_t* out) ASSAY_MUST_USE;
static inline assay_type_t assay_ml_labels_type(const assay_ml_labels_t* l) {
  return l->ints ? ASSAY_TYPE_INT64 : ASSAY_TYPE_STRING;
}
// Puts label `which` into element i of y.
assay_status_t assay_ml_set_label(assay_tensor_t* y, int64_t i, const assay_ml_labels_t* l,
                                  int64_t which) ASSAY_MUST_USE;

typedef enum assay_ml_post {
  ASSAY_ML_NONE = 0,
  ASSAY_ML_SOFTMAX,
  ASSAY_ML_LOGISTIC,
  ASSAY_ML_SOFTMAX_ZERO,
  ASSAY_ML_PROBIT,
} assay_ml_post_t;  // numbers as in TreeEnsemble-5

assay_status_t assay_ml_post_read(const assay_node_t* n, assay_ml_post_t* out) ASSAY_MUST_USE;
// Transforms one row of scores in place. SOFTMAX_ZERO: softmax over the nonzero ones, zeros stay.
void assay_ml_post_apply(assay_ml_post_t post, double* scores, int64_t n);
double assay_ml_logistic(double x);
double assay_ml_probit(double p);

// Position of the first largest one; NaN is never larger. n at least 1.
int64_t assay_ml_argmax(const double* x, int64_t n);

#endif  // ASSAY_OPS_ML_ML_COMMON_H_
