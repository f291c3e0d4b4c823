// The largest scale of a box that is safe, by bisection.
#include "ranges/range.h"

enum { MIN_EXPONENT = -40 };

typedef struct search {
  const assay_plan_t* plan;
  const assay_box_t* box;
  assay_box_t scaled;
  assay_ranges_options_t options;
  assay_hazard_t hazard;  // of the last scale that was not safe
} search_t;

static assay_status_t try_scale(search_t* s, double scale, bool* out_safe) {
  assay_ranges_t r = {0};
  assay_box_scale(s->box, scale, &s->scaled);
  ASSAY_TRY(assay_ranges_find(s->plan, &s->scaled, &s->options, &r));
  *out_safe = !r.n_hazards;
  if (r.n_hazards) s->hazard = r.hazards[0];
  assay_ranges_deinit(&r);
  return NULL;
}

// Where an input passes what its type holds.
static double max_scale(const assay_box_t* b) {
  double maximum = (double)INFINITY;
  for (size_t i = 0; i < b->n; i++) {
    const assay_box_input_t* in = &b->inputs[i];
    if (!in->value || !in->is_float) continue;
    const assay_valtype_t* t = in->value->type ? in->value->type : in->value->declared;
    const double end = assay_format_info(assay_type_format(t->elem))->max;
    const double size = fmax(fabs(in->lo), fabs(in->hi));
    if (size > 0) maximum = fmin(maximum, end / size);
  }
  return fmin(maximum, 0x1p1000);
}

// Doubles from a safe scale, or halves from one that is not; then bisects on the logarithm.
static assay_status_t bracket(search_t* s, bool safe, double maximum, double* lo, double* hi) {
  double at = 1, factor = 2;
  if (safe) {
    bool whole = false;
    // Most models are either safe everywhere or pass the range not far away.
    for (*lo = 1;; *lo = at, factor = fmin(factor * factor, 0x1p32)) {
      if (*lo >= maximum) return *lo = *hi = maximum, NULL;
      at = fmin(maximum, *lo * factor);
      ASSAY_TRY(try_scale(s, at, &whole));
      if (!whole) return *hi = at, NULL;
    }
  }
  for (*hi = 1;; *hi = at, factor = fmin(factor * factor, 0x1p16)) {
    at = *hi / factor;
    if (at < ldexp(1, MIN_EXPONENT)) return *lo = 0, NULL;
    ASSAY_TRY(try_scale(s, at, &safe));
    if (safe) return *lo = at, NULL;
  }
}

assay_status_t assay_ranges_radius(const assay_plan_t* plan, const assay_box_t* box, bool safe_at_1,
                                   const assay_ranges_options_t* options, assay_radius_t* out) {
  search_t s = {.plan = plan, .box = box, .options = *options};
  double lo = 0, hi = 0;
  s.options.first_only = true;
  ASSAY_TRY(assay_box_copy(box, &s.scaled));
  const double maximum = max_scale(box);
  assay_status_t st = bracket(&s, safe_at_1, maximum, &lo, &hi);
  while (!st && lo > 0 && hi > lo * 1.02) {
    const double middle = sqrt(lo) * sqrt(hi);
    bool safe = false;
    st = try_scale(&s, middle, &safe);
    if (safe)
      lo = middle;
    else
      hi = middle;
  }
  assay_box_deinit(&s.scaled);
  if (st) return st;
  *out = (assay_radius_t){
      .scale = lo, .max = maximum, .next = lo >= maximum ? (assay_hazard_t){0} : s.hazard};
  return NULL;
}
