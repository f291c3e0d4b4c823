// An operator as another node of the model has it, with its attributes: on other values, or with
// constants that nobody reads, or whose weights are solved for. Of two nodes that were taken for
// one the other is there still; layers of one kind differ in their weights only.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"

enum { OPERANDS = ASSAY_FORMULA_MORE, CHOICES = 12, TRIALS = 300 };

// What each operand may be; the first is what the node itself has.
typedef struct choice {
  const assay_value_t* value;  // NULL: left out
  assay_tensor_t* tensor;
} choice_t;

typedef struct likes {
  assay_missing_search_t* s;
  const assay_missing_place_t* p;
  const assay_node_t* node;
  size_t output;
  choice_t choices[OPERANDS][CHOICES];
  size_t n_choices[OPERANDS], at[OPERANDS];
  assay_tensor_t* in[OPERANDS];
} likes_t;

static bool is_made_by_constant(const assay_value_t* v) {
  return v->producer && strcmp(v->producer->op_type, "Constant") == 0;
}

static bool is_fixed(const assay_value_t* v) { return v->constant || is_made_by_constant(v); }

static bool is_read(const assay_graph_t* g, const assay_value_t* v) {
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == v) return true;
  return false;
}

// ---- what operands may be ----------------------------------------------------------------------

static assay_tensor_t* tensor_of(const assay_missing_search_t* s, const assay_value_t* v) {
  for (size_t i = 0; i < s->n_others; i++)
    if (s->others[i].value == v) return s->others[i].tensor;
  return NULL;
}

static void list_choices(likes_t* k, size_t i) {
  const assay_missing_search_t* s = k->s;
  const assay_value_t* own = k->node->inputs[i];
  size_t n = 0;
  k->choices[i][n++] = (choice_t){own, own ? tensor_of(s, own) : NULL};
  const assay_tensor_t* like = k->choices[i][0].tensor;
  for (size_t j = 0; like && j < s->n_others && n < CHOICES; j++) {
    const assay_missing_other_t* o = &s->others[j];
    if (o->value == own || !assay_tensor_alike(o->tensor, like)) continue;
    // Constants that are read elsewhere belong there.
    if (is_fixed(own) ? !o->value->constant || is_read(k->node->graph, o->value)
                      : is_fixed(o->value))
      continue;
    k->choices[i][n++] = (choice_t){o->value, o->tensor};
  }
  k->n_choices[i] = n;
}

// ---- trying ------------------------------------------------------------------------------------

static bool is_like_wanted(const assay_tensor_t* made, const assay_tensor_t* want) {
  if (!made || !assay_tensor_same_shape(made, want) || made->store != want->store) return false;
  const assay_difference_t d = assay_difference(made, want);
  return d.comparable && !d.mismatched && d.rms <= 1e-4 * d.ref_rms;
}

static assay_status_t run(const likes_t* k, assay_tensor_t** out) {
  assay_tensor_t** made = NULL;
  *out = NULL;
  ASSAY_TRY(assay_new_array(k->node->n_outputs, sizeof *made, &made));
  assay_status_t st = assay_evaluator_node(k->s->m, k->node, k->node->n_inputs,
                                           (assay_tensor_t**)k->in, k->node->n_outputs, made);
  if (!st && made[k->output]) st = assay_tensor_widen(made[k->output], out);
  for (size_t i = 0; i < k->node->n_outputs; i++) assay_tensor_release(made[i]);
  assay_free(made);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

// solved: in place of operand 1; NULL: none is.
static assay_status_t offer(const likes_t* k, assay_tensor_t* solved) {
  char program[ASSAY_FORMULA_TEXT] = "", text[160];
  assay_formula_terms_t terms = {.program = program, .like[0] = k->node};
  const int64_t n = (int64_t)k->node->n_inputs;
  const int64_t call[] = {n, 0, (int64_t)k->output};
  size_t used = 0;
  int other = -1;
  for (int64_t i = 0; i < n; i++) {
    const choice_t* c = &k->choices[i][k->at[i]];
    terms.more[i] = c->value;
    if (k->at[i]) other = (int)i;
    const bool is_solved = solved && i == 1;
    used = c->value ? assay_formula_append(program, used, is_solved ? "k" : "w",
                                           is_solved ? (int64_t[]){0} : &i, 1)
                    : assay_formula_append(program, used, "none", NULL, 0);
  }
  terms.constants[0] = solved;
  used = assay_formula_append(program, used, "like", call, 3);
  if (used >= sizeof program) return NULL;
  if (solved)
    snprintf(text, sizeof text, "%s as '%.50s' with weights of its own", k->node->op_type,
             k->node->label);
  else
    snprintf(text, sizeof text, "%s as '%.50s' with '%.50s'", k->node->op_type, k->node->label,
             other >= 0 ? k->choices[other][k->at[other]].value->name : "the same");
  return assay_missing_try(k->s, k->p, &terms, "missing operator", text);
}

static bool next(likes_t* k) {
  for (size_t i = k->node->n_inputs; i-- > 0;) {
    if (++k->at[i] < k->n_choices[i]) return true;
    k->at[i] = 0;
  }
  return false;
}

static void take_operands(likes_t* k) {
  for (size_t i = 0; i < k->node->n_inputs; i++) k->in[i] = k->choices[i][k->at[i]].tensor;
}

static assay_status_t each_choice(likes_t* k) {
  int trials = 0;
  do {
    assay_tensor_t* made = NULL;
    take_operands(k);
    ASSAY_TRY(run(k, &made));
    const bool fits = is_like_wanted(made, k->p->want);
    assay_tensor_release(made);
    if (fits) ASSAY_TRY(offer(k, NULL));
  } while (next(k) && ++trials < TRIALS && !assay_missing_is_over(k->s));
  memset(k->at, 0, sizeof k->at);
  return NULL;
}

// ---- weights that are not there ----------------------------------------------------------------

// By three quarters of the rows, tested on the others.
static assay_status_t solve_weights(likes_t* k, assay_tensor_t** out) {
  assay_tensor_t *have = NULL, *part = NULL, *made = NULL;
  bool *held = NULL, holds = true;
  *out = NULL;
  take_operands(k);
  ASSAY_TRY(run(k, &have));
  // Twice as many equations as unknowns.
  const bool determined = k->in[1] && have && have->size >= 2 * k->in[1]->size;
  if (!determined || !assay_tensor_same_shape(have, k->p->want))
    return assay_tensor_release(have), NULL;
  assay_solve_t s = {.m = k->s->m, .node = k->node, .input = 1, .in = k->in, .have = have};
  s.want = (assay_tensor_t*)k->p->want;
  s.output = k->output;
  assay_status_t st = assay_new_array((size_t)have->size, sizeof *held, &held);
  if (!st) st = assay_solve_rows(&s, held, &part);
  if (!st && part) st = assay_solve_evaluate(&s, part, &made);
  int64_t tested = 0;
  for (int64_t i = 0; made && i < made->size; i++) {
    if (!held[i]) continue;
    tested++;
    holds &=
        fabs(assay_f64(made)[i] - assay_f64(s.want)[i]) <= 1e-4 * fabs(assay_f64(s.want)[i]) + 1e-5;
  }
  if (!st && made && holds && tested) st = assay_solve_rows(&s, NULL, out);
  assay_tensor_release(made);
  assay_tensor_release(part);
  assay_tensor_release(have);
  assay_free(held);
  return st;
}

static bool has_weights(const assay_node_t* n) {
  static const char* const OPS[] = {"MatMul", "Gemm", "Conv"};
  for (size_t i = 0; i < sizeof OPS / sizeof *OPS; i++)
    if (!*n->domain && strcmp(n->op_type, OPS[i]) == 0)
      return n->n_inputs > 1 && n->inputs[1] && is_fixed(n->inputs[1]);
  return false;
}

static assay_status_t with_weights(likes_t* k) {
  for (k->at[0] = 0; k->at[0] < k->n_choices[0] && !assay_missing_is_over(k->s); k->at[0]++) {
    assay_tensor_t* solved = NULL;
    ASSAY_TRY(solve_weights(k, &solved));
    assay_status_t st = solved ? offer(k, solved) : NULL;
    assay_tensor_release(solved);
    if (st) return st;
  }
  memset(k->at, 0, sizeof k->at);
  return NULL;
}

// ---- nodes -------------------------------------------------------------------------------------

static bool may_be_like(const likes_t* k) {
  const assay_node_t* n = k->node;
  if (n->n_inputs == 0 || n->n_inputs > OPERANDS || !n->op ||
      n->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM))
    return false;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && !tensor_of(k->s, n->inputs[i])) return false;
  return true;
}

static assay_status_t like_node(likes_t* k) {
  if (!may_be_like(k)) return NULL;
  for (size_t i = 0; i < k->node->n_inputs; i++) list_choices(k, i);
  for (k->output = 0; k->output < k->node->n_outputs && !assay_missing_is_over(k->s); k->output++) {
    const assay_value_t* v = k->node->outputs[k->output];
    assay_tensor_t* made = v ? assay_evaluator_get(k->s->m, v) : NULL;
    if (!made || made->kind != ASSAY_KIND_TENSOR || made->type != k->p->want->type ||
        !assay_tensor_same_shape(made, k->p->want))
      continue;
    ASSAY_TRY(each_choice(k));
    if (!assay_missing_is_over(k->s) && k->output == 0 && has_weights(k->node) &&
        k->p->want->store == ASSAY_STORE_F64)
      ASSAY_TRY(with_weights(k));
  }
  return NULL;
}

assay_status_t assay_missing_likes(assay_missing_search_t* s, const assay_missing_place_t* p) {
  const assay_graph_t* g = s->node->graph;
  likes_t* k = NULL;
  if (!p->want || p->source || p->want->kind != ASSAY_KIND_TENSOR ||
      p->want->store > ASSAY_STORE_I64 || p->want->size < 2)
    return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *k, &k));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes && !assay_missing_is_over(s); i++) {
    memset(k, 0, sizeof *k);
    k->s = s;
    k->p = p;
    k->node = g->nodes[i];
    st = like_node(k);
  }
  assay_free(k);
  return st;
}
