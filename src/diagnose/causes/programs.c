// Offers whose only edit is a formula: in place of an input, or of what comes out.
#include "diagnose/causes/programs.h"

#include <stdio.h>

#include "diagnose/proposals.h"

// What was lost between two nodes is a matter of both.
static void add_readers(const assay_suspect_t* s, const assay_value_t* v, assay_repair_t* r) {
  enum { FEW = 2 };
  const assay_node_t* const* readers = NULL;
  const size_t n = s->around && v ? assay_around_readers(s->around, v, &readers) : 0;
  for (size_t i = 0; n <= FEW && i < n && r->n_beside < ASSAY_REPAIR_BESIDE; i++)
    r->beside[r->n_beside++] = readers[i];
}

assay_status_t assay_offer_program(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_formula_terms_t* terms, const char* text,
                                   const assay_trial_t* t, bool* stop) {
  const bool before = input < s->n_in;
  assay_repair_t r = assay_repair_of(s, cause, before ? ASSAY_EDIT_BEFORE : ASSAY_EDIT_AFTER);
  const assay_value_t* v = before ? s->node->inputs[input] : NULL;
  r.edits[0].input = before ? input : input - s->n_in;
  if (v && v->producer) r.beside[r.n_beside++] = v->producer;
  if (!before) add_readers(s, s->node->outputs[input - s->n_in], &r);
  snprintf(r.text, sizeof r.text, "%s", text);
  ASSAY_TRY(assay_formula_create(terms, &r.edits[0].formula));
  return assay_offer(t, &r, stop);
}
