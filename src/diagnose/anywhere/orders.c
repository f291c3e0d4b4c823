// Elements along an axis in another order, at any place of a node.
#include <stdio.h>
#include <string.h>

#include "diagnose/anywhere/anywhere.h"
#include "diagnose/proposals.h"

typedef enum order { TURNED, FORWARD, BACKWARD, EVENS_FIRST, HALVES_WOVEN, HALVES, ORDERS } order_t;

// Which element comes to place i of n.
static int64_t element_of(order_t order, int64_t i, int64_t n) {
  const int64_t half = (n + 1) / 2;
  if (order == TURNED) return n - 1 - i;
  if (order == FORWARD) return (i + n - 1) % n;
  if (order == BACKWARD) return (i + 1) % n;
  if (order == EVENS_FIRST) return i < half ? 2 * i : 2 * (i - half) + 1;
  if (order == HALVES_WOVEN) return i % 2 ? half + i / 2 : i / 2;
  return (i + n / 2) % n;
}

// Whether a node puts elements in an order.
static bool is_order(const assay_node_t* n) {
  static const char* const names[] = {"Slice",          "Transpose",       "Gather",
                                      "GatherElements", "ReverseSequence", "DepthToSpace",
                                      "SpaceToDepth"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!*n->domain && strcmp(n->op_type, names[i]) == 0) return true;
  return false;
}

// The node after a place whose matter an order there is: the only one that reads it, where that
// puts elements in an order and this one computes them. NULL: this one's.
static const assay_node_t* order_after(const assay_suspect_t* s, const assay_anywhere_place_t* p) {
  const assay_node_t* const* readers = NULL;
  if (p->input < s->n_in || is_order(s->node) || p->v->is_output ||
      assay_around_readers(s->around, p->v, &readers) != 1)
    return NULL;
  return is_order(readers[0]) && readers[0]->inputs[0] == p->v ? readers[0] : NULL;
}

// A part of an order that was lost before its other part is named with that.
static assay_status_t offer_there(const assay_suspect_t* s, const char* cause,
                                  const assay_anywhere_place_t* p,
                                  const assay_formula_terms_t* terms, const char* what,
                                  const assay_trial_t* t, bool* stop) {
  const assay_node_t* after = order_after(s, p);
  if (!after) return assay_offer_at(s, cause, p, terms, what, t, stop);
  assay_suspect_t its = *s;
  assay_anywhere_place_t before = *p;
  its.node = after;
  its.n_in = after->n_inputs;
  before.input = 0;
  return assay_offer_at(&its, cause, &before, terms, what, t, stop);
}

static assay_status_t offer_order(const assay_suspect_t* s, const char* cause,
                                  const assay_anywhere_place_t* p, int axis, order_t order,
                                  const assay_trial_t* t, bool* stop) {
  static const char* const names[] = {"turned round",       "moved on by one", "moved back by one",
                                      "every second first", "halves woven",    "halves exchanged"};
  const int64_t n = p->x->dims[axis];
  assay_formula_terms_t terms = {.program = "x gather", .axes = {axis}, .n_axes = 1};
  char what[80];
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &n, &terms.c));
  for (int64_t i = 0; i < n; i++) assay_i64(terms.c)[i] = element_of(order, i, n);
  snprintf(what, sizeof what, "%s over dimension %d", names[order], axis);
  assay_status_t st = offer_there(s, cause, p, &terms, what, t, stop);
  assay_tensor_release(terms.c);
  return st;
}

assay_status_t assay_propose_any_order(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  enum { LONGEST = 8192 };
  assay_anywhere_place_t places[ASSAY_PLACES];
  const size_t n = assay_places_of(s, places);
  for (size_t i = 0; i < n; i++)
    for (int axis = places[i].x->rank - 1; axis >= 0; axis--) {
      const int64_t d = places[i].x->dims[axis];
      for (order_t o = TURNED; d > 1 && d <= LONGEST && o < ORDERS && !*stop; o++)
        if (o == TURNED || d > 2) ASSAY_TRY(offer_order(s, cause, &places[i], axis, o, t, stop));
    }
  return NULL;
}
