// Values of a plan that its formats cannot hold, though no layer stores them: those that fused
// layers hide, and constants that passes made. What runs them may keep them wider and be right;
// another engine, or the next build, need not.
#ifndef ASSAY_ACCOUNT_RISKS_H_
#define ASSAY_ACCOUNT_RISKS_H_

#include "account/local.h"
#include "plan/plan.h"

// The value of a layer that passes its format's range by most. What it names is the plan's.
typedef struct assay_risk {
  const assay_layer_t* layer;
  const assay_value_t* value;  // NULL: none does
  const char* pass;            // that made it, of a constant; NULL: a hidden value
  assay_format_t format;
  int64_t count;  // elements, of all values of the layer
  double max;     // with what rounding may add
} assay_risk_t;

typedef struct assay_risks {
  assay_risk_t* at;
  size_t n, cap;
} assay_risks_t;
void assay_risks_deinit(assay_risks_t* r);

// Adds the finite elements of a value hidden in a layer that the layer's format could not hold,
// with what rounding may add.
void assay_risk_add_hidden(const assay_layer_t* layer, const assay_value_t* v,
                           const assay_tensor_t* t, const assay_limits_t* limits,
                           assay_risk_t* risk);

// Of each constant that a pass made and a layer reads whose format does not hold it: the layer
// whose range is smallest.
assay_status_t assay_risks_of_constants(const assay_plan_t* plan,
                                        assay_risks_t* out) ASSAY_MUST_USE;

// Runs a plan once on one sample (by graph input; NULL: its default), with taps, and adds the
// layers of short formats that hide such values: a layer is evaluated again in float64. shared: the
// backend's, as in `open`; NULL: its own. Nothing is run where no layer of several nodes is in a
// format whose range ends before that of bfloat16.
assay_status_t assay_risks_run(const assay_plan_t* plan, const assay_backend_t* backend,
                               void* shared, assay_tensor_t* const* inputs,
                               assay_risks_t* out) ASSAY_MUST_USE;

// "layer 'a .. b' hides 'v' up to 7e+05, fp16 ends at 65504"
void assay_risk_print(const assay_risk_t* risk, assay_str_t* out);

#endif  // ASSAY_ACCOUNT_RISKS_H_
