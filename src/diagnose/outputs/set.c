// Repairs of several nodes as one.
#include "diagnose/outputs/set.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/outputs/likelihood.h"

void assay_repair_set_deinit(assay_repair_set_t* s) {
  for (size_t i = 0; i < s->n; i++) assay_repair_deinit(&s->at[i]);
  assay_free(s->at);
  *s = (assay_repair_set_t){0};
}

static assay_repair_t* find(assay_repair_set_t* s, const assay_node_t* n) {
  for (size_t i = 0; i < s->n; i++)
    if (s->at[i].node == n) return &s->at[i];
  return NULL;
}

// Edits that change different inputs; others would undo each other.
static bool are_apart(const assay_repair_t* a, const assay_repair_t* b) {
  if (a->n_edits + b->n_edits > ASSAY_REPAIR_EDITS) return false;
  for (size_t i = 0; i < a->n_edits; i++)
    for (size_t k = 0; k < b->n_edits; k++) {
      const assay_repair_edit_t *x = &a->edits[i], *y = &b->edits[k];
      if (x->kind != ASSAY_EDIT_CONSTANT || y->kind != ASSAY_EDIT_CONSTANT) return false;
      if (x->input == y->input) return false;
    }
  return true;
}

static void join(assay_repair_t* to, assay_repair_t* take) {
  const size_t used = strlen(to->text);
  for (size_t i = 0; i < take->n_edits; i++) to->edits[to->n_edits++] = take->edits[i];
  snprintf(to->text + used, sizeof to->text - used, "; %s", take->text);
  take->n_edits = 0;
}

assay_status_t assay_repair_set_add(assay_repair_set_t* s, assay_repair_t* take, bool* out_fits) {
  assay_repair_t* there = find(s, take->node);
  *out_fits = there ? are_apart(there, take) : s->n < ASSAY_SEARCH_FAULTS;
  if (!*out_fits) return assay_repair_deinit(take), NULL;
  if (there) return join(there, take), NULL;
  assay_status_t st = assay_grow(&s->at, &s->capacity, s->n + 1, sizeof *s->at);
  if (st) return assay_repair_deinit(take), st;
  s->at[s->n++] = *take;
  return NULL;
}

// One sample with them.
static assay_status_t try_sample(assay_trials_t* t, const assay_repair_set_t* s,
                                 bool* out_restored) {
  bool fits = false;
  assay_search_t* search = t->s;
  *out_restored = false;
  t->remains = (double)NAN;
  if (search->n_adopted) return NULL;
  for (size_t i = 0; i < s->n; i++) search->adopted[search->n_adopted++] = &s->at[i];
  assay_status_t st = assay_trials_evaluate_adopted(t, out_restored, &fits);
  search->n_adopted = 0;
  return st;
}

assay_status_t assay_trials_try_set(assay_trials_t* t, const assay_repair_set_t* s,
                                    bool* out_restored) {
  ASSAY_TRY(try_sample(t, s, out_restored));
  for (size_t i = 0; i < t->s->n_others && *out_restored; i++) {
    ASSAY_TRY(try_sample(&t->others[i], s, out_restored));
    if (!*out_restored) t->remains = fmax(t->remains, fmin(1, t->others[i].remains));
  }
  return NULL;
}

void assay_repair_set_report(const assay_trials_t* t, assay_repair_set_t* s, assay_fault_t* out,
                             size_t* out_n) {
  // 50 of 55 of the sixth and seventh generations of bench/strangers (outputs/likelihood.c).
  static const double PROBABILITY = 0.91;
  for (size_t i = 0; i < s->n; i++)
    out[i] = (assay_fault_t){.node = s->at[i].node,
                             .has_repair = true,
                             .restored = true,
                             .repair = s->at[i],
                             .remains = t->remains,
                             .probability = t->s->faulty ? 0 : PROBABILITY};
  for (size_t i = 0; i < s->n; i++) assay_search_add_rivals(t->s, &out[i]);
  *out_n = s->n;
  s->n = 0;
}

assay_status_t assay_repair_set_confirm(assay_trials_t* t, assay_fault_t* out, size_t* out_n) {
  assay_repair_set_t set = {0};
  const size_t n = *out_n;
  bool restored = false, fits = true;
  assay_status_t st = NULL;
  *out_n = 0;
  for (size_t i = 0; i < n; i++) {
    if (st || !fits)
      assay_repair_deinit(&out[i].repair);
    else
      st = assay_repair_set_add(&set, &out[i].repair, &fits);
  }
  if (!st && fits) st = assay_trials_try_set(t, &set, &restored);
  if (!st && restored) assay_repair_set_report(t, &set, out, out_n);
  assay_repair_set_deinit(&set);
  return st;
}
