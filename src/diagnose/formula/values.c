// The values that a formula reads: which they are, and the same formula of others.
#include "diagnose/formula/program.h"

static bool mark_value(const assay_value_t* v, bool* read) {
  if (v) read[v->id] = true;
  return v;
}

bool assay_formula_mark(const assay_formula_t* f, bool* read) {
  if (!f) return false;
  const assay_formula_terms_t* t = &f->terms;
  bool any = mark_value(t->source, read);
  any |= mark_value(t->value, read);
  any |= mark_value(t->value2, read);
  any |= assay_formula_mark(t->source_made, read);
  any |= assay_formula_mark(t->value_made, read);
  any |= assay_formula_mark(t->value2_made, read);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) {
    any |= mark_value(t->more[i], read);
    any |= assay_formula_mark(t->more_made[i], read);
  }
  return any;
}

static bool translate_value(const assay_value_t** v, const assay_value_t* const* to) {
  if (!*v || !to[(*v)->id]) return !*v || !(*v)->producer || !(*v)->producer->n_inputs;
  *v = to[(*v)->id];
  return true;
}

// A formula that another one reads; whole turns false where it cannot be.
static assay_status_t translate_made(assay_formula_t** f, const assay_value_t* const* to,
                                     bool* whole) {
  assay_formula_t* was = *f;
  *f = NULL;
  if (!was || !*whole) return NULL;
  assay_status_t st = assay_formula_translate(was, to, f);
  *whole = *f;
  return st;
}

assay_status_t assay_formula_translate(const assay_formula_t* f, const assay_value_t* const* to,
                                       assay_formula_t** out) {
  assay_formula_terms_t t = f->terms;
  bool whole = translate_value(&t.source, to) && translate_value(&t.value, to) &&
               translate_value(&t.value2, to);
  *out = NULL;
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) whole = whole && translate_value(&t.more[i], to);
  assay_status_t st = translate_made(&t.source_made, to, &whole);
  if (st) t.value_made = t.value2_made = NULL;
  if (!st) st = translate_made(&t.value_made, to, &whole);
  if (st) t.value2_made = NULL;
  if (!st) st = translate_made(&t.value2_made, to, &whole);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) {
    if (st)
      t.more_made[i] = NULL;
    else
      st = translate_made(&t.more_made[i], to, &whole);
  }
  if (!st && whole) st = assay_formula_create(&t, out);
  assay_formula_release(t.source_made);
  assay_formula_release(t.value_made);
  assay_formula_release(t.value2_made);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) assay_formula_release(t.more_made[i]);
  return st;
}
