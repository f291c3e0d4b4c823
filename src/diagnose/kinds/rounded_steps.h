// Quantizers that a graph spells out: divided by a step, rounded, and multiplied by it again.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_STEPS_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_STEPS_H_

#include "diagnose/kinds/rounded_made.h"

typedef struct assay_rounded_steps {
  // By value id. before: of a value in steps that is multiplied, what was to be rounded; NULL: it
  // is none. is: that, made at run; what is made of constants alone is a weight.
  const assay_value_t** before;
  bool* is;
  size_t n_before, n;  // how many there are
} assay_rounded_steps_t;

// Both arrays are the caller's to free, also on failure.
assay_status_t assay_rounded_steps_list(const assay_model_t* model, assay_rounded_made_t* made,
                                        assay_rounded_steps_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_STEPS_H_
