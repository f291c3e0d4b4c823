// What a graph makes of constants alone, by whatever operators: weights that it decodes.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_MADE_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_MADE_H_

#include "eval/evaluator.h"
#include "ir/ir.h"

typedef struct assay_rounded_made {
  bool* is;   // by value id: a constant, or made of constants alone
  bool* ran;  // by node id
  size_t n_values;
  assay_evaluator_t* machine;
} assay_rounded_made_t;

// The model is borrowed, and outlives it.
assay_status_t assay_rounded_made_create(const assay_model_t* model,
                                         assay_rounded_made_t* out) ASSAY_MUST_USE;
void assay_rounded_made_deinit(assay_rounded_made_t* m);

bool assay_rounded_is_made(const assay_rounded_made_t* m, const assay_value_t* v);
// What the value is, canonical, retained; NULL: it is not made of constants alone, or cannot be
// computed. Only what it needs is run.
assay_status_t assay_rounded_made_get(assay_rounded_made_t* m, const assay_value_t* v,
                                      assay_tensor_t** out) ASSAY_MUST_USE;
// Whether a value of so many elements, made of constants alone, comes of codes that are stored:
// integers or truth values, of which one holds 64 at most; or of what the graph itself rounds.
bool assay_rounded_is_decoded(const assay_rounded_made_t* m, const assay_value_t* v, int64_t size);
// The content of an initializer or a Constant; borrowed; NULL: neither.
assay_tensor_t* assay_rounded_constant(const assay_value_t* v);

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_MADE_H_
