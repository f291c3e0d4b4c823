// A function of one value that is missing.
#include <stdio.h>

#include "diagnose/solve/missing.h"

assay_status_t assay_missing_activations(assay_missing_search_t* s,
                                         const assay_missing_place_t* p) {
  static const struct {
    const char *name, *program;
  } rows[] = {
#define ASSAY_ACTIVATION(name, program) {name, program},
#include "diagnose/solve/formulas/activations.inc"
#undef ASSAY_ACTIVATION
  };
  if (!p->x || p->x->store != ASSAY_STORE_F64 || (p->want && !assay_tensor_alike(p->x, p->want)))
    return NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !assay_missing_is_over(s); i++) {
    const assay_formula_terms_t terms = {.program = rows[i].program};
    char text[64];
    snprintf(text, sizeof text, p->source ? "%s of" : "%s is missing", rows[i].name);
    ASSAY_TRY(assay_missing_try(s, p, &terms, "missing node", text));
  }
  return NULL;
}
