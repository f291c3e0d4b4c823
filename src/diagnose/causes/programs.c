// Offers whose only edit is a formula: in place of an input, or of what comes out.
#include "diagnose/causes/programs.h"

#include <stdio.h>

#include "diagnose/proposals.h"

assay_status_t assay_offer_program(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_formula_terms_t* terms, const char* text,
                                   const assay_trial_t* t, bool* stop) {
  const bool before = input < s->n_in;
  assay_repair_t r = assay_repair_of(s, cause, before ? ASSAY_EDIT_BEFORE : ASSAY_EDIT_AFTER);
  const assay_value_t* v = before ? s->node->inputs[input] : NULL;
  r.edits[0].input = before ? input : 0;
  if (v && v->producer) r.beside[r.n_beside++] = v->producer;
  snprintf(r.text, sizeof r.text, "%s", text);
  ASSAY_TRY(assay_formula_create(terms, &r.edits[0].formula));
  return assay_offer(t, &r, stop);
}
