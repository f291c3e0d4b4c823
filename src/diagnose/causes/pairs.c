// Two operators with constants, one after the other, in another order: mean and deviation, scale
// and offset.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static const struct {
  const char *op, *sign;
} operators[] = {{"Add", "+"}, {"Sub", "-"}, {"Mul", "*"}, {"Div", "/"}};

static const char* sign_of(const assay_node_t* n) {
  for (size_t i = 0; n && !*n->domain && n->n_inputs == 2 && i < 4; i++)
    if (strcmp(n->op_type, operators[i].op) == 0) return operators[i].sign;
  return NULL;
}

// The input that is a constant of floats, if one of two is: of those that do not commute, the
// second. 2: neither.
static size_t constant_at(const assay_suspect_t* s, const assay_node_t* n) {
  const bool second = strcmp(n->op_type, "Sub") == 0 || strcmp(n->op_type, "Div") == 0;
  for (size_t i = 2; i-- > (second ? 1U : 0U);) {
    const assay_tensor_t* x = n->inputs[i] ? assay_around_tensor(s->around, n->inputs[i]) : NULL;
    const assay_value_t* other = n->inputs[1 - i];
    if (x && other && assay_around_is_constant(n->inputs[i]) && assay_type_is_float(x->type) &&
        !assay_around_is_constant(other))
      return i;
  }
  return 2;
}

static assay_status_t offer_all(const assay_suspect_t* s, const char* cause,
                                const assay_node_t* first, assay_formula_terms_t* terms,
                                const assay_trial_t* t, bool* stop) {
  const char *a = sign_of(first), *b = sign_of(s->node);
  const struct {
    const char *c, *one, *d, *two, *text;
  } forms[] = {
      {"d", b, "c", a, "the two in the other order"},
      {"d", a, "c", b, "with their constants exchanged"},
      {"c", b, "d", a, "with their operators exchanged"},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms && !*stop; i++) {
    char program[40];
    if (a == b && i != 1) continue;
    snprintf(program, sizeof program, "x %s %s %s %s", forms[i].c, forms[i].one, forms[i].d,
             forms[i].two);
    terms->program = program;
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_AFTER);
    r.beside[r.n_beside++] = first;
    snprintf(r.text, sizeof r.text, "%s and '%.120s': %s", s->node->op_type, first->label,
             forms[i].text);
    ASSAY_TRY(assay_formula_create(terms, &r.edits[0].formula));
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

// (x - mean) / deviation against x / deviation - mean, and the like. Sources: preprocessing of
// PyTorch's and Keras' image models (their documentation).
assay_status_t assay_propose_pair(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  if (!s->around || !s->n_out || !sign_of(s->node)) return NULL;
  const size_t at = constant_at(s, s->node);
  const assay_node_t* first = at < 2 ? s->node->inputs[1 - at]->producer : NULL;
  const size_t from = sign_of(first) ? constant_at(s, first) : 2;
  assay_tensor_t *c = NULL, *d = NULL;
  if (from > 1) return NULL;
  ASSAY_TRY(assay_tensor_widen(assay_around_tensor(s->around, first->inputs[from]), &c));
  assay_status_t st = assay_tensor_widen(s->in[at], &d);
  assay_formula_terms_t terms = {.source = first->inputs[1 - from], .c = c, .d = d};
  if (!st && !assay_tensor_same_shape(c, d) && c->size > 1 && d->size > 1)
    st = NULL;
  else if (!st)
    st = offer_all(s, cause, first, &terms, t, stop);
  assay_tensor_release(c);
  assay_tensor_release(d);
  return st;
}
