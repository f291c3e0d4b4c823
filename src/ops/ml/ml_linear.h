// What ai.onnx.ml's linear models and support vector machines are made of: shared by evaluation and
// bounds.
#ifndef ASSAY_OPS_ML_ML_LINEAR_H_
#define ASSAY_OPS_ML_ML_LINEAR_H_

#include "ops/ml/ml_common.h"

typedef struct assay_linear {
  const float *weights, *intercepts;  // intercepts NULL: none
  int64_t n_weights, outputs, features;
  assay_ml_post_t post;
} assay_linear_t;

// outputs: how many scores a row has; features: -1 if not known yet.
assay_status_t assay_ml_linear_check(const assay_node_t* n, assay_linear_t* l,
                                     int64_t features) ASSAY_MUST_USE;
assay_status_t assay_ml_targets_of(const assay_node_t* n, int64_t* out) ASSAY_MUST_USE;
// The number of scores: as many as labels, or one for two labels.
assay_status_t assay_ml_classifier_outputs(const assay_node_t* n, int64_t features,
                                           int64_t n_labels, int64_t* out) ASSAY_MUST_USE;
// How many scores are put out: one for two labels becomes a pair.
int64_t assay_ml_paired(int64_t n_scores, int64_t n_labels);

typedef enum assay_svm_kernel {
  ASSAY_KERNEL_LINEAR,
  ASSAY_KERNEL_POLY,
  ASSAY_KERNEL_RBF,
  ASSAY_KERNEL_SIGMOID
} assay_svm_kernel_t;

typedef struct assay_svm {
  assay_svm_kernel_t kernel;
  double gamma, coef0, degree;
  const float *coefficients, *vectors, *rho, *prob_a, *prob_b;
  size_t n_coefficients, n_vectors, n_rho, n_prob_a, n_prob_b;
  assay_ml_post_t post;
} assay_svm_t;

typedef struct assay_svc {
  assay_svm_t s;
  assay_ml_labels_t labels;
  int64_t classes, vectors, pairs, features;
  const int64_t* per_class;  // vectors of each class; NULL: linear
  bool proba;
  int64_t columns;  // of the scores
} assay_svc_t;

assay_status_t assay_ml_svm_read(const assay_node_t* n, assay_svm_t* s) ASSAY_MUST_USE;
assay_status_t assay_ml_svc_read(const assay_node_t* n, assay_svc_t* v) ASSAY_MUST_USE;
// Pairwise probabilities to class probabilities. r[i * k + j]: of i against j.
void assay_ml_couple(const double* r, int64_t k, double* q, double* qp, double* p);

assay_status_t assay_ml_regressor_bound(assay_bound_t* c);
assay_status_t assay_ml_classifier_bound(assay_bound_t* c);
assay_status_t assay_ml_svr_bound(assay_bound_t* c);
assay_status_t assay_ml_svc_bound(assay_bound_t* c);

#endif  // ASSAY_OPS_ML_ML_LINEAR_H_
