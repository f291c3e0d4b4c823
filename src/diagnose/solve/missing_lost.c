// Values that golden has and the model lost: what makes them of the values that the model has.
//
// Golden of all of a framework's values has arrays that no value of an exported model is: of nodes
// that were dropped, merged or folded. Each is looked for by what may make it, one operator from
// what is known, and is known then itself: so a chain of lost nodes is found link by link.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/missing.h"

enum { ARRAYS = 24, SOURCES = 64 };

static bool is_known(const assay_missing_search_t* s, const assay_tensor_t* t) {
  for (size_t i = 0; i < s->n_others; i++) {
    const assay_tensor_t* o = s->others[i].tensor;
    if (!assay_tensor_same_shape(o, t) || o->store != t->store) continue;
    const assay_difference_t d = assay_difference(o, t);
    if (d.comparable && !d.mismatched && d.rms <= 1e-6 * d.ref_rms) return true;
  }
  return false;
}

// By one operator of one value, which is near before the node or read by nobody.
static assay_status_t from_sources(assay_missing_search_t* s, const assay_missing_place_t* at) {
  typedef assay_status_t kind_t(assay_missing_search_t*, const assay_missing_place_t*);
  static kind_t* const kinds[] = {
      assay_missing_bounds,    assay_missing_activations, assay_missing_values,
      assay_missing_moves,     assay_missing_arranged,    assay_missing_slices,
      assay_missing_functions, assay_missing_pooled,      assay_missing_along,
      assay_missing_branches,  assay_missing_fits};
  for (size_t i = 0, n = 0; i < s->n_others && n < SOURCES && !assay_missing_is_over(s); i++) {
    const assay_missing_other_t* o = &s->others[i];
    if (!o->varies || o->tensor->store != ASSAY_STORE_F64) continue;
    assay_missing_place_t p = *at;
    p.x = o->tensor;
    p.source = o->value;
    n++;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !assay_missing_is_over(s); k++)
      ASSAY_TRY(kinds[k](s, &p));
  }
  return NULL;
}

static assay_status_t find_maker(assay_missing_search_t* s, assay_tensor_t* want) {
  const assay_missing_place_t p = {
      .kind = ASSAY_EDIT_AFTER, .index = s->output, .x = NULL, .want = want};
  ASSAY_TRY(assay_missing_pieces(s, &p));
  if (!assay_missing_is_over(s)) ASSAY_TRY(assay_missing_likes(s, &p));
  if (!assay_missing_is_over(s)) ASSAY_TRY(assay_missing_operators(s, &p));
  if (!assay_missing_is_over(s) && want->store == ASSAY_STORE_F64) ASSAY_TRY(from_sources(s, &p));
  return NULL;
}

assay_status_t assay_missing_add_made(assay_missing_search_t* s, assay_tensor_t* t,
                                      assay_formula_t* take_f) {
  assay_missing_made_t* m = &s->made[s->n_made];
  assay_status_t st = assay_grow(&s->others, &s->cap_others, s->n_others + 1, sizeof *s->others);
  if (st) return assay_formula_release(take_f), st;
  *m = (assay_missing_made_t){.value = {.name = m->text, .id = -1}, .formula = take_f};
  memcpy(m->text, s->collected, sizeof m->text);
  memmove(s->others + 1, s->others, s->n_others * sizeof *s->others);
  s->others[0] =
      (assay_missing_other_t){.value = &m->value, .tensor = assay_tensor_retain(t), .varies = true};
  s->n_others++;
  s->n_made++;
  return NULL;
}

static assay_status_t look_for(assay_missing_search_t* s, const assay_golden_tensor_t* g,
                               double end) {
  assay_tensor_t* want = NULL;
  assay_formula_t* made = NULL;
  const double deadline = s->deadline;
  ASSAY_TRY(assay_tensor_widen(g->tensor, &want));
  s->collect = &made;
  s->deadline = end < deadline ? end : deadline;
  assay_status_t st =
      want->store > ASSAY_STORE_I64 || is_known(s, want) ? NULL : find_maker(s, want);
  s->collect = NULL;
  s->deadline = deadline;
  if (!st && made)
    st = assay_missing_add_made(s, want, made);
  else
    assay_formula_release(made);
  assay_tensor_release(want);
  return st;
}

assay_status_t assay_missing_lost(assay_missing_search_t* s, const assay_golden_t* golden) {
  enum { ROUNDS = 2 };
  const double now = assay_clock_seconds(), end = now + 0.4 * (s->deadline - now);
  for (int k = 0; k < ROUNDS; k++) {
    const size_t before = s->n_made;
    size_t n = 0;
    for (size_t i = 0; i < golden->n && n < ARRAYS && s->n_made < ASSAY_MISSING_MADE; i++) {
      const assay_golden_tensor_t* g = &golden->at[i];
      if (g->value || !g->tensor || g->tensor->kind != ASSAY_KIND_TENSOR || g->tensor->size < 2)
        continue;
      n++;
      if (assay_clock_seconds() < end) ASSAY_TRY(look_for(s, g, end));
    }
    if (s->n_made == before) break;
  }
  return NULL;
}
