// Arrays of golden that no value of the model has: one of them in the place of an input gives
// golden, so what stood between is missing there, and what it made is known.
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"

// Before an input, of which it is known what has to be there. Values that were found to be missing
// are taken before formulas of several values are tried: one of them may be just that.
static assay_status_t make_array(assay_missing_search_t* s, size_t input, assay_tensor_t* want) {
  assay_missing_place_t p = {
      .kind = ASSAY_EDIT_BEFORE, .index = input, .x = s->in[input], .want = want};
  enum { UNREAD = 64 };
  if (s->unread_only)
    return assay_missing_of_two(s, &p, s->n_unread < UNREAD ? s->n_unread : UNREAD);
  ASSAY_TRY(assay_missing_kinds(s, &p));
  for (size_t i = 0; i < s->n_made; i++) {
    const assay_missing_other_t* o = &s->others[i];
    assay_missing_place_t other = p;
    other.x = o->tensor;
    other.source = o->value;
    if (!assay_missing_is_over(s))
      ASSAY_TRY(assay_missing_try(s, &other, &(assay_formula_terms_t){.program = "x"},
                                  "missing nodes", "take"));
  }
  return assay_missing_is_over(s) ? NULL : assay_missing_formulas(s, &p);
}

static void put_input(assay_missing_search_t* s, size_t input, assay_tensor_t* t) {
  for (size_t i = 0; i < s->n_in; i++)
    if (i != input && assay_missing_is_twin(s, input, i)) s->in[i] = t;
  s->in[input] = t;
}

// An array in the place of an input with which the node gives golden only if one of its constants
// is another, too: what was folded into a bias or a weight, and cannot be.
static assay_status_t with_constant(assay_missing_search_t* s, size_t input, assay_tensor_t* want) {
  const assay_value_t* v = s->node->inputs[input];
  assay_tensor_t* kept = assay_tensor_retain(assay_evaluator_get(s->m, v));
  assay_repair_t r = {0};
  double left = 0;
  bool tested = false, solved = false;
  if (s->collect) return assay_tensor_release(kept), NULL;
  assay_evaluator_set(s->m, v, want);
  assay_status_t st = assay_solve_constant(s->m, s->node, s->target, NULL, false, s->deadline, &r,
                                           &left, &tested, &solved);
  assay_evaluator_set(s->m, v, kept);
  assay_tensor_release(kept);
  if (st || !solved) return st;
  if (left < 1e-3 && r.edits[0].kind == ASSAY_EDIT_CONSTANT && r.edits[0].input != input) {
    s->also = &r.edits[0];
    st = make_array(s, input, want);
    s->also = NULL;
  }
  assay_repair_deinit(&r);
  return st;
}

// An array of golden that matches no value of the model, in the place of an input. tries: how many
// are still tried with another constant.
static assay_status_t with_array(assay_missing_search_t* s, size_t input,
                                 const assay_tensor_t* array, int* tries) {
  assay_tensor_t *want = NULL, *kept = s->in[input];
  bool fits = false;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)array, &want));
  assay_status_t st = NULL;
  if (want->store == kept->store) {
    const assay_repair_t none = {.node = s->node};
    put_input(s, input, want);
    st = assay_missing_restores(s, &none, &fits);
    put_input(s, input, kept);
    if (!st && fits) st = make_array(s, input, want);
    if (!st && !fits && assay_tensor_alike(want, kept) && kept->store == ASSAY_STORE_F64 &&
        !s->arrays_only && (*tries)-- > 0)
      st = with_constant(s, input, want);
  }
  assay_tensor_release(want);
  return st;
}

// What stood between an input and the node has left its array in golden: nothing tells more.
static assay_status_t at_arrays(assay_missing_search_t* s, size_t i, const assay_golden_t* golden) {
  enum { WITH_CONSTANTS = 32 };
  const bool reshaped = assay_missing_is_reshaped(s);  // then it may be of another size
  int tries = WITH_CONSTANTS;
  for (size_t k = 0; s->in[i] && k < golden->n && !assay_missing_is_over(s); k++) {
    const assay_tensor_t* t = golden->at[k].tensor;
    if (!golden->at[k].value && t->kind == ASSAY_KIND_TENSOR &&
        (t->size == s->in[i]->size || reshaped))
      ASSAY_TRY(with_array(s, i, t, &tries));
  }
  return NULL;
}

assay_status_t assay_missing_arrays(assay_missing_search_t* s, const assay_golden_t* golden) {
  for (size_t i = 0; i < s->n_in && !assay_missing_is_over(s); i++)
    if (!(s->node->inputs[i] && s->node->inputs[i]->constant)) ASSAY_TRY(at_arrays(s, i, golden));
  return NULL;
}
