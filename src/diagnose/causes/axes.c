// Values whose axes are as long as each other and stand in each other's place: nothing in shapes
// tells rows from columns then.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

// Operators that give every axis a meaning of its own.
static bool tells_axes(const assay_node_t* n) {
  static const char* const names[] = {"MatMul", "Einsum", "Gemm",    "Softmax", "Concat",
                                      "Gather", "CumSum", "Reshape", "Expand",  "Where"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!*n->domain && strcmp(n->op_type, names[i]) == 0) return true;
  return false;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 1;
}

// input: of the node; n_in: what comes out.
static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input, int a, int b,
                            const assay_trial_t* t, bool* stop) {
  const bool before = input < s->n_in;
  const assay_tensor_t* x = before ? s->in[input] : s->out[0];
  const assay_value_t* v = before ? s->node->inputs[input] : s->node->outputs[0];
  int64_t order[ASSAY_MAX_RANK];
  char program[ASSAY_FORMULA_TEXT];
  for (int k = 0; k < x->rank; k++) order[k] = k == a ? b : k == b ? a : k;
  size_t used = assay_formula_append(program, 0, "x", NULL, 0);
  used = assay_formula_append(program, used, "transpose", order, x->rank);
  if (used >= ASSAY_FORMULA_TEXT) return NULL;
  const assay_formula_terms_t terms = {.program = program};
  assay_repair_t r = assay_repair_of(s, cause, before ? ASSAY_EDIT_BEFORE : ASSAY_EDIT_AFTER);
  r.edits[0].input = before ? input : 0;
  if (before && v->producer) r.beside[r.n_beside++] = v->producer;
  snprintf(r.text, sizeof r.text, "'%.120s' with its axes %d and %d exchanged", v->name, a, b);
  ASSAY_TRY(assay_formula_create(&terms, &r.edits[0].formula));
  return assay_offer(t, &r, stop);
}

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

// A list that is laid along another axis than it should be: what is asked hides, not what is asked
// of. Where it is given its axes, and where it is a constant. Source: hyunwoongko/transformer issue
// 40.
static assay_status_t offer_laid(const assay_suspect_t* s, const char* cause,
                                 const assay_trial_t* t, bool* stop) {
  const bool lays = is_op(s->node, "Unsqueeze") || is_op(s->node, "Reshape");
  const bool joins = is_op(s->node, "Where") || is_op(s->node, "Add") || is_op(s->node, "Mul");
  for (size_t i = 0; (lays || joins) && i <= s->n_in && !*stop; i++) {
    const bool before = i < s->n_in;
    const assay_tensor_t* x = before ? s->in[i] : s->out[0];
    if (!x || x->kind != ASSAY_KIND_TENSOR || x->rank < 3 || before == lays) continue;
    if (before && !assay_around_is_constant(s->node->inputs[i])) continue;
    for (int a = 1; a < x->rank; a++)
      for (int b = a + 1; b < x->rank && !*stop; b++)
        if ((x->dims[a] == 1) != (x->dims[b] == 1)) ASSAY_TRY(offer(s, cause, i, a, b, t, stop));
  }
  return NULL;
}

// Source: lucidrains/x-transformers, scores of keys and queries; scikit-learn's and NumPy's orders.
assay_status_t assay_propose_value_axes(const assay_suspect_t* s, const char* cause,
                                        const assay_trial_t* t, bool* stop) {
  enum { FEW = 3 };
  if (!s->around || !s->n_in || !s->n_out || !s->node->outputs[0]) return NULL;
  ASSAY_TRY(offer_laid(s, cause, t, stop));
  if (!tells_axes(s->node)) return NULL;
  for (size_t i = 0; i <= s->n_in && i <= FEW && !*stop; i++) {
    const bool before = i < s->n_in;
    const assay_tensor_t* x = before ? s->in[i] : s->out[0];
    const assay_value_t* v = before ? s->node->inputs[i] : s->node->outputs[0];
    if (!v || !is_float(x) || (before && assay_around_is_constant(v))) continue;
    for (int a = 0; a < x->rank; a++)
      for (int b = a + 1; b < x->rank && !*stop; b++)
        if (x->dims[a] == x->dims[b] && x->dims[a] > 1)
          ASSAY_TRY(offer(s, cause, i, a, b, t, stop));
  }
  return NULL;
}
