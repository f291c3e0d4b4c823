// Functions of two arguments that were written as one of their quotient: the angle of a direction.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_op(const assay_node_t* n, const char* op) {
  return n && !*n->domain && strcmp(n->op_type, op) == 0;
}

// y and x of the quotient that a node reads: y / x, or y times the reciprocal of x.
static bool quotient_of(const assay_node_t* n, const assay_value_t** y, const assay_value_t** x) {
  const assay_node_t* q = n->inputs[0] ? n->inputs[0]->producer : NULL;
  if (is_op(q, "Div") && q->n_inputs == 2) return *y = q->inputs[0], *x = q->inputs[1], true;
  for (size_t i = 0; is_op(q, "Mul") && i < 2 && q->n_inputs == 2; i++) {
    const assay_node_t* r = q->inputs[i] ? q->inputs[i]->producer : NULL;
    if (is_op(r, "Reciprocal")) return *y = q->inputs[1 - i], *x = r->inputs[0], true;
  }
  return false;
}

// What the angle should be: x the arctangent, v and u the quotient's parts.
static const struct {
  const char *program, *text;
} forms[] = {
    {"x u 0 < cast 3.1415926535897931 * 1 v 0 < cast 2 * - * +",
     "the angle of all four quadrants, atan2"},
    {"x u 0 < cast 3.1415926535897931 * + u 0 >= cast v 0 < cast * 6.2831853071795862 * +",
     "the angle of all four quadrants, from 0 to 2 pi"},
    {"x dup 0 < cast 3.1415926535897931 * +", "the angle from 0 to pi"},
    {"x Abs", "the angle without its sign"},
};

// Source: sonos/torch-to-nnef issue 124; atan2 of ISO C, 7.12.4.4.
assay_status_t assay_propose_quadrants(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  const assay_value_t *y = NULL, *x = NULL;
  if (!s->around || !is_op(s->node, "Atan") || !quotient_of(s->node, &y, &x) || !y || !x)
    return NULL;
  for (size_t i = 0; i < sizeof forms / sizeof *forms && !*stop; i++) {
    const assay_formula_terms_t terms = {.program = forms[i].program, .value = y, .value2 = x};
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_AFTER);
    snprintf(r.text, sizeof r.text, "%s", forms[i].text);
    ASSAY_TRY(assay_formula_create(&terms, &r.edits[0].formula));
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}
