// What an input was reduced to before the node read it: a mean or a maximum over dimensions that
// was lost, or one slice. Nothing but the node's output tells, so all of them are tried; where the
// node is dear only if golden's output has another shape, as after a lost pooling.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { MIN_RANK = 2, MAX_RANK = 5 };

static bool is_pointwise(const assay_node_t* n) {
  static const char* const OPS[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Sum"};
  for (size_t i = 0; i < sizeof OPS / sizeof *OPS; i++)
    if (!*n->domain && strcmp(n->op_type, OPS[i]) == 0) return true;
  return false;
}

// Whether golden has another shape than what the node makes, or the node cannot be run at all.
bool assay_missing_is_reshaped(const assay_missing_search_t* s) {
  return !s->target->truth || !assay_tensor_same_shape(s->target->truth, s->target->golden);
}

static const struct {
  const char *keeps, *drops, *name;
} REDUCTIONS[] = {{"mean", "mean.", "ReduceMean"},
                  {"highest", "highest.", "ReduceMax"},
                  {"sum", "sum.", "ReduceSum"},
                  {"lowest", "lowest.", "ReduceMin"}};

static assay_status_t over(assay_missing_search_t* s, const assay_missing_place_t* p, unsigned mask,
                           bool keeps) {
  assay_formula_terms_t terms = {0};
  for (int i = 0; i < p->x->rank; i++)
    if (mask >> i & 1) terms.axes[terms.n_axes++] = i;
  for (size_t i = 0; i < sizeof REDUCTIONS / sizeof *REDUCTIONS; i++) {
    char program[32], text[96];
    snprintf(program, sizeof program, "x %s", keeps ? REDUCTIONS[i].keeps : REDUCTIONS[i].drops);
    snprintf(text, sizeof text, "%s over %d dimension%s is missing", REDUCTIONS[i].name,
             terms.n_axes, terms.n_axes > 1 ? "s" : "");
    terms.program = program;
    ASSAY_TRY(assay_missing_try(s, p, &terms, "missing node", text));
  }
  return NULL;
}

// Over every set of dimensions that are more than 1, the last ones first.
static assay_status_t over_sets(assay_missing_search_t* s, const assay_missing_place_t* p,
                                bool keeps) {
  const int rank = p->x->rank;
  for (unsigned set = (1u << rank) - 1; set >= 1 && !assay_missing_is_over(s); set--) {
    bool all = true;
    for (int i = 0; i < rank; i++) all &= !(set >> i & 1) || p->x->dims[i] > 1;
    if (all) ASSAY_TRY(over(s, p, set, keeps));
  }
  return NULL;
}

// The first or the last slice along a dimension.
static assay_status_t slices(assay_missing_search_t* s, const assay_missing_place_t* p) {
  for (int axis = 0; axis < p->x->rank && !assay_missing_is_over(s); axis++)
    for (int64_t index = 0; index >= -1 && p->x->dims[axis] > 1; index--) {
      assay_formula_terms_t terms = {.program = "x gather", .axes = {axis}, .n_axes = 1};
      char text[96];
      ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 0, NULL, &terms.c));
      assay_i64(terms.c)[0] = index;
      snprintf(text, sizeof text, "the %s slice along dimension %d is not taken",
               index ? "last" : "first", axis);
      assay_status_t st = assay_missing_try(s, p, &terms, "missing node", text);
      assay_tensor_release(terms.c);
      if (st) return st;
    }
  return NULL;
}

assay_status_t assay_missing_reduced(assay_missing_search_t* s, const assay_missing_place_t* p) {
  const bool reshaped = assay_missing_is_reshaped(s);
  if (!p->x || p->want || p->x->store != ASSAY_STORE_F64 || p->x->rank < MIN_RANK ||
      p->x->rank > MAX_RANK || !p->x->size || (!reshaped && !is_pointwise(s->node)))
    return NULL;
  ASSAY_TRY(over_sets(s, p, true));
  if (!reshaped) return NULL;
  if (!assay_missing_is_over(s)) ASSAY_TRY(over_sets(s, p, false));
  return assay_missing_is_over(s) ? NULL : slices(s, p);
}
