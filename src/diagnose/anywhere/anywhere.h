// Offers of stage 4: small expressions at every place of a node, whatever its operator is. There
// are too many of them to ask every node for; the search asks those that it suspects most.
#ifndef ASSAY_DIAGNOSE_ANYWHERE_ANYWHERE_H_
#define ASSAY_DIAGNOSE_ANYWHERE_ANYWHERE_H_

#include "diagnose/causes/programs.h"

// What an expression takes the place of.
typedef struct assay_anywhere_place {
  size_t input;  // of the node; s->n_in and more: its outputs
  const assay_value_t* v;
  const assay_tensor_t* x;      // truth of it, canonical
  const assay_value_t* source;  // what the expression begins from; NULL: what is there
} assay_anywhere_place_t;

enum { ASSAY_PLACES = 8 };

// The outputs, and inputs that are not another node's output alone: what several nodes read, what
// nobody makes, constants. Floats only. Returns how many.
size_t assay_places_of(const assay_suspect_t* s, assay_anywhere_place_t* out);
// Offers an expression at a place; `what` is what it does: "its square".
assay_status_t assay_offer_at(const assay_suspect_t* s, const char* cause,
                              const assay_anywhere_place_t* p, const assay_formula_terms_t* terms,
                              const char* what, const assay_trial_t* t, bool* stop) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_ANYWHERE_ANYWHERE_H_
