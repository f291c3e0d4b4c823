// Sums and products of all until there, along an axis of a place.
#include <stdio.h>

#include "diagnose/anywhere/anywhere.h"
#include "diagnose/proposals.h"

static bool is_positive(const assay_tensor_t* x) {
  for (int64_t i = 0; i < x->size; i++)
    if (!(assay_f64(x)[i] > 0)) return false;
  return true;
}

// How far a thing has come, for how far it goes in each step: phases, places, times, shares. The
// product until there is that of numbers above 0.
static const struct {
  const char *name, *before, *after;
  int64_t exclusive, reverse;
  bool positive;
} running[] = {
    {"the sum until there", "x", "", 0, 0, false},
    {"the sum until before there", "x", "", 1, 0, false},
    {"the sum from there on", "x", "", 0, 1, false},
    {"the sum from behind there on", "x", "", 1, 1, false},
    {"the product until there", "x Log", " Exp", 0, 0, true},
    {"the product until before there", "x Log", " Exp", 1, 0, true},
};

static assay_status_t offer_running(const assay_suspect_t* s, const char* cause,
                                    const assay_anywhere_place_t* p, int axis, size_t k,
                                    const assay_trial_t* t, bool* stop) {
  const int64_t list[] = {axis, running[k].exclusive, running[k].reverse};
  char program[ASSAY_FORMULA_TEXT], what[80];
  size_t used = (size_t)snprintf(program, sizeof program, "%s", running[k].before);
  used = assay_formula_append(program, used, "cumsum", list, 3);
  if (used >= ASSAY_FORMULA_TEXT) return NULL;
  snprintf(program + used, sizeof program - used, "%s", running[k].after);
  snprintf(what, sizeof what, "%s over dimension %d", running[k].name, axis);
  const assay_formula_terms_t terms = {.program = program};
  return assay_offer_at(s, cause, p, &terms, what, t, stop);
}

assay_status_t assay_propose_any_sum(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  assay_anywhere_place_t places[ASSAY_PLACES];
  const size_t n = assay_places_of(s, places);
  for (size_t i = 0; i < n && !*stop; i++) {
    const assay_tensor_t* x = places[i].x;
    const bool positive = is_positive(x);
    if (assay_around_is_constant(places[i].v) && x->rank != 1) continue;
    for (int axis = x->rank - 1; axis >= 0; axis--)
      for (size_t k = 0; x->dims[axis] > 1 && k < sizeof running / sizeof *running && !*stop; k++)
        if (positive || !running[k].positive)
          ASSAY_TRY(offer_running(s, cause, &places[i], axis, k, t, stop));
  }
  return NULL;
}
