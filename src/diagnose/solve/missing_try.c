// Whether a node that may be missing fits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"

// What stands at a place may differ from what has to by so much of its RMS before the whole node is
// evaluated.
static const double NEAR = 1e-3;
// What makes a value that the model lost.
static const double SAME = 1e-5;

bool assay_missing_is_over(const assay_missing_search_t* s) {
  return s->found || (s->collect && *s->collect) || assay_clock_seconds() >= s->deadline;
}

static assay_status_t forgive(assay_status_t st) {
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

bool assay_missing_is_twin(const assay_missing_search_t* s, size_t input, size_t other) {
  return input != other && input < s->node->n_inputs && other < s->node->n_inputs &&
         s->node->inputs[input] && s->node->inputs[input] == s->node->inputs[other];
}

// everywhere: where the node reads what is there twice, as a square does, in both places.
static assay_repair_t repair_of(const assay_missing_search_t* s, const assay_missing_place_t* p,
                                assay_formula_t* f, bool everywhere) {
  assay_repair_t r = {.node = s->node};
  r.edits[r.n_edits++] =
      (assay_repair_edit_t){.kind = p->kind, .input = p->index, .formula = assay_formula_retain(f)};
  if (s->also) {
    r.edits[r.n_edits] = *s->also;
    assay_tensor_retain(r.edits[r.n_edits++].tensor);
  }
  if (!everywhere || p->kind != ASSAY_EDIT_BEFORE) return r;
  for (size_t i = 0; i < s->n_in && r.n_edits < ASSAY_REPAIR_EDITS; i++)
    if (assay_missing_is_twin(s, p->index, i))
      r.edits[r.n_edits++] =
          (assay_repair_edit_t){.kind = p->kind, .input = i, .formula = assay_formula_retain(f)};
  return r;
}

assay_status_t assay_missing_restores(assay_missing_search_t* s, const assay_repair_t* r,
                                      bool* out) {
  return assay_solve_restores(s->m, r, s->target, s->n_in, s->in, out);
}

// Whether a formula gives about what has to be there; where that is not known, it may.
static assay_status_t is_near(assay_missing_search_t* s, const assay_missing_place_t* p,
                              const assay_formula_t* f, bool* out) {
  assay_tensor_t *made = NULL, *x = p->x;
  *out = !p->want;
  if (!p->want) return NULL;
  // A source that is made anew begins with what stands at the place.
  if (p->source && !assay_formula_source(f))
    x = p->kind == ASSAY_EDIT_AFTER ? s->target->truth : s->in[p->index];
  assay_status_t st = assay_formula_evaluate(f, s->m, s->node, x, &made);
  if (!st && assay_tensor_alike(made, p->want)) {
    const assay_difference_t d = assay_difference(made, p->want);
    *out = d.comparable && !d.mismatched && d.rms <= (s->collect ? SAME : NEAR) * d.ref_rms;
  }
  assay_tensor_release(made);
  return forgive(st);
}

// What makes a value that is in no model; NULL: the model has it.
static assay_formula_t* made_by(const assay_missing_search_t* s, const assay_value_t** v) {
  for (size_t i = 0; *v && i < s->n_made; i++)
    if (*v == &s->made[i].value) return *v = NULL, s->made[i].formula;
  return NULL;
}

static void resolve(const assay_missing_search_t* s, assay_formula_terms_t* terms) {
  terms->source_made = made_by(s, &terms->source);
  terms->value_made = made_by(s, &terms->value);
  terms->value2_made = made_by(s, &terms->value2);
  for (int i = 0; i < ASSAY_FORMULA_MORE; i++) terms->more_made[i] = made_by(s, &terms->more[i]);
}

assay_status_t assay_missing_try(assay_missing_search_t* s, const assay_missing_place_t* p,
                                 const assay_formula_terms_t* terms, const char* cause,
                                 const char* text) {
  assay_formula_t* f = NULL;
  assay_formula_terms_t full = *terms;
  bool fits = false;
  if (assay_missing_is_over(s)) return NULL;
  full.source = p->source;
  resolve(s, &full);
  ASSAY_TRY(assay_formula_create(&full, &f));
  assay_status_t st = is_near(s, p, f, &fits);
  if (s->collect) {
    if (!st && fits) *s->collect = assay_formula_retain(f);
    if (!st && fits && p->source)
      snprintf(s->collected, sizeof s->collected, "%.30s '%.28s'", text, p->source->name);
    else if (!st && fits)
      snprintf(s->collected, sizeof s->collected, "%.63s", text);
    return assay_formula_release(f), st;
  }
  const bool near = !st && fits;
  assay_repair_t r = repair_of(s, p, f, true);
  if (near) st = assay_missing_restores(s, &r, &fits);
  if (near && !st && !fits && r.n_edits > (s->also ? 2 : 1)) {
    assay_repair_deinit(&r);
    r = repair_of(s, p, f, false);
    st = assay_missing_restores(s, &r, &fits);
  }
  assay_formula_release(f);
  if (st || !fits) return assay_repair_deinit(&r), st;
  const bool out = p->kind == ASSAY_EDIT_AFTER;
  const assay_value_t* v = out                            ? s->node->outputs[p->index]
                           : p->index < s->node->n_inputs ? s->node->inputs[p->index]
                                                          : NULL;
  r.cause = cause;
  if (p->source)
    snprintf(r.text, sizeof r.text, "%s '%.60s' %s %s %zu '%.60s'", text, p->source->name,
             "in place of", out ? "its output" : "its input", p->index, v ? v->name : "");
  else
    snprintf(r.text, sizeof r.text, "%s %s %zu '%.80s'", text,
             out ? "after its output" : "before its input", p->index, v ? v->name : "");
  if (s->also) {
    const size_t length = strlen(r.text);
    const assay_value_t* c = s->node->inputs[s->also->input];
    snprintf(r.text + length, sizeof r.text - length, ", with other numbers in '%.40s'",
             c ? c->name : "");
  }
  return assay_missing_take(s, &r);
}

// What holds on other samples within rounding ends the search. What leaves next to nothing there
// may still be another function that looks alike, so the search goes on for a while, but keeps it.
assay_status_t assay_missing_take(assay_missing_search_t* s, assay_repair_t* take) {
  static const double MUCH = 0.9;  // the first of those that leave about as much
  static const double SECONDS = 2;
  assay_holdout_answer_t said;
  assay_status_t st = assay_holdout_ask(s->holdout, 0, take, &said);
  const bool doubted = said == ASSAY_HOLDOUT_FAILS || said == ASSAY_HOLDOUT_NEAR;
  const double left = assay_holdout_left(s->holdout);
  const bool worse = s->has_refuted && !(left < MUCH * s->refuted_left);
  if (st || (doubted && worse)) return assay_repair_deinit(take), st;
  if (said == ASSAY_HOLDOUT_NEAR) s->deadline = fmin(s->deadline, assay_clock_seconds() + SECONDS);
  s->refuted_left = left;
  if (s->has_refuted) assay_repair_deinit(s->out);
  *s->out = *take;
  s->has_refuted = doubted;
  s->found = !doubted;
  return NULL;
}

assay_status_t assay_missing_offer(assay_missing_search_t* s, const assay_repair_t* r) {
  bool fits = false;
  if (assay_missing_is_over(s)) return NULL;
  ASSAY_TRY(assay_missing_restores(s, r, &fits));
  if (!fits) return NULL;
  assay_repair_t copy;
  ASSAY_TRY(assay_repair_copy(r, &copy));
  return assay_missing_take(s, &copy);
}
