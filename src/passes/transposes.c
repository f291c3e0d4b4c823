// A Transpose after a Transpose: one, or none if they cancel. A Transpose of the last two
// dimensions before a Gemm is Gemm's own.
#include <string.h>

#include "passes/edit.h"

enum { X };

static assay_status_t merge(assay_edit_t* e, assay_node_t* n) {
  int64_t outer[ASSAY_MAX_RANK], inner[ASSAY_MAX_RANK], perm[ASSAY_MAX_RANK];
  int rank = 0, same = 0;
  assay_node_t* first = n->inputs[X]->producer;
  if (!first || first->graph != n->graph || !assay_transpose_perm(n, outer, &rank) ||
      !assay_transpose_perm(first, inner, &same) || rank != same)
    return NULL;
  const bool alone = assay_uses_of(&e->uses, n->inputs[X]) == 1 && !n->inputs[X]->is_output;
  bool nothing = true;
  for (int i = 0; i < rank; i++) {
    perm[i] = inner[outer[i]];
    nothing &= perm[i] == i;
  }
  if (!alone && !nothing) return NULL;
  assay_value_t *x = assay_edit_value(e, first->inputs[X]), *y = n->outputs[0];
  const assay_node_t* both[] = {n, first};
  if (nothing) {
    if (!assay_edit_can_redirect(e, y, x)) return NULL;
    ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_REMOVED, both, alone ? 2 : 1,
                                "the transpositions cancel"));
    assay_edit_kill(e, n);
    if (alone) assay_edit_kill(e, first);
    assay_edit_redirect(e, y, x);
    return NULL;
  }
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, both, 2, "they are one transposition"));
  ASSAY_TRY(assay_pass_absorb(e->c, first, n));
  assay_edit_kill(e, first);
  ASSAY_TRY(assay_edit_become(e, n, "Transpose", 1, &x));
  return assay_edit_attr_ints(e, n, "perm", (size_t)rank, perm);
}

static assay_status_t into_gemm(assay_edit_t* e, assay_node_t* n) {
  static const char* const flags[] = {"transA", "transB"};
  int64_t perm[ASSAY_MAX_RANK];
  int rank = 0;
  if (!assay_is(n, "Gemm") || n->n_inputs < 2) return NULL;
  for (size_t i = 0; i < 2; i++) {
    assay_node_t* t = n->inputs[i] ? n->inputs[i]->producer : NULL;
    if (!t || t->graph != n->graph || n->inputs[i]->is_output ||
        !assay_transpose_perm(t, perm, &rank) || rank != 2 || perm[0] != 1 || perm[1] != 0 ||
        assay_uses_of(&e->uses, n->inputs[i]) != 1)
      continue;
    const assay_node_t* both[] = {n, t};
    ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, both, 2, "Gemm transposes by itself"));
    ASSAY_TRY(assay_pass_absorb(e->c, t, n));
    ASSAY_TRY(assay_edit_set_i(e, n, flags[i], !assay_attr_i64(n, flags[i], 0)));
    assay_edit_kill(e, t);
    ASSAY_TRY(assay_edit_set_input(e, n, i, assay_edit_value(e, t->inputs[X])));
  }
  return NULL;
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  for (size_t j = 0; j < n->n_inputs; j++)
    if (n->inputs[j]) n->inputs[j] = assay_edit_value(e, n->inputs[j]);
  if (assay_is(n, "Transpose") && n->inputs[X] && n->outputs[0]) ASSAY_TRY(merge(e, n));
  return assay_edit_is_dead(e, n) ? NULL : into_gemm(e, n);
}

static assay_status_t run(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

const assay_pass_t assay_pass_transposes = {
    .name = "transposes",
    .summary = "Transposes that cancel, merge or belong to a Gemm",
    .until_fixpoint = true,
    .run = run,
};
