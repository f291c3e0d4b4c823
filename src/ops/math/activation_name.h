// Activation functions by name, as the recurrent operators and fused products have them.
#ifndef ASSAY_OPS_MATH_ACTIVATION_NAME_H_
#define ASSAY_OPS_MATH_ACTIVATION_NAME_H_

#include "ops/op.h"

typedef struct assay_activation {
  double (*function)(double x, double alpha, double beta);
  double alpha, beta;        // defaults of the function
  bool has_alpha, has_beta;  // whether it uses them
  // For limits: the largest |slope| between x - reach and x + reach (a jump in there counts as a
  // slope over the reach), and the least and largest value.
  double (*slope)(double x, double reach, double alpha, double beta);
  void (*range)(double alpha, double* low, double* high);  // NULL: unbounded
} assay_activation_t;

// The activation of a name (upper or lower case); false if there is none.
bool assay_activation_find(const char* name, size_t len, assay_activation_t* out);

// The function value, rounded (assay_acc).
static inline double assay_activate(const assay_eval_t* c, const assay_activation_t* a, double x) {
  return assay_acc(c, a->function(x, a->alpha, a->beta));
}

#endif  // ASSAY_OPS_MATH_ACTIVATION_NAME_H_
