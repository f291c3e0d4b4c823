// Reductions that were lost, or that take in too much: what a gate reads is a mean over all places;
// tokens that stand for something else are no part of a mean.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/programs.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 1;
}

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool is_data(const assay_suspect_t* s, size_t i) {
  const assay_value_t* v = s->node->inputs[i];
  return v && is_float(s->in[i]) && !assay_around_is_constant(v);
}

// ---- lost reductions ---------------------------------------------------------------------------

// Over axes of an input, which stay as 1: in three ways.
static assay_status_t offer_reductions(const assay_suspect_t* s, const char* cause, size_t input,
                                       const int64_t* axes, int n, const assay_trial_t* t,
                                       bool* stop) {
  static const struct {
    const char *program, *text;
  } kinds[] = {{"x mean", "mean"}, {"x highest", "largest"}, {"x sum", "sum"}};
  assay_formula_terms_t terms = {.n_axes = n};
  int64_t places = 1;
  for (int i = 0; i < n; i++) {
    terms.axes[i] = axes[i];
    places *= s->in[input]->dims[axes[i]];
  }
  if (places < 2) return NULL;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !*stop; k++) {
    char text[200];
    snprintf(text, sizeof text, "the %s of '%.120s' over %s %d%s", kinds[k].text,
             s->node->inputs[input]->name, n > 1 ? "axes" : "axis", (int)axes[0],
             n > 1 ? " and on" : "");
    terms.program = kinds[k].program;
    ASSAY_TRY(assay_offer_program(s, cause, input, &terms, text, t, stop));
  }
  return NULL;
}

// Before a convolution of single places or a product: all places; before one of several that read a
// value: each axis. Sources: squeeze and excitation, J. Hu et al., 2018; sums that softmax and
// norms divide by.
assay_status_t assay_propose_reduction(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  static const char* const joins[] = {"Div", "Sub", "Mul", "Add"};
  if (!s->around || *s->node->domain || !s->n_in) return NULL;
  const assay_tensor_t* x = s->in[0];
  int64_t axes[ASSAY_MAX_RANK];
  if (is_op(s->node, "Conv") && is_data(s, 0) && x->rank > 2 && s->n_in > 1 && s->in[1]) {
    int64_t taps = 1;
    for (int i = 2; i < s->in[1]->rank; i++) taps *= s->in[1]->dims[i];
    for (int i = 2; i < x->rank; i++) axes[i - 2] = i;
    if (taps == 1) return offer_reductions(s, cause, 0, axes, x->rank - 2, t, stop);
  }
  if (is_op(s->node, "MatMul") && is_data(s, 0) && x->rank > 2 && !is_data(s, 1)) {
    axes[0] = x->rank - 2;
    return offer_reductions(s, cause, 0, axes, 1, t, stop);
  }
  bool is_join = false;
  for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) is_join |= is_op(s->node, joins[i]);
  if (!is_join || s->n_in != 2 || !is_data(s, 0) || !is_data(s, 1)) return NULL;
  if (!assay_tensor_same_shape(s->in[0], s->in[1])) return NULL;
  // An operand that others read as well, or that no operator sums up, may be what was left.
  for (size_t i = 0; i < 2; i++)
    for (int axis = 1; axis < s->in[i]->rank && !*stop; axis++) {
      const int64_t one = axis;
      if (axis == 1 || axis == s->in[i]->rank - 1)
        ASSAY_TRY(offer_reductions(s, cause, i, &one, 1, t, stop));
    }
  return NULL;
}

// ---- what a reduction takes in -----------------------------------------------------------------

static assay_status_t offer_part(const assay_suspect_t* s, const char* cause, int axis,
                                 int64_t first, int64_t end, const assay_trial_t* t, bool* stop) {
  const int64_t list[] = {axis, first, end, 1};
  char program[ASSAY_FORMULA_TEXT], text[200];
  size_t used = assay_formula_append(program, 0, "x", NULL, 0);
  used = assay_formula_append(program, used, "slice", list, 4);
  const assay_formula_terms_t terms = {.program = program};
  if (used >= ASSAY_FORMULA_TEXT) return NULL;
  if (end == INT32_MAX)
    snprintf(text, sizeof text, "without the first %lld along axis %d", (long long)first, axis);
  else
    snprintf(text, sizeof text, "without the last %lld along axis %d", (long long)-end, axis);
  return assay_offer_program(s, cause, 0, &terms, text, t, stop);
}

// The first or last few of an axis are no part of what is summed up. Sources: class and register
// tokens, A. Dosovitskiy et al., 2021, T. Darcet et al., 2024; padding at the end.
assay_status_t assay_propose_part(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {"ReduceMean", "ReduceSum",         "ReduceMax",    "ReduceL2",
                                    "ReduceMin",  "GlobalAveragePool", "GlobalMaxPool"};
  enum { MOST = 5 };
  bool is_one = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) is_one |= is_op(s->node, ops[i]);
  if (!is_one || !s->around || !is_data(s, 0) || !s->n_out || !s->out[0]) return NULL;
  const assay_tensor_t *x = s->in[0], *y = s->out[0];
  for (int axis = 1; axis < x->rank; axis++) {
    const int64_t length = x->dims[axis];
    const bool kept = y->rank == x->rank;
    // Which axes go can be read from the shapes where they stay as 1; where they do not, each may.
    if (length < 3 || (kept && y->dims[axis] == length)) continue;
    if (axis == x->rank - 1 && x->rank > 2 && kept) continue;  // of a norm, not of places
    for (int64_t k = 1; k <= MOST && k < length - 1 && !*stop; k++) {
      ASSAY_TRY(offer_part(s, cause, axis, k, INT32_MAX, t, stop));
      if (!*stop) ASSAY_TRY(offer_part(s, cause, axis, 0, -k, t, stop));
    }
  }
  return NULL;
}
