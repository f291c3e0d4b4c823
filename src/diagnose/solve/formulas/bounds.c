// Limits: what has to be there is what is there, or one of two numbers beyond which it does not go.
//
// Nothing is computed, so it is so to the last bit. A limit that many elements show is the number
// that they have; one that a single element shows may be that element, unless it is a number as
// people write it: a floor of 1, a ceiling of 6.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/solve/missing.h"

enum { ELEMENTS = 3 };  // that show any number to be a limit

typedef struct bound {
  double at;
  int64_t held;  // elements that lie beyond it
} bound_t;

static bool is_round(double x) {
  char text[32];
  snprintf(text, sizeof text, "%.2g", x);
  return fabs(strtod(text, NULL) - x) <= 0x1p-24 * fabs(x);
}

static bool is_shown(const bound_t* b) {
  return b->held >= ELEMENTS || (b->held && is_round(b->at));
}

// False: what has to be there is not what is there within two limits.
static bool find_bounds(const assay_missing_place_t* p, bound_t* low, bound_t* high) {
  const double *x = assay_f64(p->x), *want = assay_f64(p->want);
  *low = (bound_t){.at = (double)INFINITY};
  *high = (bound_t){.at = -(double)INFINITY};
  for (int64_t i = 0; i < p->want->size; i++) {
    low->at = fmin(low->at, want[i]);
    high->at = fmax(high->at, want[i]);
  }
  for (int64_t i = 0; i < p->want->size; i++) {
    const double near = 0x1p-22 * fabs(want[i]);
    if (!isfinite(x[i]) || !isfinite(want[i])) return false;
    if (want[i] - x[i] > near && want[i] == low->at)
      low->held++;
    else if (x[i] - want[i] > near && want[i] == high->at)
      high->held++;
    else if (fabs(want[i] - x[i]) > near)
      return false;
  }
  return low->held || high->held;
}

assay_status_t assay_missing_bounds(assay_missing_search_t* s, const assay_missing_place_t* p) {
  bound_t low, high;
  char program[64], text[96];
  if (!p->want || !p->x || p->x->store != ASSAY_STORE_F64 || p->want->store != ASSAY_STORE_F64 ||
      !p->want->size || !assay_tensor_alike(p->x, p->want) || !find_bounds(p, &low, &high))
    return NULL;
  if ((low.held && !is_shown(&low)) || (high.held && !is_shown(&high))) return NULL;
  if (low.held && high.held)
    snprintf(program, sizeof program, "x %.9g max %.9g min", low.at, high.at);
  else
    snprintf(program, sizeof program, "x %.9g %s", low.held ? low.at : high.at,
             low.held ? "max" : "min");
  snprintf(text, sizeof text,
           p->source ? "a clipping to %.6g .. %.6g of" : "a clipping to %.6g .. %.6g is missing",
           low.held ? low.at : -(double)INFINITY, high.held ? high.at : (double)INFINITY);
  return assay_missing_try(s, p, &(assay_formula_terms_t){.program = program}, "missing node",
                           text);
}
