// What is missing before several inputs of a Concat: each part tells what one of them has to be.
#include <stdio.h>
#include <string.h>

#include "diagnose/solve/missing.h"

enum { NEAR = 24 };

// What has to stand before one input, of which it is known what has to be there. *out NULL: nothing
// makes it.
static assay_status_t find_part(assay_missing_search_t* s, size_t input, assay_tensor_t* want,
                                assay_formula_t** out) {
  const assay_missing_place_t p = {
      .kind = ASSAY_EDIT_BEFORE, .index = input, .x = s->in[input], .want = want};
  const size_t near = s->n_made + NEAR;
  *out = NULL;
  s->collect = out;
  // What nobody reads comes first among the others, and explains more than numbers do.
  assay_status_t st = assay_missing_of_two(s, &p, near < s->n_others ? near : s->n_others);
  if (!st && !*out) st = assay_missing_kinds(s, &p);
  if (!st && !*out) st = assay_missing_formulas(s, &p);
  s->collect = NULL;
  if (!st || !*out) return st;
  assay_formula_release(*out);
  *out = NULL;
  return st;
}

static void add_text(const assay_missing_search_t* s, size_t input, assay_repair_t* r) {
  const size_t length = strlen(r->text);
  const assay_value_t* v = s->node->inputs[input];
  snprintf(r->text + length, sizeof r->text - length, "%s%.48s for '%.24s'", length ? "; " : "",
           s->collected, v ? v->name : "");
}

assay_status_t assay_missing_joined(assay_missing_search_t* s, const assay_tensor_t* want) {
  assay_repair_t r = {.node = s->node, .cause = "missing nodes"};
  assay_status_t st = NULL;
  bool whole = true;
  if (*s->node->domain || strcmp(s->node->op_type, "Concat") != 0 || s->collect) return NULL;
  for (size_t i = 0; i < s->n_in && whole && !st; i++) {
    assay_tensor_t* part = NULL;
    assay_formula_t* f = NULL;
    st = assay_missing_inverse(s, i, want, &part);
    if (st || !part) continue;  // it is right as it is
    whole = r.n_edits < ASSAY_REPAIR_EDITS;
    if (whole) st = find_part(s, i, part, &f);
    assay_tensor_release(part);
    whole = f;
    if (!f) continue;
    r.edits[r.n_edits++] =
        (assay_repair_edit_t){.kind = ASSAY_EDIT_BEFORE, .input = i, .formula = f};
    add_text(s, i, &r);
  }
  if (!st && whole && r.n_edits > 1) st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}
